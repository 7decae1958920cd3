/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collective calls on files that fail here before MPI has them. The other ranks wait for this one
 * in MPI: it comes there all the same, with nothing to read or write.
 */
#include <string.h>

#include "calls/calls.h"

static const struct {
    enum xm_function begin, large, end;
} splits[] = {
#define SPLIT(name)                                                                                \
    {XM_FN_MPI_File_##name##_begin, XM_FN_MPI_File_##name##_begin_c, XM_FN_MPI_File_##name##_end}
    SPLIT(read_all),  SPLIT(read_at_all),  SPLIT(read_ordered),
    SPLIT(write_all), SPLIT(write_at_all), SPLIT(write_ordered),
#undef SPLIT
};

/* The program does not end what has failed, and until it is ended there is no other one. */
static void end_split(enum xm_function begin, int profiling, long file)
{
    MPI_Status status;
    char       nothing[1];
    const long args[] = {file, (long)nothing, (long)&status};

    for (size_t i = 0; i < sizeof(splits) / sizeof(splits[0]); i++) {
        if ((splits[i].begin == begin) || (splits[i].large == begin)) {
            xm_mpi_forward(splits[i].end, profiling, args);
        }
    }
}

void xm_file_come_with_nothing(const struct xm_transfer *t, int profiling)
{
    const char *name = xm_mpi_function_name(t->function);
    int         file = xm_transfer_argument(t->function, 'h');
    int         buffer = (int)strcspn(t->kinds, "sr");
    int         to_status = xm_transfer_argument(t->function, 'S');
    int         to_request = xm_transfer_argument(t->function, 'q');
    long        args[XM_MAX_ARGUMENTS];
    MPI_Status  status;
    MPI_Request request;

    if ((file < 0) || ((strstr(name, "_all") == NULL) && (strstr(name, "_ordered") == NULL))) {
        return;
    }
    memcpy(args, t->args, sizeof(long) * strlen(t->kinds));
    args[buffer] = (long)NULL;
    args[buffer + 1] = 0;
    if (to_status >= 0) {
        args[to_status] = (long)&status;
    }
    if (to_request >= 0) {
        args[to_request] = (long)&request;
    }
    if (xm_mpi_forward(t->function, profiling, args) != MPI_SUCCESS) {
        return;
    }
    if (to_request >= 0) { /* MPICH moves it only while somebody waits for it */
        xm_pmpi.Wait(&request, MPI_STATUS_IGNORE);
    }
    end_split(t->function, profiling, args[file]);
}
