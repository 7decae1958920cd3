/* SPDX-License-Identifier: BSD-3-Clause */
#include "comms/keyvals.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int            *keys;
static int             count;
static bool            unknown; /* there are attributes whose key cannot be asked for */

void xm_keyval_created(int key)
{
    pthread_mutex_lock(&lock);
    int *more = realloc(keys, sizeof(*keys) * (size_t)(count + 1));
    if (more != NULL) {
        keys = more;
        keys[count++] = key;
    }
    unknown = unknown || (more == NULL);
    pthread_mutex_unlock(&lock);
}

void xm_keyval_freed(int key)
{
    pthread_mutex_lock(&lock);
    for (int i = 0; i < count; i++) {
        if (keys[i] == key) {
            keys[i] = keys[--count];
            unknown = true;
            break;
        }
    }
    pthread_mutex_unlock(&lock);
}

void xm_keyvals_forget(void)
{
    pthread_mutex_lock(&lock);
    count = 0;
    unknown = false;
    pthread_mutex_unlock(&lock);
}

/* Open MPI's functions for Fortran make keys without a function for C. */
static bool has_other_makers(void)
{
    return XM_OPENMPI && (dlsym(RTLD_DEFAULT, "mpi_comm_create_keyval_") != NULL);
}

bool xm_keyvals_on(MPI_Comm comm)
{
    int found = 0;

    pthread_mutex_lock(&lock);
    unknown = unknown || has_other_makers();
    for (int i = 0; (i < count) && !found; i++) {
        void *value;
        if (xm_pmpi.Comm_get_attr(comm, keys[i], &value, &found) != MPI_SUCCESS) {
            found = 1;
        }
    }
    bool any = found || unknown;
    pthread_mutex_unlock(&lock);
    return any;
}
