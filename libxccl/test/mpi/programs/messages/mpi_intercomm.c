/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages between the two groups of an intercommunicator, whose ranks are those of the other
 * group: 2 to 8 ranks.
 * Usage: mpi_intercomm cuda|rocm|none CASE [PATH]
 *   halves  the first and the second half of MPI_COMM_WORLD
 *   parity  those, and then the even and the odd ranks, on what may be the same handle; a duplicate
 *   accept  the halves by MPI_Comm_accept and MPI_Comm_connect
 *   join    rank 0 and rank 1 by MPI_Comm_join
 * PATH: what xccl_mpi_last_message_path() is to say of long sends.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support.h"
#include "types.h"

enum { COUNT = 20000, FEW = 15, ROWS = 40, COLUMNS = 500, TAG = 5, MOST = 8, ROUNDS = 3 };

static const char *path;

/* Ranks of MPI_COMM_WORLD that the other group has: values tell of them. */
static int others, world_ranks[MOST];

static MPI_Datatype type_vector(void)
{
    MPI_Datatype type;

    MPI_Type_vector(ROWS, COLUMNS - 1, COLUMNS, MPI_INT, &type);
    MPI_Type_commit(&type);
    return type;
}

static void expect_holes(const int *buffer, int from, int salt, const char *what)
{
    int *host = malloc(sizeof(int) * COUNT), wrong = 0;

    mt_get(host, buffer, MT_DEVICE, sizeof(int) * COUNT);
    for (int i = 0; i < COUNT; i++) {
        bool hole = (i % COLUMNS == COLUMNS - 1);
        wrong += host[i] != (hole ? MT_UNTOUCHED : mt_value(from, salt, i));
    }
    mt_expect(wrong == 0, "%s: %d of %d integers are wrong", what, wrong, COUNT);
    free(host);
}

/* Each rank of one group sends to each of the other one, which receives in the opposite order. */
static void one_way(MPI_Comm comm, bool sends, int count, int salt, const char *what)
{
    int       *in = mt_ints_make(MT_DEVICE, COUNT, count, salt);
    MPI_Status status;

    for (int i = 0; sends && (i < others); i++) {
        MPI_Send(in, count, MPI_INT, i, TAG, comm);
        mt_expect_message_path((count == COUNT) ? path : NULL, what);
    }
    for (int i = others - 1; !sends && (i >= 0); i--) {
        int *out = mt_ints_make(MT_DEVICE, COUNT, 0, 0);
        MPI_Recv(out, count, MPI_INT, i, TAG, comm, &status);
        mt_expect_status(&status, i, TAG, count, what);
        mt_ints_expect(out, MT_DEVICE, COUNT, count, world_ranks[i], salt, what);
        mt_free(MT_DEVICE, out);
    }
    mt_free(MT_DEVICE, in);
}

/* From whomever, after a look at what comes. */
static void from_any(MPI_Comm comm, int count, int salt)
{
    int        *in = mt_ints_make(MT_DEVICE, COUNT, count, salt);
    MPI_Request requests[MOST];
    MPI_Status  probed, status;

    for (int i = 0; i < others; i++) {
        MPI_Isend(in, count, MPI_INT, i, TAG, comm, &requests[i]);
    }
    for (int i = 0; i < others; i++) {
        int *out = mt_ints_make(MT_DEVICE, COUNT, 0, 0);
        MPI_Probe(MPI_ANY_SOURCE, TAG, comm, &probed);
        mt_expect_status(&probed, probed.MPI_SOURCE, TAG, count, "MPI_Probe");
        MPI_Recv(out, count, MPI_INT, probed.MPI_SOURCE, MPI_ANY_TAG, comm, &status);
        mt_expect_status(&status, probed.MPI_SOURCE, TAG, count, "MPI_Recv of any tag");
        mt_ints_expect(out, MT_DEVICE, COUNT, count, world_ranks[status.MPI_SOURCE], salt,
                       "MPI_Recv of a probed message");
        mt_free(MT_DEVICE, out);
    }
    MPI_Waitall(others, requests, MPI_STATUSES_IGNORE);
    MPI_Barrier(comm); /* nobody takes what comes next for one of these */
    mt_free(MT_DEVICE, in);
}

static void by_type(MPI_Comm comm, MPI_Datatype sent, MPI_Datatype received, int salt,
                    const char *what)
{
    int        *in = mt_ints_make(MT_DEVICE, COUNT, COUNT, salt), *out[MOST];
    MPI_Request requests[2 * MOST];
    MPI_Status  statuses[2 * MOST];

    for (int i = 0; i < others; i++) {
        out[i] = mt_ints_make(MT_DEVICE, COUNT, 0, 0);
        MPI_Irecv(out[i], 1, received, i, TAG, comm, &requests[i]);
    }
    for (int i = 0; i < others; i++) {
        MPI_Isend(in, 1, sent, i, TAG, comm, &requests[others + i]);
    }
    MPI_Waitall(2 * others, requests, statuses);
    for (int i = 0; i < others; i++) {
        mt_expect_status(&statuses[i], i, TAG, COUNT - ROWS, what);
        expect_holes(out[i], world_ranks[i], salt, what);
        mt_free(MT_DEVICE, out[i]);
    }
    mt_free(MT_DEVICE, in);
}

static void crosswise(MPI_Comm comm, int salt)
{
    int *in = mt_ints_make(MT_DEVICE, COUNT, COUNT, salt), me, size;

    MPI_Comm_rank(comm, &me);
    MPI_Comm_size(comm, &size);
    if (size == others) {
        int *out = mt_ints_make(MT_DEVICE, COUNT, 0, 0);
        MPI_Sendrecv(in, COUNT, MPI_INT, me, TAG, out, COUNT, MPI_INT, me, TAG, comm,
                     MPI_STATUS_IGNORE);
        mt_ints_expect(out, MT_DEVICE, COUNT, COUNT, world_ranks[me], salt, "MPI_Sendrecv");
        mt_free(MT_DEVICE, out);
    }
    mt_free(MT_DEVICE, in);
}

/* All know that all use a device, as fetching needs, once they have met on it. */
static void communicate(MPI_Comm comm, bool first_group)
{
    int          me = mt_rank();
    MPI_Datatype vector = type_vector(), darray = mt_darray_make(ROWS, COLUMNS);

    MPI_Comm_remote_size(comm, &others);
    MPI_Allgather(&me, 1, MPI_INT, world_ranks, 1, MPI_INT, comm);
    for (int i = 0; i < ROUNDS; i++) {
        one_way(comm, first_group, FEW, i, "a short message there");
        one_way(comm, !first_group, FEW, i + 1, "a short message back");
        MPI_Barrier(comm);
    }
    one_way(comm, first_group, COUNT, 3, "a long message there");
    one_way(comm, !first_group, COUNT, 4, "a long message back");
    from_any(comm, FEW, 5);
    from_any(comm, COUNT, 6);
    crosswise(comm, 7);
    by_type(comm, vector, vector, 8, "a vector");
    by_type(comm, vector, darray, 9, "a vector to a darray");
    by_type(comm, darray, vector, 10, "a darray to a vector");
    MPI_Type_free(&vector);
    MPI_Type_free(&darray);
}

/* first: is this rank of the group whose leader is rank 0? leader: of the other one. */
static MPI_Comm between(bool first, int other_leader)
{
    MPI_Comm mine, comm;

    MPI_Comm_split(MPI_COMM_WORLD, first, 0, &mine);
    MPI_Intercomm_create(mine, 0, MPI_COMM_WORLD, first ? other_leader : 0, TAG, &comm);
    MPI_Comm_free(&mine);
    return comm;
}

static bool in_first_half(void)
{
    return mt_rank() < mt_size() / 2;
}

static void case_halves(void)
{
    MPI_Comm comm = between(in_first_half(), mt_size() / 2);

    communicate(comm, in_first_half());
    MPI_Comm_free(&comm);
}

/* What is known of a rank must not outlive the communicator. */
static void case_parity(void)
{
    bool     even = (mt_rank() % 2 == 0);
    MPI_Comm comm, twin;

    case_halves();
    comm = between(even, 1);
    communicate(comm, even);
    MPI_Comm_dup(comm, &twin);
    MPI_Comm_free(&comm);
    communicate(twin, even);
    MPI_Comm_free(&twin);
}

/*
 * Where MPI cannot do it here, nothing was checked, and the program says so. all: on every rank;
 * else an abort ends the others, which may take along what this one has printed: the status stays.
 */
enum { UNABLE = 77 };

static void unable(int code, const char *what, bool all)
{
    char text[MPI_MAX_ERROR_STRING];
    int  length;

    MPI_Error_string(code, text, &length);
    printf("%s is not possible here: %s\n", what, text);
    fflush(stdout);
    if (all) {
        MPI_Finalize();
        exit(UNABLE);
    }
    MPI_Abort(MPI_COMM_WORLD, UNABLE);
}

static void case_accept(void)
{
    bool     first = in_first_half();
    char     port[MPI_MAX_PORT_NAME] = "";
    MPI_Comm mine, comm;
    int      code = MPI_SUCCESS;

    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_split(MPI_COMM_WORLD, first, 0, &mine);
    if (mt_rank() == 0) {
        code = MPI_Open_port(MPI_INFO_NULL, port);
    }
    MPI_Bcast(&code, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (code != MPI_SUCCESS) {
        unable(code, "MPI_Open_port", true);
    }
    MPI_Bcast(port, sizeof(port), MPI_CHAR, 0, MPI_COMM_WORLD);
    code = first ? MPI_Comm_accept(port, MPI_INFO_NULL, 0, mine, &comm)
                 : MPI_Comm_connect(port, MPI_INFO_NULL, 0, mine, &comm);
    if (code != MPI_SUCCESS) {
        unable(code, first ? "MPI_Comm_accept" : "MPI_Comm_connect", false);
    }
    communicate(comm, first);
    MPI_Comm_disconnect(&comm);
    if (mt_rank() == 0) {
        MPI_Close_port(port);
    }
    MPI_Comm_free(&mine);
}

/* A connection of rank 0 and rank 1 over TCP. */
static int connection(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t          length = sizeof(address);
    int                fd = socket(AF_INET, SOCK_STREAM, 0), port = 0;
    struct sockaddr   *to = (struct sockaddr *)&address;

    if (mt_rank() == 0) {
        bool listens = (bind(fd, to, length) == 0) && (listen(fd, 1) == 0) &&
                       (getsockname(fd, to, &length) == 0);
        port = listens ? address.sin_port : 0;
        MPI_Send(&port, 1, MPI_INT, 1, TAG, MPI_COMM_WORLD);
        int accepted = listens ? accept(fd, NULL, NULL) : -1;
        close(fd);
        return accepted;
    }
    MPI_Recv(&port, 1, MPI_INT, 0, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    address.sin_port = (in_port_t)port;
    return (connect(fd, to, length) == 0) ? fd : -1;
}

static void case_join(void)
{
    MPI_Comm comm;
    int      fd = connection();

    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    int code = MPI_Comm_join(fd, &comm);
    if (code != MPI_SUCCESS) {
        unable(code, "MPI_Comm_join", false);
    }
    communicate(comm, mt_rank() == 0);
    MPI_Comm_disconnect(&comm);
    close(fd);
}

int main(int argc, char **argv)
{
    const struct mt_named_case cases[] = {
        {"halves", case_halves},
        {"parity", case_parity},
        {"accept", case_accept},
        {"join", case_join},
        {NULL, NULL},
    };

    mt_begin_at(MPI_THREAD_SINGLE, &argc, &argv, true);
    path = (argc > 3) ? argv[3] : NULL;
    return mt_run_to_end(cases, argc, argv);
}
