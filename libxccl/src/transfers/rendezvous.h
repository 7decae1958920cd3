/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rendezvous: in the place of a message from device memory its sender sends a descriptor, with the
 * program's communicator and tag, so MPI matches it as it would have matched the message. Whoever
 * receives it fetches the bytes from the sender's memory. The sender decides alone: a process that
 * has announced itself (comms/mailbox.h) looks at each receive that could hold such a message.
 *
 * Neither side owes the other anything inside MPI: what is left to do after the match goes through
 * memory that both share, and a thread does it while the program is elsewhere (watcher.c). Between
 * nodes the bytes may follow in pieces (pieces.h): then that thread calls MPI, where it may.
 */
#ifndef XM_TRANSFERS_RENDEZVOUS_H
#define XM_TRANSFERS_RENDEZVOUS_H

#include "comms/mailbox.h"
#include "data/copy.h"
#include "data/kernels.h"
#include "data/mappings.h"

#define XM_DESCRIPTOR_MAGIC 0x7863636c72647631u

/* Small, and a multiple of most types' sizes: see ends_within_element(). */
enum { XM_DESCRIPTOR_BYTES = 80, XM_DESCRIPTOR_FILL = 0xa5 };

/* To look after more takes longer than a launch. */
enum { XM_FEW_TRANSFERS = 16 };

/* Smaller pieces of pinned memory come from a pool soon. */
enum { XM_LAZY_BYTES = 1 << 20 };

/*
 * Small: MPI has room for many of them before their receiver has looked. The check is last, and
 * over all: whoever sees it whole in memory before MPI says so knows that MPI writes no more of it.
 */
struct xm_descriptor {
    uint64_t magic;
    uint64_t nonce, number; /* of the sender's board, and of the message */
    int32_t  pid, fd, slot; /* of the process, its board and the offer there */
    char     room[4];       /* filled, like what is not used: no word of the descriptor is 0 */
    /* Of a message that comes in pieces, with another magic; nonce: the job's, pid: the sender's
     * rank of MPI_COMM_WORLD, slot: the tag. */
    uint64_t bytes, piece;
    char     more_room[16];
    uint64_t check; /* over all before it */
};
_Static_assert(sizeof(struct xm_descriptor) == XM_DESCRIPTOR_BYTES, "as every receiver expects it");

struct xm_transfer;
struct xm_pieces; /* pieces.h */

/* Stages of a receive. */
enum xm_fetch {
    XM_FETCH_NONE,
    XM_FETCH_PUSHED,  /* the sender is to write */
    XM_FETCH_MAPPING, /* the sender's memory is to be mapped */
    XM_FETCH_COPYING,
    XM_FETCH_REFUSED,
    XM_FETCH_PIECES,  /* they are sent: pieces.h */
    XM_FETCH_LANDING, /* nothing of this: it came to host memory, and is copied to the device */
    XM_FETCH_OVER
};

/* What a message has of this. */
struct xm_rendezvous {
    /* Of a send. */
    bool              offered; /* atomic */
    int               slot;
    uint64_t          number;
    int               peer; /* rank of MPI_COMM_WORLD */
    const char       *sent; /* the bytes, on sent_device */
    int               sent_device;
    bool              packs; /* they are in this scratch: */
    struct xm_scratch scratch;
    int               file;      /* that the bytes are served from, or -1 */
    void             *pushed;    /* event of the copy to the receiver, or NULL */
    uint32_t          polls;     /* atomic: while nobody has come to it */
    bool              may_leave; /* MPI might end the send before its receive: left.h */
    bool              late;      /* atomic: and is to */
    uint64_t          waits_ns;  /* atomic: since when a call waits for its end; 0: none does */
    bool              lost;      /* atomic: whom it came to cannot fetch it */
    bool              in_pieces; /* it was not offered, but goes so, while there is: */
    struct xm_pieces *outgoing;

    /* Of a receive. */
    bool             looks;  /* a descriptor finds room, */
    bool             awaits; /* and so does a message that one stands for: else it is too long */
    struct xm_buffer receive;
    int              argument; /* that the buffer is */
    /* What MPI receives into, shaped as the buffer; NULL with `landing`. */
    char                 *base;
    const struct xm_flat *flat;    /* how, unless the buffer is plain; held with `holds` */
    bool                  holds;   /* that, or the type where there is none */
    bool                  keeps;   /* the type, beside what tells how */
    char                 *landing; /* packed bytes instead, for a type that cannot be taken apart */
    MPI_Datatype          many;    /* of more bytes than an int counts; or 0 */
    bool                  scatters; /* or for the time of a copy */
    enum xm_fetch         fetch;    /* atomic: changed by the thread that is at it */
    uint64_t              came_ns;  /* when its descriptor came */
    struct xm_descriptor  got;
    struct xm_sent        from;
    /* It was taken before MPI said so, from where the bytes go: see keep_head(). */
    bool                  early;
    bool                  seen; /* and left: see is_left() */
    int                   repeats;
    bool                  head_kept;
    struct xm_offer      *offer;
    uint64_t              asked_ns;       /* when the driver was asked for a copy */
    void                 *event;          /* the copy's, unless a kernel does it: */
    struct xm_kernel_copy by_kernel;      /* also while it lands */
    bool                  came_in_pieces; /* by: */
    struct xm_pieces     *incoming;
    MPI_Count             came;   /* bytes, once fetch is over */
    bool                  kept;   /* MPI says a wrong source and tag; these are right: */
    bool                  resent; /* such a message comes from this process itself */
    int                   source, tag;
    MPI_Comm              comm; /* of a message that is kept */
    int                   code; /* MPI's: MPI_ERR_TRUNCATE if they did not fit */
    xcclResult_t          failed;

    int                 busy; /* atomic: a thread is at it */
    bool                watched;
    struct xm_transfer *before, *after; /* among those watched */

    /* Last: they are not cleared. */
    struct xm_descriptor out;
    char                 head[XM_DESCRIPTOR_BYTES]; /* of the message, with head_kept */
    char                 detail[256]; /* of what failed: any thread may have found it */
};

/* Once, with MPI initialised: from here on every receive is looked at that could hold a message. */
void xm_rendezvous_init(void);
/* Messages are over; in MPI_Finalize. */
void xm_rendezvous_finalize(void);

/* Receives of so many bytes and more look for descriptors; 0: none does. It may become less. */
uint64_t xm_rendezvous_looks_from(void);
/* Does a receive of so many bytes, which begins now? */
bool xm_rendezvous_looks_at(uint64_t bytes);
/* So many bytes and more are offered to who looks for them. */
uint64_t xm_rendezvous_least(void);
/* A device is in use: the other ranks may know that this process looks, if it does. */
void xm_rendezvous_announce(const struct xc_device_ops *dev);
/* A communicator of this process alone. */
MPI_Comm xm_rendezvous_self(void);

/* enum xm_watched: which receives need a look while no device is active. */
const int *xm_rendezvous_watched(void);

/*
 * Send a descriptor in place of the bytes, where the receiver can fetch them: the arguments say so
 * from here on. False: the bytes are to be sent.
 */
bool xm_rendezvous_offer(struct xm_transfer *t);
/* The program has freed a communicator. */
void xm_rendezvous_comm_freed(void);
/* Are messages of this communicator never offered, since who receives them cannot fetch? Or NULL.
 */
extern bool (*xm_rendezvous_excludes)(MPI_Comm comm);
/*
 * The same for this start of a persistent send: r->out is to be sent instead. Its host memory stays
 * for the starts in which nothing can be offered.
 */
bool xm_rendezvous_offer_start(struct xm_transfer *t);
/* Will most of its starts be offered? */
bool xm_rendezvous_will_offer(const struct xm_transfer *t);
/* Would a message from this memory to a rank of a communicator be offered, as far as is known? */
bool xm_rendezvous_is_fetched(MPI_Comm comm, int rank, const struct xm_buffer *buffer);
/* MPI refused the call: take the offer back. */
void xm_rendezvous_withdraw(struct xm_transfer *t);
/* The same where MPI was not called, so that the descriptor has not gone. */
void xm_rendezvous_take_back(struct xm_transfer *t);
/* MPI_Cancel of a send: its end needs nothing of the receiver from here on. */
void xm_rendezvous_cancel(struct xm_transfer *t);

/* Does a message that begins so look like a descriptor? */
bool xm_descriptor_is_magic(uint64_t first);
/* If this is one of a message that can be fetched now, the bytes of the message. */
bool xm_descriptor_bytes(const struct xm_descriptor *d, MPI_Count *bytes_p);

/* Will this argument's message most likely be fetched, so that MPI needs no good memory for it? */
bool xm_rendezvous_is_likely(const struct xm_transfer *t, int argument);

/* A receive's arguments are final but for what is changed here: where would a descriptor come? */
xcclResult_t xm_rendezvous_expect(struct xm_transfer *t);
/* What such a receive replaces is sent from where the message comes: put it there. */
xcclResult_t xm_rendezvous_pack_replaced(struct xm_transfer *t);
/* MPI has received `bytes`. Was that a descriptor? Then it is being fetched. */
bool xm_rendezvous_received(struct xm_transfer *t, MPI_Count bytes);
/* It came staged, and a copy to where it belongs may begin together with others. */
bool xm_rendezvous_land(struct xm_transfer *t, MPI_Count bytes);
/* The end of a receive that came into `landing`: `bytes` go to where they belong. */
xcclResult_t xm_rendezvous_unpack(struct xm_transfer *t, MPI_Count bytes);
/* MPI has received into plain host memory: was that no descriptor, for sure? */
bool xm_rendezvous_is_untouched(const struct xm_transfer *t);
/* The same by looking at the memory alone, before MPI says that it is complete; by any thread. */
void xm_rendezvous_glance(struct xm_transfer *t);
/* Keep other threads from it until a look at it is over; false: one is at it. */
bool xm_rendezvous_hold(struct xm_transfer *t);
/*
 * Both of those that are held: of the messages that have come, all are begun to be fetched
 * together.
 */
void xm_rendezvous_look(struct xm_transfer *const *held, int count);
/* Wait until nobody is at it. */
void xm_rendezvous_let_go(const struct xm_transfer *t);
/* Move what is under way; true once nothing is. Never waits for other ranks. Any thread. */
bool xm_rendezvous_advance(struct xm_transfer *t);
/* Of the message to be sent, or of the room for one; 0: MPI alone carries it. */
uint64_t xm_rendezvous_bytes(const struct xm_rendezvous *r);
/* Until then. */
void xm_rendezvous_wait(struct xm_transfer *t);
/* Give back what a start of a persistent one holds; all that it holds. */
void xm_rendezvous_rest(struct xm_transfer *t);
void xm_rendezvous_close(struct xm_transfer *t);

/* How the message of a send was given to MPI, or that of a receive came, if not as its bytes. */
const char *xm_rendezvous_path_out(const struct xm_rendezvous *r);
const char *xm_rendezvous_path_in(const struct xm_rendezvous *r);

/* What goes wrong; any thread may find it, and the program's reports it. */
void     xm_rendezvous_fail(struct xm_rendezvous *r, xcclResult_t res);
uint64_t xm_descriptor_check(const struct xm_descriptor *d);

#endif
