/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI-4 sessions.
 * Usage: mpi_session cuda|none alone|again|streams|before|after|across [raise|pmpi|plain]
 *   alone   the program knows sessions only: there is no MPI_COMM_WORLD
 *   again   the same, and others are opened after the last one was finalised
 *   streams the same, and streams were attached to communicators that are never freed
 *   before  the session is open before MPI_Init
 *   after   the session is in use after MPI_Finalize
 *   across  a message of the session's is sent before MPI_Finalize and received after it
 * raise: SIGUSR1 comes, behind MPI_Init if that is called before the session's end
 * pmpi: MPI and the sessions begin by PMPI_..., as from a tool in front of xccl
 * plain: without types that MPI alone can take apart, for which xccl has a session of its own
 */
#include <dlfcn.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <mpi.h>

#include "memory.h"

#if MPI_VERSION >= 4

enum { COUNT = 100000, ROUNDS = 3 };

static int  rank, size, checks, failures;
static bool by_pmpi, plain;

static void fill(int *buffer, int salt)
{
    int *host = malloc(sizeof(int) * COUNT);

    for (int i = 0; i < COUNT; i++) {
        host[i] = rank + i + salt;
    }
    mt_put(buffer, MT_DEVICE, host, sizeof(int) * COUNT);
    free(host);
}

/* Is element i `first` + `step` * i? */
static void expect(const int *buffer, int first, int step, const char *what)
{
    int *host = malloc(sizeof(int) * COUNT);
    int  wrong = 0;

    mt_get(host, buffer, MT_DEVICE, sizeof(int) * COUNT);
    for (int i = 0; i < COUNT; i++) {
        wrong += (host[i] != first + step * i);
    }
    free(host);
    checks++;
    failures += (wrong > 0);
    if (wrong > 0) {
        printf("FAIL rank %d: %s: %d elements are wrong\n", rank, what, wrong);
    }
}

static int *in, *out;

/* Every second element: MPI alone can take such a type apart. */
static MPI_Datatype every_second(void)
{
    int          all = COUNT, distribution = MPI_DISTRIBUTE_CYCLIC, one = 1, parts = 2;
    MPI_Datatype type;

    MPI_Type_create_darray(parts, 0, 1, &all, &distribution, &one, &parts, MPI_ORDER_C, MPI_INT,
                           &type);
    MPI_Type_commit(&type);
    fill(in, 7);
    fill(out, 0);
    return type;
}

/* Every second element is that of rank `from`. */
static void expect_second(int from, const char *what)
{
    int *host = malloc(sizeof(int) * COUNT), wrong = 0;

    mt_get(host, out, MT_DEVICE, sizeof(int) * COUNT);
    for (int i = 0; i < COUNT; i++) {
        wrong += (host[i] != ((i % 2 == 0) ? from + i + 7 : rank + i));
    }
    checks++;
    failures += (wrong > 0);
    if (wrong > 0) {
        printf("FAIL rank %d: %s of MPI_Type_create_darray: %d elements are wrong\n", rank, what,
               wrong);
    }
    free(host);
}

static void exchange_array(MPI_Comm comm)
{
    int          next = (rank + 1) % size, previous = (rank + size - 1) % size;
    MPI_Datatype type = every_second();

    MPI_Sendrecv(in, 1, type, next, 0, out, 1, type, previous, 0, comm, MPI_STATUS_IGNORE);
    expect_second(previous, "MPI_Sendrecv");
    MPI_Type_free(&type);
}

/* One file for all ranks, each with a place of its own. MPICH has no files without MPI_Init. */
static void array_in_file(MPI_Comm comm, MPI_Datatype type)
{
    char       name[64];
    MPI_Offset place = (MPI_Offset)sizeof(int) * COUNT * rank;
    MPI_File   file;
    int        number = (int)getpid();

    MPI_Bcast(&number, 1, MPI_INT, 0, comm);
    snprintf(name, sizeof(name), "/tmp/xccl-session-%d", number);
    fill(out, 0);
    if (MPI_File_open(comm, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE,
                      MPI_INFO_NULL, &file) != MPI_SUCCESS) {
        return;
    }
    MPI_File_write_at(file, place, in, 1, type, MPI_STATUS_IGNORE);
    MPI_File_read_at(file, place, out, 1, type, MPI_STATUS_IGNORE);
    MPI_File_close(&file);
    expect_second(rank, "MPI_File_read_at");
}

/* The calls name no communicator. */
static void array_without_comm(MPI_Comm comm)
{
    int          next = (rank + 1) % size, previous = (rank + size - 1) % size;
    MPI_Datatype type = every_second();
    MPI_Message  message;
    MPI_Request  request;
    MPI_Win      window;
    int         *memory;

    MPI_Isend(in, 1, type, next, 0, comm, &request);
    MPI_Mprobe(previous, 0, comm, &message, MPI_STATUS_IGNORE);
    MPI_Mrecv(out, 1, type, &message, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    expect_second(previous, "MPI_Mrecv");

    fill(out, 0);
    MPI_Win_allocate(sizeof(int) * COUNT, sizeof(int), MPI_INFO_NULL, comm, &memory, &window);
    MPI_Win_fence(0, window);
    MPI_Put(in, 1, type, next, 0, 1, type, window);
    MPI_Win_fence(0, window);
    MPI_Get(out, 1, type, rank, 0, 1, type, window);
    MPI_Win_fence(0, window);
    expect_second(previous, "MPI_Put and MPI_Get");
    MPI_Win_free(&window);
    array_in_file(comm, type);
    MPI_Type_free(&type);
}

static void communicate(MPI_Comm comm)
{
    int         next = (rank + 1) % size, previous = (rank + size - 1) % size;
    MPI_Request request;

    for (int round = 0; round < ROUNDS; round++) {
        int sum = size * (size - 1) / 2 + size * round;
        fill(in, round);
        MPI_Sendrecv(in, COUNT, MPI_INT, next, 0, out, COUNT, MPI_INT, previous, 0, comm,
                     MPI_STATUS_IGNORE);
        expect(out, previous + round, 1, "MPI_Sendrecv");
        MPI_Allreduce(in, out, COUNT, MPI_INT, MPI_SUM, comm);
        expect(out, sum, size, "MPI_Allreduce");
        MPI_Allreduce_init(in, out, COUNT, MPI_INT, MPI_SUM, comm, MPI_INFO_NULL, &request);
        fill(out, 99);
        MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        expect(out, sum, size, "MPI_Allreduce_init");
        MPI_Request_free(&request);
    }
}

/* Both know by now that the other one can fetch. */
static void send_across(MPI_Comm comm)
{
    MPI_Request request = MPI_REQUEST_NULL;

    communicate(MPI_COMM_WORLD);
    fill(in, 5);
    if (rank == 0) {
        MPI_Isend(in, COUNT, MPI_INT, 1, 0, comm, &request);
    }
    MPI_Finalize();
    if (rank == 1) {
        MPI_Recv(out, COUNT, MPI_INT, 0, 0, comm, MPI_STATUS_IGNORE);
        expect(out, 5, 1, "a message across MPI_Finalize");
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

static void begin_world(int *argc, char ***argv)
{
    if (by_pmpi) {
        PMPI_Init(argc, argv);
    } else {
        MPI_Init(argc, argv);
    }
}

static MPI_Comm open_session(MPI_Session *session)
{
    MPI_Group group;
    MPI_Comm  comm;

    if (by_pmpi) {
        PMPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, session);
    } else {
        MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, session);
    }
    MPI_Group_from_session_pset(*session, "mpi://WORLD", &group);
    MPI_Comm_create_from_group(group, "xccl", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
    MPI_Group_free(&group);
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    return comm;
}

static void open_memory(const char *runtime)
{
    mt_memory_open(runtime, rank);
    in = mt_alloc(MT_DEVICE, sizeof(int) * COUNT);
    out = mt_alloc(MT_DEVICE, sizeof(int) * COUNT);
}

static void summary(MPI_Comm comm)
{
    int all[2], mine[2] = {checks, failures};

    MPI_Reduce(mine, all, 2, MPI_INT, MPI_SUM, 0, comm);
    if (rank == 0) {
        printf("%d checks, %d failures\n", all[0], all[1]);
    }
}

/* MPICH 4.0 has none of these functions: xccl's are found by their names. */
static void *function(const char *name)
{
    void *found = dlsym(RTLD_DEFAULT, name);

    if (found == NULL) {
        fprintf(stderr, "no %s\n", name);
        MPI_Abort(MPI_COMM_SELF, 2);
    }
    return found;
}

/* A communicator with the device's default stream, which is left to the end of MPI. */
static void attach_stream(MPI_Comm comm)
{
    int (*set_hex)(MPI_Info, const char *, const void *, int);
    int (*create)(MPI_Info, int *);
    int (*attach)(MPI_Comm, int, MPI_Comm *);
    void    *stream = NULL;
    int      handle;
    MPI_Info info;
    MPI_Comm made;

    *(void **)&set_hex = function("MPIX_Info_set_hex");
    *(void **)&create = function("MPIX_Stream_create");
    *(void **)&attach = function("MPIX_Stream_comm_create");
    MPI_Info_create(&info);
    MPI_Info_set(info, "type", "cudaStream_t");
    set_hex(info, "value", &stream, sizeof(stream));
    checks++;
    failures +=
        (create(info, &handle) != MPI_SUCCESS) || (attach(comm, handle, &made) != MPI_SUCCESS);
    MPI_Info_free(&info);
}

/* Communicators that have the handles of such ones, of before, have no stream that goes with them.
 */
static void make_and_free(MPI_Comm comm)
{
    enum { SOME = 4 };
    MPI_Comm comms[SOME];

    for (int i = 0; i < SOME; i++) {
        MPI_Comm_dup(comm, &comms[i]);
    }
    for (int i = 0; i < SOME; i++) {
        communicate(comms[i]);
        checks++;
        failures += (MPI_Comm_free(&comms[i]) != MPI_SUCCESS);
    }
}

/* After the last one MPI is at its end, and begins anew. */
static MPI_Comm open_others(MPI_Comm comm, MPI_Session *session, bool streams)
{
    enum { TIMES = 3 };

    for (int i = 0; i < TIMES; i++) {
        if (streams) {
            attach_stream(comm);
        }
        MPI_Comm_free(&comm);
        MPI_Session_finalize(session);
        comm = open_session(session);
        if (streams) {
            make_and_free(comm);
        }
        communicate(comm);
    }
    return comm;
}

/* Some ranks have used MPI before, and with it xccl, when all make a grid. */
static void exchange_on_grid(MPI_Comm comm)
{
    int      all[] = {size}, periodic[] = {1}, mine[] = {rank, rank + 100}, got[2];
    MPI_Comm ring;

    if (rank == 0) {
        MPI_Sendrecv(mine, 1, MPI_INT, 0, 0, got, 1, MPI_INT, 0, 0, comm, MPI_STATUS_IGNORE);
    }
    MPI_Cart_create(comm, 1, all, periodic, 0, &ring);
    MPI_Neighbor_alltoall(mine, 1, MPI_INT, got, 1, MPI_INT, ring);
    checks++;
    if ((got[0] != (rank + size - 1) % size + 100) || (got[1] != (rank + 1) % size)) {
        failures++;
        printf("FAIL rank %d: %d and %d have come\n", rank, got[0], got[1]);
    }
    MPI_Comm_free(&ring);
}

int main(int argc, char **argv)
{
    MPI_Session session;
    const char *mode = (argc > 2) ? argv[2] : "alone";
    bool        before = (strcmp(mode, "before") == 0), after = (strcmp(mode, "after") == 0);
    bool        across = (strcmp(mode, "across") == 0);

    by_pmpi = (argc > 3) && (strcmp(argv[3], "pmpi") == 0);
    plain = (argc > 3) && (strcmp(argv[3], "plain") == 0);
    if (after || across) {
        begin_world(&argc, &argv);
    }
    MPI_Comm comm = open_session(&session);
    if (strcmp(mode, "grid") == 0) {
        exchange_on_grid(comm);
    }
    open_memory((argc > 1) ? argv[1] : "none");
    communicate(comm);
    if (!plain) {
        exchange_array(comm);
        array_without_comm(comm);
    }
    bool streams = (strcmp(mode, "streams") == 0);
    if (streams || (strcmp(mode, "again") == 0)) {
        comm = open_others(comm, &session, streams);
    }
    if (before) {
        begin_world(&argc, &argv);
    }
    if ((argc > 3) && !by_pmpi && !plain) {
        raise(SIGUSR1);
    }
    if (before || after) {
        communicate(MPI_COMM_WORLD);
        communicate(comm);
        MPI_Finalize();
    } else if (across) {
        send_across(comm);
    }
    communicate(comm);
    if (before || after || across) { /* MPICH 4.3 has no such types once it has begun anew */
        exchange_array(comm);
        array_without_comm(comm);
    }
    mt_free(MT_DEVICE, in);
    mt_free(MT_DEVICE, out);
    summary(comm);
    MPI_Comm_free(&comm);
    MPI_Session_finalize(&session);
    return failures > 0;
}

#else

int main(void)
{
    fprintf(stderr, "this MPI has no sessions\n");
    return 64;
}

#endif
