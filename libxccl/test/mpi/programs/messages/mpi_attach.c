/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI 4.1's buffers for the buffered sends of one communicator or session: a device's memory is
 * refused where it is attached, by the error handler of that; the host's is taken.
 * Usage: mpi_attach cuda|rocm|none comm|session
 * The functions are looked up, as few MPIs have them.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support.h"

#if MPI_VERSION >= 4

enum { COUNT = 1000, SPACE = 65536, TAG = 5 };

static int calls_of_handler;

static void of_comm(MPI_Comm *comm, int *code, ...)
{
    (void)comm;
    (void)code;
    calls_of_handler++;
}

static void of_session(MPI_Session *session, int *code, ...)
{
    (void)session;
    (void)code;
    calls_of_handler++;
}

static void expect_refused(int code, const char *what)
{
    bool device = (strcmp(mt_runtime(), "none") != 0);

    mt_expect((code != MPI_SUCCESS) == device, "device memory for %s: code %d", what, code);
    mt_expect(calls_of_handler == device, "%s: its error handler had %d calls", what,
              calls_of_handler);
}

/* Device memory may be sent by the buffer. */
static void send_buffered(MPI_Comm comm)
{
    int *in = mt_ints_make(MT_DEVICE, COUNT, COUNT, 3);
    int *out = mt_ints_make(MT_DEVICE, COUNT, 0, 0);
    int  other = 1 - mt_rank();

    MPI_Bsend(in, COUNT, MPI_INT, other, TAG, comm);
    MPI_Recv(out, COUNT, MPI_INT, other, TAG, comm, MPI_STATUS_IGNORE);
    mt_ints_expect(out, MT_DEVICE, COUNT, COUNT, other, 3, "MPI_Bsend");
    mt_free(MT_DEVICE, in);
    mt_free(MT_DEVICE, out);
}

static void case_comm(void)
{
    int (*attach)(MPI_Comm, void *, int) = dlsym(RTLD_DEFAULT, "MPI_Comm_attach_buffer");
    int (*large)(MPI_Comm, void *, MPI_Count) = dlsym(RTLD_DEFAULT, "MPI_Comm_attach_buffer_c");
    int (*detach)(MPI_Comm, void *, int *) = dlsym(RTLD_DEFAULT, "MPI_Comm_detach_buffer");
    void          *device = mt_alloc(MT_DEVICE, SPACE), *host = malloc(SPACE), *back = NULL;
    int            size = 0;
    MPI_Comm       comm;
    MPI_Errhandler handler;

    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_create_errhandler(of_comm, &handler);
    MPI_Comm_set_errhandler(comm, handler);
    expect_refused(attach(comm, device, SPACE), "MPI_Comm_attach_buffer");
    if (calls_of_handler == 0) {
        detach(comm, &back, &size);
    }
    calls_of_handler = 0;
    expect_refused(large(comm, device, SPACE), "MPI_Comm_attach_buffer_c");
    if (calls_of_handler == 0) {
        detach(comm, &back, &size);
    }
    mt_expect(attach(comm, host, SPACE) == MPI_SUCCESS, "host memory is refused");
    send_buffered(comm);
    detach(comm, &back, &size);
    mt_expect((back == host) && (size == SPACE), "%p of %d bytes was attached", back, size);
    MPI_Errhandler_free(&handler);
    MPI_Comm_free(&comm);
    mt_free(MT_DEVICE, device);
    free(host);
}

static void case_session(void)
{
    int (*attach)(MPI_Session, void *, int) = dlsym(RTLD_DEFAULT, "MPI_Session_attach_buffer");
    int (*large)(MPI_Session, void *, MPI_Count) =
        dlsym(RTLD_DEFAULT, "MPI_Session_attach_buffer_c");
    int (*detach)(MPI_Session, void *, int *) = dlsym(RTLD_DEFAULT, "MPI_Session_detach_buffer");
    void          *device = mt_alloc(MT_DEVICE, SPACE), *host = malloc(SPACE), *back = NULL;
    int            size = 0;
    MPI_Errhandler handler;
    MPI_Session    session;
    MPI_Group      group;
    MPI_Comm       comm;

    MPI_Session_create_errhandler(of_session, &handler);
    MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session);
    MPI_Session_set_errhandler(session, handler); /* MPICH 4.3 takes none from the call before */
    MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
    MPI_Comm_create_from_group(group, "xccl", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
    MPI_Group_free(&group);
    expect_refused(attach(session, device, SPACE), "MPI_Session_attach_buffer");
    if (calls_of_handler == 0) {
        detach(session, &back, &size);
    }
    calls_of_handler = 0;
    expect_refused(large(session, device, SPACE), "MPI_Session_attach_buffer_c");
    if (calls_of_handler == 0) {
        detach(session, &back, &size);
    }
    mt_expect(attach(session, host, SPACE) == MPI_SUCCESS, "host memory is refused");
    send_buffered(comm);
    detach(session, &back, &size);
    mt_expect((back == host) && (size == SPACE), "%p of %d bytes was attached", back, size);
    MPI_Comm_free(&comm);
    MPI_Errhandler_free(&handler);
    MPI_Session_finalize(&session);
    mt_free(MT_DEVICE, device);
    free(host);
}

int main(int argc, char **argv)
{
    const struct mt_named_case cases[] = {
        {"comm", case_comm}, {"session", case_session}, {NULL, NULL}};

    mt_begin(&argc, &argv, true);
    return mt_run_to_end(cases, argc, argv);
}

#else

int main(void)
{
    fprintf(stderr, "this MPI has no sessions\n");
    return 64;
}

#endif
