/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Transfers: calls that move the data of this process's buffers and are no collectives. Where MPI
 * cannot reach a buffer, the call is made with host memory in its place, so MPI itself matches,
 * orders, truncates, cancels and reports; all that is added are the copies before and after.
 */
#ifndef XM_TRANSFERS_TRANSFER_H
#define XM_TRANSFERS_TRANSFER_H

#include "data/copy.h"
#include "transfers/rendezvous.h"

enum { XM_MAX_PARTS = 3, XM_WHOLE = -1 };

/* A buffer of a transfer that MPI cannot reach. */
struct xm_part {
    struct xm_buffer  buffer;
    struct xm_copier  copier;
    struct xm_scratch scratch;
    char             *span;     /* host memory of the same shape, or packed */
    int               argument; /* of the call, that the buffer is */
    bool              open;
    bool              lazy;   /* span: most likely nothing comes there */
    bool              packed; /* MPI sends or receives bytes, which the device packs */
};

/*
 * Where the data of a partition is: where it belongs, which it also is before the first start; or
 * in host memory, once MPI has it.
 */
enum xm_delivery { XM_DELIVERED, XM_BEING_COPIED, XM_STAGED };

/* What stands for the buffer's address, given span. With MPI_BOTTOM it is no address of memory. */
static inline char *xm_part_base(const struct xm_part *part)
{
    return (char *)((uintptr_t)part->span - (uintptr_t)part->buffer.low);
}

/* MPI_Pack counts in int, its other forms in MPI_Count or MPI_Aint. */
union xm_position {
    MPI_Count wide;
    int       narrow;
};

/* Something that goes on beside a transfer, and belongs to its request. */
struct xm_companion {
    /* Once it is over, *code_p is MPI's code of how; an error has been raised then. */
    bool (*over)(struct xm_companion *c, int *code_p);
    void (*leave)(struct xm_companion *c); /* nobody asks for it any more; frees this */
};

struct xm_transfer {
    enum xm_function function;
    const char      *kinds; /* of the arguments; base/transfers.h */
    char             form;
    long             args[XM_MAX_ARGUMENTS]; /* the program's, with host memory for buffers */
    int              num_parts;
    bool             simple;    /* a short one of xm_transfer_read_looked() */
    bool             scattered; /* one buffer lies in memory of several kinds: it cannot be done */

    const union xm_position *packed; /* of MPI_Pack: how much it has packed; else NULL */

    /* Of partitioned ones. */
    int       partitions; /* 0: it is none */
    MPI_Count per_partition;
    int      *delivery; /* where the data of each is, enum xm_delivery; atomic */

    /* Of those with a request. */
    MPI_Request request; /* the program's */
    bool        generalised;
    /* MPI's own, behind a generalised one or a persistent one that is not active. */
    MPI_Request inner;
    bool        instead;   /* of a persistent one: it was not, this time */
    bool        ended;     /* of a persistent one: it was, and a look has completed it */
    bool        started;   /* a persistent one, and not completed since */
    bool        comm_gone; /* the program has freed its communicator */
    bool        cancelled; /* the program has asked for that */
    MPI_Count   bytes;     /* what MPI received, read or wrote */
    int         code;      /* and how that ended */
    int         wrong;     /* MPI's code of what failed here */
    bool        whole;     /* MPI does not say how much it received */
    bool        done;      /* MPI is ready with it and the data is where it belongs */
    bool        polled;    /* atomic: one of several threads is at it */
    /* What else has to be over: of MPI_Isendrecv, what it sends (calls/kept.c). NULL: nothing. */
    struct xm_companion *companion;
    bool                 over; /* MPI is ready with it */
    unsigned             polls;
    struct xm_transfer  *next;
    bool                 access;   /* to a window, of which something comes back */
    struct xm_transfer  *beside;   /* the next of those */
    uint64_t             number;   /* of an access, once MPI has it: access.h */
    int                  observed; /* as of an operation (paths/path.h) */
    uint64_t             observed_ns;

    /* Nothing is cleared, or kept, of the end of this and of parts that are not in use. */
    struct xm_rendezvous rendezvous;
    struct xm_part       parts[XM_MAX_PARTS];
};

/* How this thread's last one reached its memory: "mpi" while MPI did it alone. */
extern __thread const char *xm_transfer_last_path;

/* Once, before anything else here. */
void xm_transfers_init(void);

/* Where this function has an argument of a kind, or -1. */
int xm_transfer_argument(enum xm_function function, char kind);
/* The kind of each argument, as in base/transfers.h. */
const char *xm_transfer_kinds(enum xm_function function);
/* Is this a message, and none in partitions? */
bool xm_transfer_is_message(enum xm_function function);
/* 'B', 'N', 'P', 'O' or 'E' as in base/transfers.h. */
char xm_transfer_form(enum xm_function function);

/* Who carries a call out. */
enum xm_way {
    XM_WAY_PLAIN,  /* MPI alone */
    XM_WAY_LOOKED, /* MPI; but MPI_Recv or MPI_Irecv into host memory may bring a descriptor */
    XM_WAY_OURS
};

/* A few nanoseconds where no device is in use. */
enum xm_way xm_transfer_way(enum xm_function function, const long *args);

/*
 * Is MPI_Irecv with these arguments MPI's alone, while no device is in use? For the shortest way
 * there; it may say no where xm_transfer_way() says XM_WAY_PLAIN.
 */
bool xm_transfer_is_plain_receive(const long *args);

/*
 * Find the buffers that MPI cannot reach; false if there are none, or MPI has to refuse the
 * arguments. Nothing is held yet.
 */
bool xm_transfer_read(struct xm_transfer *t, enum xm_function function, const long *args);

/* The same of XM_WAY_LOOKED, which has no other buffer: as the call would be with nothing in it. */
void xm_transfer_read_looked(struct xm_transfer *t, enum xm_function function, const long *args);

/* Partitions low to high, both included, into host memory; for the program's MPI_Pready. */
xcclResult_t xm_transfer_partitions_in(struct xm_transfer *t, int low, int high);
/* A partition that has arrived, to where it belongs, unless it is there. */
xcclResult_t xm_transfer_partition_out(struct xm_transfer *t, int partition);
/* One that stays when the call has returned; NULL, with a failure: out of memory. */
struct xm_transfer *xm_transfer_new(void);
/* The same, a copy. */
struct xm_transfer *xm_transfer_keep(const struct xm_transfer *t);
/* Close what was kept, and give it back; of a file, once the program has its status. */
void xm_transfer_discard(struct xm_transfer *t);

/* Bytes that MPI wrote, as its status says. */
MPI_Count xm_transfer_bytes(const MPI_Status *status);

/*
 * The call of a non-blocking or persistent function, with host memory in its arguments; the
 * request is t->request.
 */
int xm_transfer_post(struct xm_transfer *t, int profiling);

/* Its communicator, to report to; MPI_COMM_WORLD where the call names none. */
MPI_Comm xm_transfer_comm(const struct xm_transfer *t);
/* Is it one of the communicator's? Also of a receive by a message whose communicator is unknown. */
bool xm_transfer_may_be_on(const struct xm_transfer *t, MPI_Comm comm);
/* Report a failure to the error handler of its window, file or communicator. Returns MPI's code. */
int xm_transfer_raise(const struct xm_transfer *t, xcclResult_t res, const char *text);

/*
 * For a function with large counts that this MPI lacks, the one with int counts; false, with a
 * failure, if it lacks that too or a count does not fit.
 */
bool xm_transfer_narrow(enum xm_function function, const long *args, enum xm_function *narrow_p);

/* Is this a function that receives a message? */
bool xm_transfer_receives(enum xm_function function);
/* MPI_Pack and its kin? */
bool xm_transfer_packs(enum xm_function function);
/* Is this MPI_Unpack or one of its other forms? Then how many bytes it reads at most; or all. */
bool      xm_transfer_unpacks(enum xm_function function);
MPI_Count xm_transfer_most_unpacked(enum xm_function function, const long *args, MPI_Count all);

/* Of a persistent request, before each start: see xm_buffer_ask_again(). */
void xm_transfer_ask_again(struct xm_transfer *t);

/*
 * Start a persistent request in another way than by MPI_Start: a receive whose message is kept
 * (kept.c), a send whose message is offered. False: MPI is to start it. *code_p: MPI's.
 */
bool xm_transfer_start_instead(struct xm_transfer *t, int *code_p);

/*
 * MPI has failed with this code. Was that since the message to receive is too long? What the same
 * call sends has gone then, or goes, all the same. Other errors are of arguments, and found before
 * anything is sent.
 */
bool xm_transfer_has_sent(const struct xm_transfer *t, int code);

/* Look whether MPI is ready with the request, and finish. Never waits for other ranks. */
bool xm_transfer_poll(struct xm_transfer *t);
/*
 * May MPI complete the request before anybody has looked at it? What is left to do after that takes
 * no longer than a short copy, so the call that completed it does that.
 */
bool xm_transfer_is_mpi_first(const struct xm_transfer *t);
/* MPI has completed it well. Was it a simple one, and no descriptor? Then all of it is over. */
bool xm_transfer_is_over_simply(const struct xm_transfer *t);
/* MPI has completed it, with this code and status; and the rest of it, which is waited for. */
void xm_transfer_completed(struct xm_transfer *t, int code, const MPI_Status *status);
void xm_transfer_finish(struct xm_transfer *t);
/* For MPI_Request_get_status, which several threads may call for one request. */
bool xm_transfer_poll_among_threads(struct xm_transfer *t);

#endif
