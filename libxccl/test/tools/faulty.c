/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Preloaded in front of xccl-perf by its tests: an MPI that goes wrong on purpose. FAULTY says how:
 * short  the last element is left out (works on device memory, which it does not touch)
 * flip   rank 1 finds a high bit of the first element flipped (host memory)
 * nan    every rank finds a NaN in the middle (host memory, float)
 * send   rank 0 finds its send buffer written to (host memory)
 * gap    rank 0 finds the element behind its first block written to (allgatherv, host memory)
 * repeat rank 0 sends the first of its messages again instead of those after it (non-blocking)
 * corner, inside  rank 1 finds that element of its block written to (halo exchanges, host memory)
 * hang   rank 1 never comes back; it makes the file that FAULTY_HANGS names
 * moves  an allreduce that took the direct path is the last that does
 */
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int fault_is(const char *name)
{
    const char *fault = getenv("FAULTY");

    return (fault != NULL) && (strcmp(fault, name) == 0);
}

static int my_rank(void)
{
    int rank;

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return rank;
}

static void hang(void)
{
    const char *name = getenv("FAULTY_HANGS");
    FILE       *file = (name != NULL) ? fopen(name, "w") : NULL;

    if (file != NULL) {
        fclose(file);
    }
    pause();
}

/* On all ranks alike: a call that took the direct path is the last that does. */
static void leave_direct(void)
{
    const char *(*last)(void);
    int (*tune)(const char *);

    *(void **)&last = dlsym(RTLD_DEFAULT, "xccl_mpi_last_path");
    *(void **)&tune = dlsym(RTLD_DEFAULT, "xcclTuneMPI");
    if ((last != NULL) && (tune != NULL) && (last() != NULL) && (strcmp(last(), "direct") == 0)) {
        tune("*:*:*:*:ccl");
    }
}

__attribute__((visibility("default"))) int
MPI_Allreduce(const void *send, void *recv, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    int (*next)(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm);
    int short_by = fault_is("short") && (count > 0);

    *(void **)&next = dlsym(RTLD_NEXT, "MPI_Allreduce");
    if (fault_is("hang") && (my_rank() == 1)) {
        hang();
    }
    int status = next(send, recv, count - short_by, type, op, comm);
    if (fault_is("flip") && (my_rank() == 1) && (count > 0)) {
        ((unsigned char *)recv)[2] ^= 0x40;
    } else if (fault_is("nan") && (count > 0)) {
        memset((float *)recv + count / 2, 0xff, sizeof(float));
    } else if (fault_is("send") && (my_rank() == 0) && (count > 0)) {
        ((unsigned char *)(size_t)send)[0] ^= 1;
    } else if (fault_is("moves")) {
        leave_direct();
    }
    return status;
}

__attribute__((visibility("default"))) int MPI_Allgatherv(const void *send, int sendcount,
                                                          MPI_Datatype sendtype, void *recv,
                                                          const int counts[], const int displs[],
                                                          MPI_Datatype recvtype, MPI_Comm comm)
{
    int size;
    int (*next)(const void *, int, MPI_Datatype, void *, const int[], const int[], MPI_Datatype,
                MPI_Comm);

    *(void **)&next = dlsym(RTLD_NEXT, "MPI_Allgatherv");
    int status = next(send, sendcount, sendtype, recv, counts, displs, recvtype, comm);
    MPI_Type_size(recvtype, &size);
    if (fault_is("gap") && (my_rank() == 0)) {
        memset((char *)recv + (size_t)counts[0] * (size_t)size, 0, 1);
    }
    return status;
}

typedef int (*send_fn)(const void *, int, MPI_Datatype, int, int, MPI_Comm);
typedef int (*isend_fn)(const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);
typedef int (*recv_fn)(void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Status *);
typedef int (*irecv_fn)(void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);
typedef int (*waitall_fn)(int, MPI_Request[], MPI_Status[]);

static const void *first_sent; /* of the messages that are under way */
static char       *block;      /* and the buffer of the last receive */
static MPI_Aint    block_bytes;

__attribute__((visibility("default"))) int MPI_Send(const void *buf, int count, MPI_Datatype type,
                                                    int dest, int tag, MPI_Comm comm)
{
    send_fn next;
    int     short_by = fault_is("short") && (my_rank() == 0) && (count > 0);

    *(void **)&next = dlsym(RTLD_NEXT, "MPI_Send");
    return next(buf, count - short_by, type, dest, tag, comm);
}

__attribute__((visibility("default"))) int MPI_Isend(const void *buf, int count, MPI_Datatype type,
                                                     int dest, int tag, MPI_Comm comm,
                                                     MPI_Request *request)
{
    isend_fn next;
    int      at_fault = (my_rank() == 0) && (count > 0);

    *(void **)&next = dlsym(RTLD_NEXT, "MPI_Isend");
    if (first_sent == NULL) {
        first_sent = buf;
    }
    if (fault_is("repeat") && at_fault) {
        buf = first_sent;
    }
    return next(buf, count - (fault_is("short") && at_fault), type, dest, tag, comm, request);
}

__attribute__((visibility("default"))) int MPI_Recv(void *buf, int count, MPI_Datatype type,
                                                    int source, int tag, MPI_Comm comm,
                                                    MPI_Status *status)
{
    recv_fn next;

    *(void **)&next = dlsym(RTLD_NEXT, "MPI_Recv");
    int code = next(buf, count, type, source, tag, comm, status);
    if (fault_is("flip") && (my_rank() == 1) && (count > 0)) {
        ((unsigned char *)buf)[2] ^= 0x40;
    }
    return code;
}

__attribute__((visibility("default"))) int MPI_Irecv(void *buf, int count, MPI_Datatype type,
                                                     int source, int tag, MPI_Comm comm,
                                                     MPI_Request *request)
{
    irecv_fn next;
    MPI_Aint low;

    *(void **)&next = dlsym(RTLD_NEXT, "MPI_Irecv");
    block = buf;
    MPI_Type_get_extent(type, &low, &block_bytes);
    return next(buf, count, type, source, tag, comm, request);
}

__attribute__((visibility("default"))) int MPI_Waitall(int count, MPI_Request requests[],
                                                       MPI_Status statuses[])
{
    waitall_fn next;

    *(void **)&next = dlsym(RTLD_NEXT, "MPI_Waitall");
    int code = next(count, requests, statuses);
    first_sent = NULL;
    if (fault_is("corner") && (my_rank() == 1)) {
        block[0] ^= 1;
    } else if (fault_is("inside") && (my_rank() == 1)) {
        block[block_bytes / 2] ^= 1; /* its middle, where the side is odd */
    }
    return code;
}
