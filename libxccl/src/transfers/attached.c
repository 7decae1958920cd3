/* SPDX-License-Identifier: BSD-3-Clause */
#include "transfers/attached.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { BUFFER, SIZE };

/* MPI has one such buffer at a time. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    void *device, *host; /* NULL: none */
} attached;

int xm_attached_attach(struct xm_transfer *t, int profiling, const long *args)
{
    size_t size = (size_t)t->parts[0].buffer.bytes; /* the argument may be an int */
    void  *host = malloc((size > 0) ? size : 1);

    if (host == NULL) {
        char text[160];
        snprintf(text, sizeof(text),
                 "no host memory for a buffer of %zu bytes, in place of the device's; attach less",
                 size);
        return xm_transfer_raise(t, xcclSystemError, text);
    }
    const long instead[] = {(long)host, args[SIZE]};
    pthread_mutex_lock(&lock);
    int code = (int)xm_mpi_forward(t->function, profiling, instead);
    if (code == MPI_SUCCESS) {
        attached.device = (void *)args[BUFFER];
        attached.host = host;
    } else {
        free(host);
    }
    pthread_mutex_unlock(&lock);
    return code;
}

/* Programs find the function with a large size whatever MPI has: mpi4py looks it up by its name. */
static int detach(enum xm_function function, int profiling, const long *args)
{
    int        size = 0;
    const long narrow[] = {args[BUFFER], (long)&size};

    if (xm_mpi_functions[function] != NULL) {
        return (int)xm_mpi_forward(function, profiling, args);
    }
    int code = (int)xm_mpi_forward(XM_FN_MPI_Buffer_detach, profiling, narrow);
    *(MPI_Count *)args[SIZE] = size;
    return code;
}

int xm_attached_detach(enum xm_function function, int profiling, const long *args)
{
    int    code = detach(function, profiling, args);
    void **buffer_p = (void **)args[BUFFER];

    pthread_mutex_lock(&lock);
    if ((code == MPI_SUCCESS) && (attached.host != NULL) && (*buffer_p == attached.host)) {
        *buffer_p = attached.device;
        free(attached.host);
        attached.host = attached.device = NULL;
    }
    pthread_mutex_unlock(&lock);
    return code;
}
