/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Error handlers of non-blocking collectives that fail: whose is called, and what it may do.
 * Usage: mpi_handlers cuda|rocm|none CASE
 * A truncated MPI_Ibcast fails in MPI; with XCCL_TIMEOUT=1 an MPI_Iallreduce fails in xccl. The
 * starts of persistent ones do so alike. asks, asks_jumps: what xccl itself has posted fails, with
 * mpich_erring.c.
 */
#include <dlfcn.h>
#include <setjmp.h>
#include <string.h>
#include <unistd.h>

#include "support.h"

enum { COUNT = 4000, SHORT = 16 };

typedef int allreduce_init(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm, MPI_Info,
                           MPI_Request *);
typedef int bcast_init(void *, int, MPI_Datatype, int, MPI_Comm, MPI_Info, MPI_Request *);

static MPI_Comm       comm, other;
static int            heard, heard_world;
static jmp_buf        before;
static struct mt_pair pair;
static void (*action)(void); /* of the communicator's handler */
static bool acting;

static void hear_world(MPI_Comm *failed, int *code, ...)
{
    (void)failed;
    (void)code;
    heard_world++;
}

static void hear(MPI_Comm *failed, int *code, ...)
{
    (void)failed;
    (void)code;
    heard++;
    if (!acting && (action != NULL)) {
        acting = true;
        action();
        acting = false;
    }
}

/* Open MPI 4.1 does not know of such requests whose they are: their errors are the world's. */
static void prepare(void (*what)(void))
{
    MPI_Errhandler own, world;

    action = what;
    pair = mt_pair_make(MT_DEVICE, COUNT);
    MPI_Comm_dup(MPI_COMM_SELF, &other);
    mt_pair_allreduce(&pair, COUNT, other, 1);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_create_errhandler(hear, &own);
    MPI_Comm_set_errhandler(comm, own);
    MPI_Comm_create_errhandler((what == NULL) ? hear_world : hear, &world);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, world);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, world);
}

static void start(void *buffer, MPI_Request *request)
{
    MPI_Ibcast(buffer, (mt_rank() == 0) ? COUNT : SHORT, MPI_INT, 0, comm, request);
}

static void still_usable(void)
{
    MPI_Request request;

    for (int i = 0; i < 2; i++) {
        mt_pair_fill(&pair, COUNT, MPI_COMM_WORLD, i);
        MPI_Iallreduce(pair.in, pair.out, COUNT, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        mt_pair_expect_sum(&pair, COUNT, mt_size(), i, "afterwards");
    }
}

/* MPICH 4.3 calls the handler, and says that the call went well. */
static bool mpi_returns_code(void)
{
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int  length;

    MPI_Get_library_version(version, &length);
    return (strncmp(version, "MPICH", 5) != 0) || (strstr(version, "4.0.") != NULL);
}

static void expect_failed(int code, bool fails)
{
    mt_expect((code != MPI_SUCCESS) == fails || !mpi_returns_code(), "code %d", code);
    mt_expect(heard + heard_world == fails, "handlers were called %d and, the world's, %d times",
              heard, heard_world);
}

static void case_once(void)
{
    int        *buffer = mt_ints_make(MT_DEVICE, COUNT, 0, 0);
    MPI_Request request;

    prepare(NULL);
    start(buffer, &request);
    expect_failed(MPI_Wait(&request, MPI_STATUS_IGNORE), mt_rank() != 0);
    still_usable();
}

/* By each function. */
static int complete(int how, MPI_Request *request)
{
    MPI_Status status;
    int        code = MPI_SUCCESS, flag = 0, some;

    switch (how) {
    case 0:
        return MPI_Wait(request, MPI_STATUS_IGNORE);
    case 1:
        while (!flag && (code == MPI_SUCCESS)) {
            code = MPI_Test(request, &flag, MPI_STATUS_IGNORE);
        }
        return code;
    case 2:
        return MPI_Waitall(1, request, &status);
    case 3:
        return MPI_Waitall(1, request, MPI_STATUSES_IGNORE);
    case 4:
        return MPI_Waitany(1, request, &some, MPI_STATUS_IGNORE);
    default:
        return MPI_Waitsome(1, request, &flag, &some, MPI_STATUSES_IGNORE);
    }
}

static void fail_persistent(enum mt_where memory)
{
    int        *buffer = mt_ints_make(memory, COUNT, 0, 0);
    MPI_Request request;
    bcast_init *make;

    *(void **)&make = mt_find("MPI_Bcast_init");
    prepare(NULL);
    make(buffer, (mt_rank() == 0) ? COUNT : SHORT, MPI_INT, 0, comm, MPI_INFO_NULL, &request);
    for (int how = 0; how < 6; how++) {
        heard = heard_world = 0;
        MPI_Start(&request);
        expect_failed(complete(how, &request), mt_rank() != 0);
    }
    MPI_Request_free(&request);
    still_usable();
}

/* It is staged: kernels would take the shorter length for the length of all. */
static void case_persistent(void)
{
    fail_persistent(MT_DEVICE);
}

/* The rank that fails has host memory, and MPI's own request behind its persistent one. */
static void case_persistent_on_host(void)
{
    fail_persistent((mt_rank() == 0) ? MT_DEVICE : MT_HOST);
}

/* For one that ends well, and one that fails. */
static void wait_for_both(MPI_Request requests[2], bool ignore)
{
    MPI_Status statuses[2];
    int class;

    heard = 0;
    int code = MPI_Waitall(2, requests, ignore ? MPI_STATUSES_IGNORE : statuses);
    MPI_Error_class(code, &class);
    mt_expect(class == MPI_ERR_IN_STATUS, "class %d", class);
    mt_expect((heard == 1) && (heard_world == 0), "handlers were called %d and %d times", heard,
              heard_world);
    if (!ignore) {
        mt_expect(statuses[0].MPI_ERROR == MPI_SUCCESS, "the good one has an error");
        mt_expect(statuses[1].MPI_ERROR != MPI_SUCCESS, "the one that failed has none");
    }
    mt_expect((requests[0] == MPI_REQUEST_NULL) && (requests[1] == MPI_REQUEST_NULL), "they stay");
}

static void expire(int kind)
{
    MPI_Request requests[2];
    int         code, index;

    heard = 0;
    mt_pair_fill(&pair, COUNT, comm, 0);
    MPI_Iallreduce(pair.in, pair.out, COUNT, MPI_FLOAT, MPI_SUM, comm, &requests[1]);
    switch (kind) {
    case 0:
        code = MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
        break;
    case 1:
        requests[0] = MPI_REQUEST_NULL;
        code = MPI_Waitany(2, requests, &index, MPI_STATUS_IGNORE);
        break;
    default:
        MPI_Ibarrier(MPI_COMM_SELF, &requests[0]);
        wait_for_both(requests, kind == 2);
        return;
    }
    mt_expect(code != MPI_SUCCESS, "it went well");
    mt_expect((heard == 1) && (heard_world == 0), "handlers were called %d and %d times", heard,
              heard_world);
}

/* The other ranks come to them when rank 0 has given up. */
static void case_expires(void)
{
    enum { KINDS = 4 };
    MPI_Comm    comms[KINDS];
    MPI_Request request;

    prepare(NULL);
    for (int kind = 0; kind < KINDS; kind++) {
        MPI_Comm_dup(comm, &comms[kind]);
    }
    for (int kind = 0; (kind < KINDS) && (mt_rank() == 0); kind++) {
        comm = comms[kind];
        expire(kind);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    for (int kind = 0; (kind < KINDS) && (mt_rank() != 0); kind++) {
        MPI_Iallreduce(pair.in, pair.out, COUNT, MPI_FLOAT, MPI_SUM, comms[kind], &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
}

/* The other ranks come to it when rank 0 has given up. The program has freed the communicator. */
static void case_persistent_expires(void)
{
    MPI_Request     request;
    allreduce_init *make;

    *(void **)&make = mt_find("MPI_Allreduce_init");
    prepare(NULL);
    mt_pair_fill(&pair, COUNT, comm, 0);
    make(pair.in, pair.out, COUNT, MPI_FLOAT, MPI_SUM, comm, MPI_INFO_NULL, &request);
    MPI_Comm_free(&comm);
    if (mt_rank() == 0) {
        MPI_Start(&request);
        int code = MPI_Wait(&request, MPI_STATUS_IGNORE);
        mt_expect(code != MPI_SUCCESS, "it went well");
        mt_expect((heard == 1) && (heard_world == 0), "handlers were called %d and %d times", heard,
                  heard_world);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (mt_rank() != 0) {
        MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
}

static void with_action(void (*what)(void))
{
    int               *buffer = mt_ints_make(MT_DEVICE, COUNT, 0, 0);
    static MPI_Request request;

    prepare(what);
    if (setjmp(before) == 0) {
        start(buffer, &request);
        expect_failed(MPI_Wait(&request, MPI_STATUS_IGNORE), mt_rank() != 0);
    } else if (request != MPI_REQUEST_NULL) {
        int code = MPI_Wait(&request, MPI_STATUS_IGNORE);
        mt_expect(code != MPI_SUCCESS, "the call that was left went well");
    }
    mt_expect((heard > 0) == (mt_rank() != 0), "the handler was called %d times", heard);
    still_usable();
}

static void free_other(void)
{
    if (other != MPI_COMM_NULL) {
        MPI_Comm_free(&other);
    }
}

static void reduce_other(void)
{
    MPI_Request request;

    MPI_Iallreduce(pair.in, pair.out, COUNT, MPI_FLOAT, MPI_SUM, MPI_COMM_SELF, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void jump(void)
{
    acting = false;
    longjmp(before, 1);
}

static void case_frees(void)
{
    with_action(free_other);
}

static void case_starts(void)
{
    with_action(reduce_other);
}

static void case_jumps(void)
{
    with_action(jump);
}

static MPI_Request long_one;

static void look(void)
{
    int        flag;
    MPI_Status status;

    MPI_Request_get_status(long_one, &flag, &status);
}

/* Some MPIs report a truncated message in MPI_Request_get_status already, and some after it. */
static void case_looks(void)
{
    int        *first = mt_ints_make(MT_DEVICE, COUNT, 0, 0);
    int        *second = mt_ints_make(MT_DEVICE, COUNT, COUNT, 1);
    int         flag = 0, code = MPI_SUCCESS;
    MPI_Request request;

    prepare(look);
    if (mt_rank() == 0) {
        MPI_Irecv(first, SHORT / 4, MPI_INT, 1, 1, comm, &request);
        MPI_Irecv(second, COUNT, MPI_INT, 1, 2, comm, &long_one);
        MPI_Barrier(MPI_COMM_WORLD);
        sleep(1); /* both messages have come */
        while (!flag && (code == MPI_SUCCESS)) {
            code = MPI_Request_get_status(request, &flag, MPI_STATUS_IGNORE);
        }
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        mt_expect(heard > 0, "no handler was called");
        MPI_Wait(&long_one, MPI_STATUS_IGNORE);
    } else {
        MPI_Isend(second, 4 * SHORT, MPI_INT, 0, 2, comm, &long_one);
        MPI_Isend(second, SHORT / 2, MPI_INT, 0, 1, comm, &request);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Wait(&long_one, MPI_STATUS_IGNORE);
    }
    still_usable();
}

/* Of two messages that are fetched the second is too long: both requests are over. */
static void case_waits(void)
{
    int               *first = mt_ints_make(MT_DEVICE, COUNT, COUNT, 1);
    int               *second = mt_ints_make(MT_DEVICE, COUNT, COUNT, 1);
    static MPI_Request requests[2];

    mt_meet_on_device();
    prepare(jump);
    if (mt_rank() == 0) {
        MPI_Irecv(first, COUNT, MPI_INT, 1, 1, comm, &requests[0]);
        MPI_Irecv(second, COUNT / 2, MPI_INT, 1, 2, comm, &requests[1]);
        if (setjmp(before) == 0) {
            MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        }
        mt_expect(heard == 1, "the handler was called %d times", heard);
        mt_expect(requests[0] == MPI_REQUEST_NULL, "the first request is still there");
        mt_expect(requests[1] == MPI_REQUEST_NULL, "the second request is still there");
    } else {
        MPI_Isend(first, COUNT, MPI_INT, 0, 1, comm, &requests[0]);
        MPI_Isend(second, COUNT, MPI_INT, 0, 2, comm, &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    }
    still_usable();
}

static void free_and_hear(void)
{
    heard++;
    free_other();
}

static void hear_and_jump(void)
{
    heard++;
    jump();
}

/* One of a communicator for which NCCL's is made, and whose waits MPI leaves by its handler. */
static int sum_while(void (**while_testing_p)(void), void (*handler)(void), int round)
{
    static MPI_Request request;
    volatile int       left = 0;

    mt_pair_fill(&pair, COUNT, comm, round);
    MPI_Iallreduce(pair.in, pair.out, COUNT, MPI_FLOAT, MPI_SUM, comm, &request);
    *while_testing_p = (heard == 0) ? handler : NULL;
    if (setjmp(before) != 0) {
        left = 1;
    }
    int code = MPI_Wait(&request, MPI_STATUS_IGNORE);
    *while_testing_p = NULL;
    if (!left) {
        mt_expect(code == MPI_SUCCESS, "round %d: code %d", round, code);
        mt_pair_expect_sum(&pair, COUNT, mt_size(), round, "while the ranks agree");
    }
    return left;
}

/* The other ranks hear of nothing; how the calls go on is the same on all. */
static void ask(void (*handler)(void))
{
    enum { ROUNDS = 40 };
    void (**while_testing_p)(void);

    *(void **)&while_testing_p = dlsym(RTLD_DEFAULT, "mt_while_testing");
    prepare(NULL);
    for (int round = 0; (while_testing_p != NULL) && (round < ROUNDS); round++) {
        sum_while(while_testing_p, (mt_rank() == 1) ? handler : NULL, round);
    }
    mt_expect(heard == (mt_rank() == 1), "the handler was called %d times", heard);
    mt_pair_allreduce(&pair, COUNT, comm, 1);
    MPI_Comm_free(&comm);
    still_usable();
}

static void case_asks(void)
{
    ask(free_and_hear);
}

static void case_asks_jumps(void)
{
    ask(hear_and_jump);
}

int main(int argc, char **argv)
{
    static const struct mt_named_case cases[] = {
        {"looks", case_looks},
        {"waits", case_waits},
        {"once", case_once},
        {"expires", case_expires},
        {"frees", case_frees},
        {"starts", case_starts},
        {"jumps", case_jumps},
        {"asks", case_asks},
        {"asks_jumps", case_asks_jumps},
        {"persistent", case_persistent},
        {"persistent_on_host", case_persistent_on_host},
        {"persistent_expires", case_persistent_expires},
        {NULL, NULL},
    };

    /* With threads MPICH takes no call in a handler, and none after a jump. */
    mt_begin_at(MPI_THREAD_SINGLE, &argc, &argv, true);
    return mt_run_to_end(cases, argc, argv);
}
