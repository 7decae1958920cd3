/* SPDX-License-Identifier: BSD-3-Clause */
/* Failures as MPI errors: a class of our own, a code per kind of failure. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "mpi/mpi.h"

enum { MAX_CODES = 80 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool            have_class;
static int             error_class;
static int             codes[MAX_CODES]; /* by xcclResult_t; 0: not made yet */

/* Shorter than MPI_MAX_ERROR_STRING of every MPI (Open MPI's is 256). */
enum { TEXT_BYTES = 255 };

/* With the lock. A code of our class, made once; MPI_ERR_OTHER where MPI makes none. */
static int code_of(xcclResult_t res)
{
    if (!have_class) {
        have_class = (xm_pmpi.Add_error_class(&error_class) == MPI_SUCCESS);
        if (have_class) {
            xm_pmpi.Add_error_string(error_class, "xccl: a collective on device memory failed");
        }
    }
    if (!have_class || ((int)res >= MAX_CODES)) {
        return MPI_ERR_OTHER;
    }
    if ((codes[res] == 0) && (xm_pmpi.Add_error_code(error_class, &codes[res]) != MPI_SUCCESS)) {
        codes[res] = 0;
        return MPI_ERR_OTHER;
    }
    return codes[res];
}

void xm_errors_forget(void)
{
    pthread_mutex_lock(&lock);
    have_class = false;
    memset(codes, 0, sizeof(codes));
    pthread_mutex_unlock(&lock);
}

int xm_error_code(xcclResult_t res, const char *text)
{
    char line[TEXT_BYTES];

    pthread_mutex_lock(&lock);
    int code = code_of(res);
    if (code != MPI_ERR_OTHER) {
        /* The code's text is that of its latest failure. */
        snprintf(line, sizeof(line), "xccl: %.240s", text);
        xm_pmpi.Add_error_string(code, line);
    }
    pthread_mutex_unlock(&lock);
    return code;
}

/* The code of a failure that is said to the user. */
static int say(xcclResult_t res, const char *text)
{
    char copy[1024];

    snprintf(copy, sizeof(copy), "%s", text); /* text may be the detail that calls below replace */
    xc_error("%s", copy);
    return xm_error_code(res, copy);
}

static bool is_fatal(MPI_Comm comm)
{
    MPI_Errhandler handler;

    if (xm_pmpi.Comm_get_errhandler(comm, &handler) != MPI_SUCCESS) {
        return false;
    }
    bool fatal = (handler == XM_HANDLE(MPI_ERRORS_ARE_FATAL));
    xm_pmpi.Errhandler_free(&handler); /* Open MPI counts those who ask for it */
    return fatal;
}

int xm_raise(MPI_Comm comm, xcclResult_t res, const char *text)
{
    static pthread_mutex_t ending = PTHREAD_MUTEX_INITIALIZER;
    int                    code = say(res, text);

    if (is_fatal(comm)) {
        /* Open MPI crashes when two threads end the job at once, and its message is lost. */
        pthread_mutex_lock(&ending);
        xm_pmpi.Comm_call_errhandler(comm, code);
        pthread_mutex_unlock(&ending);
    } else {
        xm_pmpi.Comm_call_errhandler(comm, code);
    }
    return code;
}

int xm_raise_on_window(MPI_Win window, xcclResult_t res, const char *text)
{
    int code = say(res, text);

    xm_pmpi.Win_call_errhandler(window, code);
    return code;
}

int xm_raise_on_file(MPI_File file, xcclResult_t res, const char *text)
{
    int code = say(res, text);
    int (*handler)(MPI_File, int);

    *(void **)&handler = xm_mpi_symbol("PMPI_File_call_errhandler"); /* an MPI may lack files */
    if (handler != NULL) {
        handler(file, code);
    }
    return code;
}
