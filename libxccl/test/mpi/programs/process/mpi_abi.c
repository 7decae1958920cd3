/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What MPI's standard ABI has otherwise than the ABIs of Open MPI and MPICH, on device memory.
 *
 *   mpi_abi RUNTIME [PATH]
 * PATH: which one a collective on device memory has to take.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "support.h"

enum { COUNT = 3000, TAG = 21 };

/* xccl has no such function: the answer is MPI's. */
static void check_version(void)
{
    int major = -1, minor = -1;

    mt_expect(MPI_Abi_get_version(&major, &minor) == MPI_SUCCESS, "MPI_Abi_get_version");
    mt_expect(major == MPI_ABI_VERSION, "the library has version %d.%d", major, minor);
}

/* Handles are constants in pointers: those of MPICH's ABI are ints, and Open MPI's are addresses.
 */
static void check_handles(void)
{
    MPI_Comm    copy;
    MPI_Request request = MPI_REQUEST_NULL;
    int        *all = mt_ints_make(MT_DEVICE, COUNT, COUNT, 5);

    mt_expect((uintptr_t)MPI_COMM_WORLD == 0x101, "MPI_COMM_WORLD is %p", (void *)MPI_COMM_WORLD);
    mt_expect((uintptr_t)MPI_IN_PLACE == 1, "MPI_IN_PLACE is %p", MPI_IN_PLACE);
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    MPI_Iallreduce(MPI_IN_PLACE, all, COUNT, MPI_INT, MPI_MAX, copy, &request);
    mt_expect(request != MPI_REQUEST_NULL, "a request");
    /* What xccl hands out is MPI's own: as an integer, too. */
    mt_expect(MPI_Request_fromint(MPI_Request_toint(request)) == request, "there and back");
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    mt_expect(request == MPI_REQUEST_NULL, "no request any more");
    MPI_Comm_free(&copy);
    mt_expect(copy == MPI_COMM_NULL, "no communicator any more");

    int *host = malloc(COUNT * sizeof(*host));
    mt_get(host, all, MT_DEVICE, COUNT * sizeof(*host));
    for (int i = 0; i < COUNT; i++) {
        int most = mt_value(0, 5, i);
        for (int from = 1; from < mt_size(); from++) {
            most = (mt_value(from, 5, i) > most) ? mt_value(from, 5, i) : most;
        }
        if (host[i] != most) {
            mt_expect(false, "MPI_Iallreduce: element %d is %d, not %d", i, host[i], most);
            break;
        }
    }
    mt_expect(strcmp(mt_last_path(), "mpi") != 0, "the path is %s", mt_last_path());
    free(host);
    mt_free(MT_DEVICE, all);
}

/* Source, tag and error come first, and five words of MPI's own follow. */
static void check_status(size_t count)
{
    int         left = (mt_rank() + mt_size() - 1) % mt_size(), right = (mt_rank() + 1) % mt_size();
    int         elements = 0, source = -7, tag = -7;
    int        *send = mt_ints_make(MT_DEVICE, (int)count, (int)count, 9);
    int        *receive = mt_ints_make(MT_DEVICE, COUNT, 0, 0);
    MPI_Request requests[2];
    MPI_Status  statuses[3];

    _Static_assert(sizeof(MPI_Status) == 8 * sizeof(int), "the status of the standard");
    memset(statuses, 0x55, sizeof(statuses));
    MPI_Irecv(receive, COUNT, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(send, (int)count, MPI_INT, right, TAG, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, statuses);
    MPI_Status_get_source(&statuses[0], &source);
    MPI_Status_get_tag(&statuses[0], &tag);
    MPI_Get_count(&statuses[0], MPI_INT, &elements);
    mt_expect((source == left) && (tag == TAG), "the status has source %d and tag %d", source, tag);
    mt_expect(elements == (int)count, "the status has %d elements of %zu", elements, count);
    mt_expect(statuses[2].MPI_internal[4] == 0x55555555, "the status behind the last one");
    mt_ints_expect(receive, MT_DEVICE, COUNT, (int)count, left, 9, "MPI_Irecv");
    mt_free(MT_DEVICE, send);
    mt_free(MT_DEVICE, receive);
}

/* Predefined types of which xccl knows no more than MPI says. */
static void check_types(void)
{
    const MPI_Datatype types[] = {MPI_LOGICAL1, MPI_LOGICAL2, MPI_LOGICAL4, MPI_LOGICAL8};
    enum { FEW = 100, MOST_BYTES = 8 };
    int  left = (mt_rank() + mt_size() - 1) % mt_size(), right = (mt_rank() + 1) % mt_size();
    char sent[FEW * MOST_BYTES], came[FEW * MOST_BYTES];

    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        int bytes = 0;
        MPI_Type_size(types[i], &bytes);
        size_t all = (size_t)FEW * (size_t)bytes;
        char  *out = mt_alloc(MT_DEVICE, all), *in = mt_alloc(MT_DEVICE, all);
        mt_fill_noise(sent, all, (uint64_t)(mt_rank() + 1));
        mt_put(out, MT_DEVICE, sent, all);
        int code = MPI_Sendrecv(out, FEW, types[i], right, TAG, in, FEW, types[i], left, TAG,
                                MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        mt_fill_noise(sent, all, (uint64_t)(left + 1));
        mt_get(came, in, MT_DEVICE, all);
        mt_expect((code == MPI_SUCCESS) && (memcmp(sent, came, all) == 0), "a message of type %p",
                  (void *)types[i]);
        code = MPI_Bcast(out, FEW, types[i], 0, MPI_COMM_WORLD);
        mt_fill_noise(sent, all, 1);
        mt_get(came, out, MT_DEVICE, all);
        mt_expect((code == MPI_SUCCESS) && (memcmp(sent, came, all) == 0), "MPI_Bcast of type %p",
                  (void *)types[i]);
        mt_free(MT_DEVICE, out);
        mt_free(MT_DEVICE, in);
    }
}

/* Classes and codes are other numbers than in MPICH's ABI. */
static void check_errors(void)
{
    int *buffer = mt_ints_make(MT_DEVICE, COUNT, COUNT, 1);
    int class = -1;

    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    int code = MPI_Bcast(buffer, COUNT, MPI_INT, mt_size(), MPI_COMM_WORLD);
    MPI_Error_class(code, &class);
    mt_expect(class == MPI_ERR_ROOT, "a wrong root is class %d, not %d", class, MPI_ERR_ROOT);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    mt_free(MT_DEVICE, buffer);
}

static void check_path(const char *wanted)
{
    struct mt_pair pair = mt_pair_make(MT_DEVICE, COUNT);

    mt_pair_allreduce(&pair, COUNT, MPI_COMM_WORLD, 3);
    mt_expect_path(wanted, "MPI_Allreduce");
    mt_pair_alltoall(&pair, COUNT / mt_size(), MPI_COMM_WORLD);
    mt_expect_path(wanted, "MPI_Alltoall");
    mt_pair_free(&pair);
}

int main(int argc, char **argv)
{
    mt_begin(&argc, &argv, true);
    check_version();
    check_path((argc > 2) ? argv[2] : NULL);
    check_handles();
    check_status(7);
    check_status(COUNT);
    check_types();
    check_errors();
    mt_summary();
    MPI_Finalize();
    return mt_status();
}
