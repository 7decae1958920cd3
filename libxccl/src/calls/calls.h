/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls of MPI that the interposer serves: their arguments become an operation. */
#ifndef XM_CALLS_CALLS_H
#define XM_CALLS_CALLS_H

#include "ops/op.h"
#include "transfers/transfer.h"

/* State of the interposer, valid once it has started. */
struct xm_config {
    bool check;  /* XCCL_CHECK */
    bool faulty; /* the environment is wrong: everything goes to MPI */
};
extern struct xm_config xm_config;

/*
 * May the call go to MPI at once, because its buffers are host memory and nothing has to be agreed?
 * A few nanoseconds for the stack and the heap, and for any memory where no device runtime is
 * loaded.
 */
bool xm_call_is_plain(enum xm_function function, const long *args);
/* That call, by MPI. Returns its code. */
int xm_call_plain(enum xm_function function, int profiling, const long *args);

/* Serve a collective that is not plain, in any form. Returns an MPI error code. */
int xm_collective(enum xm_function function, int profiling, const long *args);
/* One that makes no request that is started later; and one that does (persistent.c). */
int xm_collective_run(const struct xm_call *call);
int xm_collective_init(const struct xm_call *call);
/* Where this rank stands on the communicator of op. */
void xm_collective_place(const struct xm_op *op, struct xm_place *place);
/* Start an operation on that path: wait for its end, or give the program a request. MPI's code. */
int xm_collective_carry(struct xm_op *op, const struct xm_path *path);
/* A message, a file access, packing, or a call on a window; by MPI alone where nothing is to do. */
int xm_transfer_call(enum xm_function function, int profiling, const long *args);
/* The same as the program calls it: threads may take each other's messages. */
int xm_message_call(enum xm_function function, int profiling, const long *args);
/*
 * The same of a function that receives, if its message is kept (transfers/kept.c); false: it is
 * not. *code_p: MPI's.
 */
bool xm_kept_call(enum xm_function function, const long *args, int *code_p);
/* Does it look for a message? MPI_Mrecv and its kin have theirs, and MPI_PROC_NULL sends none. */
bool xm_receive_matches(enum xm_function function, const long *args);
/* A receive that does, plain or not, in a program with threads: another one may keep its message.
 */
int xm_receive_among_threads(enum xm_function function, int profiling, const long *args);
/*
 * Receive a message that is kept: MPI_Mrecv or MPI_Imrecv, with the status from there. companion:
 * what belongs to the request, and goes with it; or NULL.
 */
int xm_transfer_receive_kept(enum xm_function function, const long *args,
                             const struct xm_rendezvous *from, struct xm_companion *companion);
/* A call that failed before MPI had it: if it is collective on a file, MPI has it without data. */
void xm_file_come_with_nothing(const struct xm_transfer *t, int profiling);
/* MPI_Win_create, on any memory: one rank's may be refused. */
int xm_window_create(enum xm_function function, int profiling, const long *args);
/* Are there windows on device memory? */
bool xm_windows_any(void);
/* A function that synchronises a window, frees it or asks for its attributes. */
int xm_window_call(enum xm_function function, int profiling, const long *args);

/*
 * Path of this thread's last transfer that was not plain: "mpi-staged", "fetched", "pipelined",
 * "device" (packing); else "mpi".
 */
const char *xm_last_message_path(void);

/* Path of this thread's last collective: "host", "mpi", "mpi-staged", "ccl", "direct", "self",
 * "messages". */
const char *xm_last_path(void);
void        xm_set_last_path(const char *path); /* a static text */

#endif
