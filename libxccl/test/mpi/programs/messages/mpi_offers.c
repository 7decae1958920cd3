/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a sender offers, where its receiver cannot have it yet, or never. Two ranks; three if
 * reordered.
 * Usage: mpi_offers cuda|rocm CASE [PATH]
 * PATH: what xccl_mpi_last_message_path() is to say of a send.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "support.h"

enum { COUNT = 20000, DESCRIPTOR = 80, TAG = 5, LATER = 6, WORD = 7 };
/* Naps between two looks at a receive are shorter. */
enum { LOOKS_US = 20 * 1000, LOOKS = 600, FEW_LOOKS = 150, PATIENCE_S = 10 };

static const char *path;

/* ---- a descriptor that comes piece by piece, as a slow MPI library would write it ---- */

/* How much of it is there when it is looked at: the message is taken with all of it, not before. */
static const int pieces[] = {8, 36, 72, 79, DESCRIPTOR};
enum { PIECES = sizeof(pieces) / sizeof(pieces[0]) };

static void tell(int rank)
{
    int word = 1;

    PMPI_Send(&word, 1, MPI_INT, rank, WORD, MPI_COMM_WORLD);
}

static void hear(int rank)
{
    int word;

    PMPI_Recv(&word, 1, MPI_INT, rank, WORD, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* A descriptor as it is, by a receive that looks for none. */
static void receive_raw(char raw[DESCRIPTOR], int rank)
{
    MPI_Request request;

    PMPI_Irecv(raw, DESCRIPTOR, MPI_BYTE, rank, TAG, MPI_COMM_WORLD, &request);
    PMPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void send_in_pieces(void)
{
    int        *in = mt_ints_make(MT_DEVICE, COUNT, COUNT, 1);
    char        raw[DESCRIPTOR];
    MPI_Request request;

    MPI_Isend(in, COUNT, MPI_INT, 1, TAG, MPI_COMM_WORLD, &request);
    for (int i = 0; i < PIECES - 1; i++) {
        int over = 0;
        hear(1);
        MPI_Test(&request, &over, MPI_STATUS_IGNORE);
        mt_expect(!over, "taken with %d of %d bytes of its descriptor", pieces[i], DESCRIPTOR);
        tell(1);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    /* The receive that it came to is MPI's still. */
    receive_raw(raw, 1);
    PMPI_Send(raw, DESCRIPTOR, MPI_BYTE, 1, LATER, MPI_COMM_WORLD);
    mt_free(MT_DEVICE, in);
}

/* MPI itself has a true descriptor; it is written to where MPI has nothing to receive yet. */
static void receive_in_pieces(void)
{
    int        *out = mt_ints_make(MT_HOST, COUNT, 0, 0), wrong = 0;
    char        raw[DESCRIPTOR];
    MPI_Status  status;
    MPI_Request request;

    receive_raw(raw, 0);
    for (int i = 0; i < DESCRIPTOR; i++) {
        ((char *)out)[i] = (char)~raw[i];
    }
    MPI_Irecv(out, COUNT, MPI_INT, 0, LATER, MPI_COMM_WORLD, &request);
    for (int i = 0; i < PIECES; i++) {
        memcpy(out, raw, (size_t)pieces[i]);
        if (i < PIECES - 1) {
            usleep(LOOKS_US);
            tell(0);
            hear(0);
        }
    }
    PMPI_Send(raw, DESCRIPTOR, MPI_BYTE, 0, TAG, MPI_COMM_WORLD);
    MPI_Wait(&request, &status);
    mt_expect_status(&status, 0, LATER, COUNT, "the receive");
    /* MPI has written the descriptor once more, over the message. */
    for (int i = 0; i < COUNT; i++) {
        wrong += (out[i] != mt_value(0, 1, i));
    }
    mt_expect(wrong == 0, "%d of %d integers are wrong", wrong, COUNT);
    mt_free(MT_HOST, out);
}

static void case_pieces(void)
{
    mt_meet_on_device();
    if (mt_rank() == 0) {
        send_in_pieces();
    } else {
        receive_in_pieces();
    }
}

/* ---- a message that begins as its descriptor does ---- */

/* It is fetched again some times, since MPI seems to write the descriptor still. */
static void case_alike(void)
{
    static const uint64_t magic = 0x7863636c72647631u;
    int                  *want = mt_ints_make(MT_HOST, COUNT, COUNT, 3);
    MPI_Request           request;

    memcpy(want, &magic, sizeof(magic));
    mt_meet_on_device();
    if (mt_rank() == 0) {
        int *in = mt_ints_make(MT_DEVICE, COUNT, 0, 0);
        mt_put(in, MT_DEVICE, want, COUNT * sizeof(*want));
        MPI_Isend(in, COUNT, MPI_INT, 1, TAG, MPI_COMM_WORLD, &request);
        tell(1);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        mt_free(MT_DEVICE, in);
    } else {
        int *out = mt_ints_make(MT_HOST, COUNT, 0, 0);
        MPI_Irecv(out, COUNT, MPI_INT, 0, TAG, MPI_COMM_WORLD, &request);
        hear(0); /* in MPI, which writes the descriptor: another thread sees it */
        usleep(LOOKS_US);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        for (int i = 2; i < COUNT; i++) {
            want[i] = mt_value(0, 3, i);
        }
        mt_expect(memcmp(out, want, COUNT * sizeof(*want)) == 0, "a message like its descriptor");
        mt_free(MT_HOST, out);
    }
    mt_free(MT_HOST, want);
}

/* ---- sends that MPI refuses ---- */

/* More than there are offers at a time: each is taken back. */
static void case_refused(void)
{
    enum { SENDS = 1100, NO_TAG = -5, NO_RANK = 1 << 24 };
    MPI_Comm comm;
    int     *buf = mt_ints_make(MT_DEVICE, COUNT, (mt_rank() == 0) ? COUNT : 0, 1), taken = 0;

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    mt_meet_on_device();
    if (mt_rank() == 0) {
        for (int i = 0; i < SENDS; i++) {
            taken += (MPI_Send(buf, COUNT, MPI_INT, 1, NO_TAG, comm) == MPI_SUCCESS);
        }
        taken += (MPI_Send(buf, COUNT, MPI_INT, NO_RANK, TAG, comm) == MPI_SUCCESS);
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
        taken += (MPI_Send(buf, COUNT, MPI_INT, NO_RANK, TAG, MPI_COMM_WORLD) == MPI_SUCCESS);
        mt_expect(taken == 0, "%d sends with a tag, or to a rank, that is none", taken);
        MPI_Send(buf, COUNT, MPI_INT, 1, TAG, comm);
        mt_expect_message_path(path, "after sends that MPI refused");
    } else {
        MPI_Recv(buf, COUNT, MPI_INT, 0, TAG, comm, MPI_STATUS_IGNORE);
        mt_ints_expect(buf, MT_DEVICE, COUNT, COUNT, 0, 1, "after sends that MPI refused");
    }
    MPI_Comm_free(&comm);
    mt_free(MT_DEVICE, buf);
}

/* The same of calls that xccl refuses: what they would receive has more bytes than memory has. */
static void case_unmade(void)
{
    enum { CALLS = 1100, MANY = INT32_MAX, BYTES = 1 << 17 };
    MPI_Comm     comm;
    MPI_Datatype long_type;
    int          refused = 0;
    int         *buf = mt_ints_make(MT_DEVICE, COUNT, (mt_rank() == 0) ? COUNT : 0, 1);
    int         *out = mt_ints_make(MT_DEVICE, COUNT, 0, 1);

    MPI_Type_contiguous(BYTES, MPI_BYTE, &long_type);
    MPI_Type_commit(&long_type);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    mt_meet_on_device();
    if (mt_rank() == 0) {
        for (int i = 0; i < CALLS; i++) {
            refused += (MPI_Sendrecv(buf, COUNT, MPI_INT, 1, TAG, out, MANY, long_type, 1, TAG,
                                     comm, MPI_STATUS_IGNORE) != MPI_SUCCESS);
        }
        mt_expect(refused == CALLS, "%d of %d calls were refused", refused, CALLS);
        MPI_Send(buf, COUNT, MPI_INT, 1, TAG, comm);
        mt_expect_message_path(path, "after calls that were refused");
    } else {
        MPI_Recv(buf, COUNT, MPI_INT, 0, TAG, comm, MPI_STATUS_IGNORE);
        mt_ints_expect(buf, MT_DEVICE, COUNT, COUNT, 0, 1, "after calls that were refused");
    }
    MPI_Type_free(&long_type);
    MPI_Comm_free(&comm);
    mt_free(MT_DEVICE, buf);
    mt_free(MT_DEVICE, out);
}

/* ---- a message and its answer, by whichever path ---- */

static void case_answered(void)
{
    int *in = mt_ints_make(MT_DEVICE, COUNT, COUNT, 1), *out = mt_ints_make(MT_DEVICE, COUNT, 0, 0);

    mt_meet_on_device();
    for (int turn = 0; turn < 2; turn++) {
        if (turn == mt_rank()) {
            MPI_Send(in, COUNT, MPI_INT, 1 - mt_rank(), TAG, MPI_COMM_WORLD);
            mt_expect_message_path(path, "to another device");
        } else {
            MPI_Recv(out, COUNT, MPI_INT, turn, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            mt_ints_expect(out, MT_DEVICE, COUNT, COUNT, turn, 1, "from another device");
        }
    }
    mt_free(MT_DEVICE, in);
    mt_free(MT_DEVICE, out);
}

/* ---- a receiver that can open few files, or none ---- */

/* All that it may have are open, or more. */
static void use_up_files(rlim_t most)
{
    struct rlimit limit;

    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = most;
    setrlimit(RLIMIT_NOFILE, &limit);
    while (open("/dev/null", O_RDONLY) >= 0) {}
}

/* MPI_Finalize opens some. */
static void allow_files(void)
{
    struct rlimit limit;

    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

static void receive_without_files(rlim_t most)
{
    int *buf = mt_ints_make(MT_DEVICE, COUNT, (mt_rank() == 0) ? COUNT : 0, 1);

    mt_meet_on_device();
    if (mt_rank() == 0) {
        MPI_Send(buf, COUNT, MPI_INT, 1, TAG, MPI_COMM_WORLD);
        mt_expect_message_path("fetched", "to a rank without files");
    } else {
        use_up_files(most);
        MPI_Recv(buf, COUNT, MPI_INT, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        mt_ints_expect(buf, MT_DEVICE, COUNT, COUNT, 0, 1, "to a rank without files");
    }
    mt_free(MT_DEVICE, buf);
}

static void case_files(void)
{
    receive_without_files(300);
}

static void case_hidden(void)
{
    receive_without_files(3);
}

static int errors;

static void count_error(MPI_Comm *comm, int *code, ...)
{
    (void)comm;
    (void)code;
    errors++;
}

/* Both ends learn it, and go on: the sender is in a blocking call, or tests a request. */
static void case_lost(void)
{
    int           *buf = mt_ints_make(MT_DEVICE, COUNT, COUNT, 1), over = 0;
    MPI_Errhandler counts;

    MPI_Comm_create_errhandler(count_error, &counts);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, counts);
    mt_meet_on_device();
    if (mt_rank() == 0) {
        MPI_Request request;
        MPI_Send(buf, COUNT, MPI_INT, 1, TAG, MPI_COMM_WORLD);
        mt_expect(errors == 1, "%d errors of MPI_Send", errors);
        MPI_Isend(buf, COUNT, MPI_INT, 1, TAG, MPI_COMM_WORLD, &request);
        while (!over) {
            MPI_Test(&request, &over, MPI_STATUS_IGNORE);
        }
    } else {
        use_up_files(3);
        for (int i = 0; i < 2; i++) {
            MPI_Recv(buf, COUNT, MPI_INT, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
        allow_files();
    }
    mt_expect(errors == 2, "%d errors of two messages", errors);
    MPI_Errhandler_free(&counts);
    mt_free(MT_DEVICE, buf);
}

/* In calls that need no message. */
static void expect_errors(int number, const char *what)
{
    double begin = MPI_Wtime();
    int    flag;

    while ((errors < number) && (MPI_Wtime() - begin < PATIENCE_S)) {
        MPI_Iprobe(1 - mt_rank(), LATER, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    }
    mt_expect(errors == number, "%d errors after %s, and not %d", errors, what, number);
}

/*
 * Nobody waits for the requests of two sends: the error handler is told of both. And the second
 * start of a persistent one is no more lost than any other.
 */
static void send_lost_again(int *buf, MPI_Errhandler counts)
{
    double      begin = MPI_Wtime();
    int         flag = 0;
    MPI_Request request;

    MPI_Isend(buf, COUNT, MPI_INT, 1, TAG, MPI_COMM_WORLD, &request);
    MPI_Request_free(&request);
    expect_errors(1, "a send whose request was freed");
    MPI_Isend(buf, COUNT, MPI_INT, 1, TAG, MPI_COMM_WORLD, &request);
    while (!flag && (errors == 1) && (MPI_Wtime() - begin < PATIENCE_S)) {
        MPI_Request_get_status(request, &flag, MPI_STATUS_IGNORE); /* MPICH's tells already */
    }
    MPI_Request_free(&request);
    mt_expect(errors > 1, "%d errors of a send that is over when its request is freed", errors);
    int told = errors;
    MPI_Send_init(buf, COUNT, MPI_INT, 1, TAG, MPI_COMM_WORLD, &request);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Start(&request);
    int code = MPI_Wait(&request, MPI_STATUS_IGNORE);
    mt_expect(code != MPI_SUCCESS, "a start whose message is lost ended well");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, counts);
    hear(1);
    MPI_Start(&request);
    for (int i = 0; i < LOOKS; i++) { /* before its receiver comes to it */
        MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
        mt_expect(!flag, "the second start is over before it is received");
    }
    tell(1);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    mt_expect(errors == told, "%d errors, of which the second start has some", errors);
    MPI_Request_free(&request);
}

static void case_lost_again(void)
{
    int           *buf = mt_ints_make(MT_DEVICE, COUNT, (mt_rank() == 0) ? COUNT : 0, 1);
    MPI_Errhandler counts;
    MPI_Request    request;

    MPI_Comm_create_errhandler(count_error, &counts);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, counts);
    mt_meet_on_device();
    if (mt_rank() == 0) {
        send_lost_again(buf, counts);
    } else {
        use_up_files(3);
        MPI_Recv(buf, COUNT, MPI_INT, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Irecv(buf, COUNT, MPI_INT, 0, TAG, MPI_COMM_WORLD, &request);
        MPI_Request_free(&request);
        expect_errors(2, "a receive whose request was freed");
        MPI_Recv(buf, COUNT, MPI_INT, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        mt_expect(errors == 3, "%d errors of three messages", errors);
        allow_files();
        tell(0);
        hear(0);
        MPI_Recv(buf, COUNT, MPI_INT, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        mt_ints_expect(buf, MT_DEVICE, COUNT, COUNT, 0, 1, "after one that was lost");
    }
    MPI_Errhandler_free(&counts);
    mt_free(MT_DEVICE, buf);
}

/* ---- short sends that wait for their receivers anew in each start ---- */

enum late { LATE, IN_TIME, STAGED };

/* Is it over before its receiver comes? */
static enum late start_one(MPI_Request *request)
{
    int over = 0;

    MPI_Start(request);
    bool offered = (strcmp(mt_last_message_path(), "fetched") == 0);
    for (int i = 0; (i < FEW_LOOKS) && !over; i++) {
        MPI_Test(request, &over, MPI_STATUS_IGNORE);
    }
    tell(1);
    MPI_Wait(request, MPI_STATUS_IGNORE);
    hear(1);
    return !offered ? STAGED : over ? LATE : IN_TIME;
}

/*
 * One may be late where this process gets no core, and then some after it are staged. But where
 * each one waits from its own begin, two that follow each other are soon found not to be.
 */
static void case_late_again(void)
{
    enum { FEW = 2000, STARTS = 100, NAP_US = 8 * 1000 };
    int        *buf = mt_ints_make(MT_DEVICE, FEW, FEW, 1), in_time = 0, goes_on = 1;
    MPI_Request request;

    mt_meet_on_device();
    if (mt_rank() == 0) {
        MPI_Send_init(buf, FEW, MPI_INT, 1, TAG, MPI_COMM_WORLD, &request);
    }
    for (int i = 0; (i < STARTS) && goes_on; i++) {
        if (mt_rank() == 0) {
            enum late late = start_one(&request);
            in_time = (late == LATE) ? 0 : in_time + (late == IN_TIME);
            usleep(NAP_US); /* longer than such a send waits */
            goes_on = (in_time < 2);
        } else {
            hear(0);
            MPI_Recv(buf, FEW, MPI_INT, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            tell(0);
        }
        PMPI_Bcast(&goes_on, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    if (mt_rank() == 0) {
        mt_expect(in_time == 2, "of %d starts no two that follow each other waited", STARTS);
        MPI_Request_free(&request);
    }
    mt_free(MT_DEVICE, buf);
}

/* ---- what MPI_Isendrecv sends is lost, beside a message that was probed and arrives ---- */

typedef int isendrecv(const void *, int, MPI_Datatype, int, int, void *, int, MPI_Datatype, int,
                      int, MPI_Comm, MPI_Request *);

/* That is one of its own: a message from the other rank would show that where to fetch from. */
static int send_and_receive_probed(int *in, int *out)
{
    MPI_Request first, request;
    isendrecv  *start = NULL;
    void       *address = mt_find("MPI_Isendrecv");

    memcpy(&start, &address, sizeof(start));
    MPI_Isend(in, COUNT, MPI_INT, 0, TAG, MPI_COMM_WORLD, &first);
    MPI_Probe(0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    start(in, COUNT, MPI_INT, 1, LATER, out, COUNT, MPI_INT, 0, TAG, MPI_COMM_WORLD, &request);
    int code = MPI_Wait(&request, MPI_STATUS_IGNORE);
    mt_expect(request == MPI_REQUEST_NULL, "the request is there after its end");
    MPI_Wait(&first, MPI_STATUS_IGNORE);
    mt_ints_expect(out, MT_DEVICE, COUNT, COUNT, 0, 1, "beside what is lost");
    return code;
}

/* MPICH 4.3 returns no code to who has a handler, so the first error is to be returned. */
static void case_lost_beside(void)
{
    int           *in = mt_ints_make(MT_DEVICE, COUNT, COUNT, 1);
    int           *out = mt_ints_make(MT_DEVICE, COUNT, 0, 0);
    MPI_Errhandler counts;

    MPI_Comm_create_errhandler(count_error, &counts);
    mt_meet_on_device();
    for (int i = 0; i < 2; i++) {
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, (i == 0) ? MPI_ERRORS_RETURN : counts);
        if (mt_rank() == 0) {
            int code = send_and_receive_probed(in, out);
            mt_expect((i > 0) || (code != MPI_SUCCESS), "what is sent to a rank without files");
        } else {
            use_up_files(3);
            MPI_Recv(out, COUNT, MPI_INT, 0, LATER, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        }
    }
    allow_files();
    mt_expect(errors == 1, "%d errors of the second message", errors);
    MPI_Errhandler_free(&counts);
    mt_free(MT_DEVICE, in);
    mt_free(MT_DEVICE, out);
}

static int refused; /* atomic: so many files of other processes cannot be opened now */

/* In place of the C library's, for xccl as well. */
__attribute__((visibility("default"))) int open(const char *name, int flags, ...)
{
    va_list arguments;

    va_start(arguments, flags);
    mode_t mode = ((flags & O_CREAT) != 0) ? va_arg(arguments, mode_t) : 0;
    va_end(arguments);
    if ((strncmp(name, "/proc/", strlen("/proc/")) == 0) && (strstr(name, "/fd/") != NULL) &&
        (__atomic_load_n(&refused, __ATOMIC_ACQUIRE) > 0)) {
        __atomic_sub_fetch(&refused, 1, __ATOMIC_ACQ_REL);
        errno = ENFILE;
        return -1;
    }
    return openat(AT_FDCWD, name, flags, mode);
}

/* The system has no more files, and a moment later it has. */
static void without_files(bool probes)
{
    int *buf = mt_ints_make(MT_DEVICE, COUNT, (mt_rank() == 0) ? COUNT : 0, 1);

    mt_meet_on_device();
    if (mt_rank() == 0) {
        MPI_Send(buf, COUNT, MPI_INT, 1, TAG, MPI_COMM_WORLD);
        mt_expect_message_path("fetched", "without files for a moment");
    } else {
        __atomic_store_n(&refused, 1, __ATOMIC_RELEASE);
        if (probes) {
            MPI_Status status;
            int        count = -1;
            MPI_Probe(0, TAG, MPI_COMM_WORLD, &status);
            MPI_Get_count(&status, MPI_INT, &count);
            mt_expect(count == COUNT, "the probe says %d, not %d", count, COUNT);
        }
        MPI_Recv(buf, COUNT, MPI_INT, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        mt_expect(__atomic_load_n(&refused, __ATOMIC_ACQUIRE) == 0, "all files were opened");
        mt_ints_expect(buf, MT_DEVICE, COUNT, COUNT, 0, 1, "without files for a moment");
    }
    mt_free(MT_DEVICE, buf);
}

static void case_moment(void)
{
    without_files(false);
}

static void case_moment_probed(void)
{
    without_files(true);
}

/* Files may have few bytes, and memory that processes share is a file. */
static void case_short_files(void)
{
    enum { FEW = 300, MOST_BYTES = 100000 };
    const struct rlimit limit = {MOST_BYTES, MOST_BYTES};

    mt_meet_on_device();
    setrlimit(RLIMIT_FSIZE, &limit);
    for (int count = FEW; count <= FEW * 100; count *= 10) {
        int *buf = mt_ints_make(MT_DEVICE, count, (mt_rank() == 0) ? count : 0, 1);
        if (mt_rank() == 0) {
            MPI_Send(buf, count, MPI_INT, 1, TAG, MPI_COMM_WORLD);
        } else {
            MPI_Recv(buf, count, MPI_INT, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            mt_ints_expect(buf, MT_DEVICE, count, count, 0, 1, "with short files");
        }
        mt_free(MT_DEVICE, buf);
    }
}

/* ---- a rank that never fetches ---- */

/* One rank is without xccl, and has host memory alone. */
static void case_alone(void)
{
    MPI_Status status;

    if (mt_rank() == 0) {
        mt_memory_open(mt_runtime(), 0);
        int *in = mt_ints_make(MT_DEVICE, COUNT, COUNT, 4);
        for (int i = 0; i < 3; i++) {
            MPI_Send(in, COUNT, MPI_INT, 1, TAG, MPI_COMM_WORLD);
            mt_expect_message_path(path, "to a rank without xccl");
        }
        mt_free(MT_DEVICE, in);
        return;
    }
    int *out = malloc(sizeof(int) * COUNT);
    for (int i = 0; i < 3; i++) {
        MPI_Recv(out, COUNT, MPI_INT, 0, TAG, MPI_COMM_WORLD, &status);
        mt_expect_status(&status, 0, TAG, COUNT, "without xccl");
        mt_ints_expect(out, MT_HOST, COUNT, COUNT, 0, 4, "without xccl");
    }
    free(out);
}

/* To rank 1 of a communicator, who is rank 1 or rank 2 of all: the one fetches, the other cannot.
 */
static void send_by(MPI_Comm comm, const int *in, int *out)
{
    int rank, one = 1, who = -1;

    MPI_Comm_rank(comm, &rank);
    if (rank == 1) {
        MPI_Recv(out, COUNT, MPI_INT, 0, TAG, comm, MPI_STATUS_IGNORE);
        mt_ints_expect(out, MT_HOST, COUNT, COUNT, 0, 4, "in another order");
    } else if (mt_rank() == 0) {
        MPI_Group ours, all;
        MPI_Comm_group(comm, &ours);
        MPI_Comm_group(MPI_COMM_WORLD, &all);
        MPI_Group_translate_ranks(ours, 1, &one, all, &who);
        MPI_Group_free(&ours);
        MPI_Group_free(&all);
        MPI_Send(in, COUNT, MPI_INT, 1, TAG, comm);
        mt_expect_message_path((who == 1) ? "fetched" : "mpi-staged", "in another order");
    }
}

static MPI_Comm make_order(bool swapped)
{
    MPI_Comm comm;

    MPI_Comm_split(MPI_COMM_WORLD, 0, (swapped && (mt_rank() > 0)) ? 3 - mt_rank() : mt_rank(),
                   &comm);
    return comm;
}

/* Rank 2 is without xccl. Handles of communicators that were freed come again, for other ranks. */
static void case_reordered(void)
{
    enum { ROUNDS = 6 };
    int     *in = NULL, *out = malloc(sizeof(int) * COUNT);
    MPI_Comm comms[2];

    if (mt_rank() < 2) {
        mt_memory_open(mt_runtime(), mt_rank());
        in = mt_ints_make(MT_DEVICE, COUNT, COUNT, 4);
    }
    if (mt_rank() == 1) { /* rank 0 hears that this one fetches */
        MPI_Send(in, COUNT, MPI_INT, 0, TAG, MPI_COMM_WORLD);
    } else if (mt_rank() == 0) {
        MPI_Recv(out, COUNT, MPI_INT, 1, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    for (int i = 0; i < 2; i++) {
        comms[i] = make_order(i == 1);
    }
    for (int i = 0; i < 4; i++) {
        send_by(comms[i % 2], in, out);
    }
    for (int i = 0; i < 2; i++) {
        MPI_Comm_free(&comms[i]);
    }
    for (int round = 0; round < ROUNDS; round++) {
        comms[0] = make_order(round % 2 == 0);
        send_by(comms[0], in, out);
        MPI_Comm_free(&comms[0]);
    }
    if (in != NULL) {
        mt_free(MT_DEVICE, in);
    }
    free(out);
}

/* What the other threads of the process take of a core while this one sleeps. */
static void sleep_beside(const char *what)
{
    const struct timespec nap = {0, 300 * 1000 * 1000};
    struct timespec       from, to;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
    nanosleep(&nap, NULL);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
    double share = ((double)(to.tv_sec - from.tv_sec) * 1e9 + (double)(to.tv_nsec - from.tv_nsec)) /
                   (double)nap.tv_nsec;
    mt_expect(share < 0.5, "%s are looked at by %.0f %% of a core", what, 100 * share);
}

/* As many messages as are looked at together, once and twice, and some other number of them. */
static void case_many(void)
{
    enum { MOST = 64, FEW = 2000 };
    static const int counts[] = {MOST / 2, MOST, MOST - 5};
    MPI_Request      requests[MOST];
    int             *data = mt_alloc(MT_DEVICE, sizeof(int) * FEW * MOST);

    for (size_t k = 0; k < sizeof(counts) / sizeof(counts[0]); k++) {
        for (int i = 0; (mt_rank() == 0) && (i < counts[k]); i++) {
            MPI_Isend(data + i * FEW, FEW, MPI_INT, 1, TAG, MPI_COMM_WORLD, &requests[i]);
        }
        sleep_beside("sends");
        MPI_Barrier(MPI_COMM_WORLD);
        for (int i = 0; (mt_rank() == 1) && (i < counts[k]); i++) {
            MPI_Irecv(data + i * FEW, FEW, MPI_INT, 0, TAG, MPI_COMM_WORLD, &requests[i]);
        }
        MPI_Waitall(counts[k], requests, MPI_STATUSES_IGNORE);
        for (int i = 0; (mt_rank() == 1) && (i < counts[k]); i++) {
            MPI_Irecv(data + i * FEW, FEW, MPI_INT, 0, TAG, MPI_COMM_WORLD, &requests[i]);
        }
        sleep_beside("receives");
        MPI_Barrier(MPI_COMM_WORLD);
        for (int i = 0; (mt_rank() == 0) && (i < counts[k]); i++) {
            MPI_Isend(data + i * FEW, FEW, MPI_INT, 1, TAG, MPI_COMM_WORLD, &requests[i]);
        }
        MPI_Waitall(counts[k], requests, MPI_STATUSES_IGNORE);
    }
    mt_free(MT_DEVICE, data);
}

/* ---- ranks that count on MPI to take short messages at once ---- */

enum { AHEAD = 200, SHORT = 250 };

static void receive_those_ahead(const char *what)
{
    int *in = mt_ints_make(MT_DEVICE, SHORT, 0, 0);

    for (int i = 0; i < AHEAD; i++) {
        MPI_Recv(in, SHORT, MPI_INT, 1 - mt_rank(), TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        mt_ints_expect(in, MT_DEVICE, SHORT, SHORT, 1 - mt_rank(), i, what);
    }
    mt_free(MT_DEVICE, in);
}

/* More sends than one file each would do for end before anything is received. */
static void send_ahead(void)
{
    MPI_Request requests[AHEAD];
    int        *out[AHEAD];

    mt_meet_on_device();
    for (int i = 0; i < AHEAD; i++) {
        out[i] = mt_ints_make(MT_DEVICE, SHORT, SHORT, i);
        MPI_Isend(out[i], SHORT, MPI_INT, 1 - mt_rank(), TAG, MPI_COMM_WORLD, &requests[i]);
    }
    MPI_Waitall(AHEAD, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < AHEAD; i++) { /* what is sent is the program's again */
        mt_free(MT_DEVICE, out[i]);
    }
    receive_those_ahead("sends that were waited for together");
    for (int i = 0; i < AHEAD; i++) {
        int *one = mt_ints_make(MT_DEVICE, SHORT, SHORT, i);
        MPI_Send(one, SHORT, MPI_INT, 1 - mt_rank(), TAG, MPI_COMM_WORLD);
        mt_free(MT_DEVICE, one);
    }
    receive_those_ahead("sends one after the other");
}

static void case_ahead(void)
{
    send_ahead();
}

static void case_ahead_without_files(void)
{
    mt_meet_on_device();
    use_up_files(300);
    send_ahead();
    allow_files();
}

int main(int argc, char **argv)
{
    static const struct mt_named_case cases[] = {
        {"ahead", case_ahead},
        {"ahead_without_files", case_ahead_without_files},
        {"pieces", case_pieces},
        {"alike", case_alike},
        {"refused", case_refused},
        {"unmade", case_unmade},
        {"answered", case_answered},
        {"files", case_files},
        {"hidden", case_hidden},
        {"alone", case_alone},
        {"reordered", case_reordered},
        {"lost", case_lost},
        {"lost_again", case_lost_again},
        {"lost_beside", case_lost_beside},
        {"late_again", case_late_again},
        {"moment", case_moment},
        {"moment_probed", case_moment_probed},
        {"short_files", case_short_files},
        {"many", case_many},
        {NULL, NULL},
    };
    bool bare =
        (argc > 2) && ((strcmp(argv[2], "alone") == 0) || (strcmp(argv[2], "reordered") == 0));

    mt_begin(&argc, &argv, !bare);
    path = (argc > 3) ? argv[3] : NULL;
    return mt_run_to_end(cases, argc, argv);
}
