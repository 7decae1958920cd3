/* SPDX-License-Identifier: BSD-3-Clause */
#include "transfers/once.h"

#include "transfers/transfer.h"

/* What a start does the same as; none for partitioned ones. */
static bool function_of(enum xm_function persistent, enum xm_function *function_p)
{
#define PAIR(name, once)                                                                           \
    {XM_FN_MPI_##name##_init, XM_FN_MPI_##once},                                                   \
    {                                                                                              \
        XM_FN_MPI_##name##_init_c, XM_FN_MPI_##once##_c                                            \
    }
    static const enum xm_function pairs[][2] = {PAIR(Recv, Irecv), PAIR(Send, Isend),
                                                PAIR(Ssend, Issend), PAIR(Bsend, Ibsend),
                                                PAIR(Rsend, Irsend)};
#undef PAIR

    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        if (pairs[i][0] == persistent) {
            *function_p = pairs[i][1];
            return true;
        }
    }
    return false;
}

bool xm_once_start(struct xm_transfer *t, int *code_p)
{
    enum xm_function function;

    if (XM_OPENMPI || t->comm_gone || !function_of(t->function, &function)) {
        return false;
    }
    t->rendezvous.source = t->rendezvous.tag = MPI_UNDEFINED;
    const long args[] = {t->args[0], t->args[1], t->args[2],     t->args[3],
                         t->args[4], t->args[5], (long)&t->inner};
    *code_p = (int)xm_mpi_forward(function, 1, args);
    return true;
}
