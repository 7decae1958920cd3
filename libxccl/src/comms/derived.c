/* SPDX-License-Identifier: BSD-3-Clause */
#include "comms/derived.h"

#include <pthread.h>

#include "base/hash.h"
#include "comms/suspicion.h"

/* The origin is the attribute itself: most communicators never need more of ours. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int             keyval = MPI_KEYVAL_INVALID; /* atomic */

_Static_assert(sizeof(void *) >= sizeof(uint64_t), "an attribute holds an origin");

static int not_deleted(MPI_Comm comm, int which, void *value, void *extra)
{
    (void)comm;
    (void)which;
    (void)value;
    (void)extra;
    return MPI_SUCCESS;
}

/* Whole when other threads see it. MPI_KEYVAL_INVALID: MPI makes none. */
static int key(void)
{
    int made = MPI_KEYVAL_INVALID;

    if (__atomic_load_n(&keyval, __ATOMIC_ACQUIRE) != MPI_KEYVAL_INVALID) {
        return keyval;
    }
    pthread_mutex_lock(&lock);
    if ((keyval == MPI_KEYVAL_INVALID) &&
        (xm_pmpi.Comm_create_keyval(xm_comm_not_copied, not_deleted, &made, NULL) == MPI_SUCCESS)) {
        __atomic_store_n(&keyval, made, __ATOMIC_RELEASE);
    }
    made = keyval;
    pthread_mutex_unlock(&lock);
    return made;
}

/* Count a call on its communicator, on each rank; what it makes is of this origin, or of 0. */
static uint64_t count(MPI_Comm comm)
{
    struct xm_comm *xm;

    if ((comm == XM_HANDLE(MPI_COMM_NULL)) || xm_comms_finalized()) {
        return 0;
    }
    if (xm_comm_get(comm, &xm) != xcclSuccess) {
        xm_suspicion_give_up();
        return 0;
    }
    uint64_t number = ++xm->derived;
    uint64_t identity = __atomic_load_n(&xm->identity, __ATOMIC_RELAXED);
    xm_comm_unuse(xm);
    return (identity != 0) ? xc_hash_word(xc_hash_word(XC_HASH_BEGIN, identity), number) : 0;
}

int xm_derived_make(enum xm_function function, int profiling, const long *args)
{
    uint64_t        origin = xm_suspicion_counts() ? count((MPI_Comm)(intptr_t)args[0]) : 0;
    int             code = (int)xm_mpi_forward(function, profiling, args);
    const MPI_Comm *comm_p = (const MPI_Comm *)args[xm_mpi_arguments(function) - 1];

    if ((code == MPI_SUCCESS) && (origin != 0) && (*comm_p != XM_HANDLE(MPI_COMM_NULL)) &&
        (key() != MPI_KEYVAL_INVALID)) {
        xm_pmpi.Comm_set_attr(*comm_p, key(), (void *)(uintptr_t)origin);
    }
    return code;
}

uint64_t xm_derived_origin(MPI_Comm comm)
{
    void *value = NULL;
    int   found = 0;
    int   made = __atomic_load_n(&keyval, __ATOMIC_ACQUIRE);

    if ((made == MPI_KEYVAL_INVALID) ||
        (xm_pmpi.Comm_get_attr(comm, made, &value, &found) != MPI_SUCCESS) || !found) {
        return 0;
    }
    return (uint64_t)(uintptr_t)value;
}

void xm_derived_forget(void)
{
    __atomic_store_n(&keyval, MPI_KEYVAL_INVALID, __ATOMIC_RELEASE);
}
