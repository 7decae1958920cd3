/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datatypes that the program frees while persistent collectives need them: they go with the last
 * request that does, neither before nor later. The end of a type is told by its attribute.
 * Usage: mpi_own_types cuda|rocm CASE
 */
#include <stdlib.h>
#include <string.h>

#include "support.h"

enum { PART = 30, MOST = 8, COUNT = 2 * PART * MOST };

typedef int allreduce_init(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm, MPI_Info,
                           MPI_Request *);
typedef int alltoall_init(const void *, int, MPI_Datatype, void *, int, MPI_Datatype, MPI_Comm,
                          MPI_Info, MPI_Request *);
typedef int alltoallw_init(const void *, const int *, const int *, const MPI_Datatype *, void *,
                           const int *, const int *, const MPI_Datatype *, MPI_Comm, MPI_Info,
                           MPI_Request *);

static allreduce_init *allreduce;
static alltoall_init  *alltoall;
static alltoallw_init *alltoallw;

static int key, ended;

static int end(MPI_Datatype type, int number, void *value, void *extra)
{
    (void)type, (void)number, (void)value, (void)extra;
    ended++;
    return MPI_SUCCESS;
}

/* PART floats with holes between them, or without. */
static MPI_Datatype make_type(bool holes)
{
    MPI_Datatype type;

    MPI_Type_vector(PART / 2, 2, holes ? 3 : 2, MPI_FLOAT, &type);
    MPI_Type_commit(&type);
    MPI_Type_set_attr(type, key, NULL);
    return type;
}

static void expect_ended(int number, const char *when)
{
    mt_expect(ended == number, "%d types have ended %s, and not %d", ended, when, number);
}

static void start_twice(MPI_Request *request)
{
    for (int i = 0; i < 2; i++) {
        MPI_Start(request);
        MPI_Wait(request, MPI_STATUS_IGNORE);
    }
}

/* The request has types of its own, which refer to those that the program has freed. */
static void case_moved(void)
{
    float       *in = mt_alloc(MT_DEVICE, sizeof(float) * COUNT);
    float       *out = mt_alloc(MT_DEVICE, sizeof(float) * COUNT);
    MPI_Datatype sent = make_type(true), received = make_type(false);
    MPI_Request  request;

    alltoall(in, 1, sent, out, 1, received, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    MPI_Type_free(&sent);
    MPI_Type_free(&received);
    expect_ended(0, "with a request");
    start_twice(&request);
    expect_ended(0, "with a request that was started");
    MPI_Request_free(&request);
    expect_ended(2, "after their request");
    mt_free(MT_DEVICE, in);
    mt_free(MT_DEVICE, out);
}

/* One for each block. */
static void case_arrays(void)
{
    float       *in = mt_alloc(MT_DEVICE, sizeof(float) * COUNT);
    float       *out = mt_alloc(MT_DEVICE, sizeof(float) * COUNT);
    MPI_Datatype sent[MOST], received[MOST];
    int          counts[MOST], places[MOST], ranks = mt_size();
    MPI_Request  request;

    for (int i = 0; i < ranks; i++) {
        counts[i] = 1;
        places[i] = 2 * PART * i * (int)sizeof(float);
        sent[i] = make_type(true);
        received[i] = make_type(false);
    }
    alltoallw(in, counts, places, sent, out, counts, places, received, MPI_COMM_WORLD,
              MPI_INFO_NULL, &request);
    for (int i = 0; i < ranks; i++) {
        MPI_Datatype both[] = {sent[i], received[i]}; /* Open MPI reads the arrays later */
        MPI_Type_free(&both[0]);
        MPI_Type_free(&both[1]);
    }
    expect_ended(0, "with a request");
    start_twice(&request);
    expect_ended(0, "with a request that was started");
    MPI_Request_free(&request);
    expect_ended(2 * ranks, "after their request");
    mt_free(MT_DEVICE, in);
    mt_free(MT_DEVICE, out);
}

static void add(void *in, void *inout, int *count, MPI_Datatype *type)
{
    (void)in, (void)inout, (void)count, (void)type;
}

static MPI_Request reduce(const float *in, float *out, MPI_Datatype type, MPI_Op op)
{
    MPI_Request request;

    allreduce(in, out, 1, type, op, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    return request;
}

/* The operation is told the program's own type, which is freed with the last request of it. */
static void case_reduced(void)
{
    float       *in = mt_alloc(MT_DEVICE, sizeof(float) * COUNT);
    float       *out = mt_alloc(MT_DEVICE, sizeof(float) * COUNT);
    MPI_Datatype type = make_type(false), other = make_type(false), unused = make_type(false);
    MPI_Op       op;

    MPI_Op_create(add, 1, &op);
    MPI_Request first = reduce(in, out, type, op), second = reduce(in, out, type, op);
    MPI_Request third = reduce(in, out, other, op);
    MPI_Type_free(&unused);
    expect_ended(1, "that no request needs");
    MPI_Type_free(&type);
    mt_expect(type == MPI_DATATYPE_NULL, "MPI_Type_free left the handle");
    start_twice(&first);
    MPI_Request_free(&first);
    expect_ended(1, "while another request needs it");
    start_twice(&second);
    start_twice(&third);
    MPI_Request_free(&third);
    expect_ended(1, "while the program has its handle");
    MPI_Request_free(&second);
    expect_ended(2, "after the last request");
    MPI_Type_free(&other);
    expect_ended(3, "after MPI_Type_free");
    MPI_Op_free(&op);
    mt_free(MT_DEVICE, in);
    mt_free(MT_DEVICE, out);
}

int main(int argc, char **argv)
{
    static const struct mt_named_case cases[] = {
        {"moved", case_moved}, {"arrays", case_arrays}, {"reduced", case_reduced}, {NULL, NULL}};

    mt_begin(&argc, &argv, true);
    *(void **)&allreduce = mt_find("MPI_Allreduce_init");
    *(void **)&alltoall = mt_find("MPI_Alltoall_init");
    *(void **)&alltoallw = mt_find("MPI_Alltoallw_init");
    if ((allreduce == NULL) || (alltoall == NULL) || (alltoallw == NULL)) {
        mt_expect(false, "nobody has persistent collectives");
        return 1;
    }
    MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, end, &key, NULL);
    return mt_run_to_end(cases, argc, argv);
}
