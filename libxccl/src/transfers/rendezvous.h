/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rendezvous: in the place of a message from device memory its sender sends a descriptor, with the
 * program's communicator and tag, so MPI matches it as it would have matched the message. Whoever
 * receives it fetches the bytes from the sender's memory. The sender decides alone: a process that
 * has announced itself (comms/mailbox.h) looks at each receive that could hold such a message.
 *
 * Neither side owes the other anything inside MPI: what is left to do after the match goes through
 * memory that both share, and a thread does it while the program is elsewhere (watcher.c).
 */
#ifndef XM_TRANSFERS_RENDEZVOUS_H
#define XM_TRANSFERS_RENDEZVOUS_H

#include "comms/mailbox.h"
#include "data/copy.h"
#include "data/kernels.h"
#include "data/mappings.h"

#define XM_DESCRIPTOR_MAGIC 0x7863636c72647631u

/* Small, and a multiple of most types' sizes: see ends_within_element(). */
enum { XM_DESCRIPTOR_BYTES = 80 };

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
    char     room[36];
    uint64_t check; /* over all before it */
};
_Static_assert(sizeof(struct xm_descriptor) == XM_DESCRIPTOR_BYTES, "as every receiver expects it");

struct xm_transfer;

/* Stages of a receive. */
enum xm_fetch {
    XM_FETCH_NONE,
    XM_FETCH_PUSHED,  /* the sender is to write */
    XM_FETCH_MAPPING, /* the sender's memory is to be mapped */
    XM_FETCH_COPYING,
    XM_FETCH_REFUSED,
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
    int               file;   /* that the bytes are served from, or -1 */
    void             *pushed; /* event of the copy to the receiver, or NULL */

    /* Of a receive. */
    bool             looks;
    struct xm_buffer receive;
    int              argument; /* that the buffer is */
    /* What MPI receives into, shaped as the buffer; NULL with `landing`. */
    char                 *base;
    const struct xm_flat *flat;    /* how, unless the buffer is plain; held with `holds` */
    bool                  holds;   /* that, or the type where there is none */
    char                 *landing; /* packed bytes instead, for a type that cannot be taken apart */
    bool                  scatters; /* or for the time of a copy */
    enum xm_fetch         fetch;    /* atomic: changed by the thread that is at it */
    uint64_t              came_ns;  /* when its descriptor came */
    struct xm_descriptor  got;
    struct xm_sent        from;
    struct xm_offer      *offer;
    uint64_t              asked_ns; /* when the driver was asked for a copy */
    void                 *event;    /* the copy's, unless a kernel does it: */
    struct xm_kernel_copy by_kernel;
    MPI_Count             came; /* bytes, once fetch is over */
    bool                  kept; /* MPI says a wrong source and tag; these are right: */
    int                   source, tag;
    MPI_Comm              comm; /* of a message that is kept */
    int                   code; /* MPI's: MPI_ERR_TRUNCATE if they did not fit */
    xcclResult_t          failed;
    char                  detail[256]; /* of that: any thread may have found it */

    int                 busy; /* atomic: a thread is at it */
    bool                watched;
    struct xm_transfer *before, *after; /* among those watched */

    struct xm_descriptor out; /* last: it is not cleared */
};

/* Once, with MPI initialised: from here on every receive is looked at that could hold a message. */
void xm_rendezvous_init(void);
/* Messages are over; in MPI_Finalize. */
void xm_rendezvous_finalize(void);

/* Receives of so many bytes and more look for descriptors; 0: none does. */
uint64_t xm_rendezvous_looks_from(void);
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
/* MPI refused the call: take the offer back. */
void xm_rendezvous_withdraw(struct xm_transfer *t);
/* MPI_Cancel of a send: its end needs nothing of the receiver from here on. */
void xm_rendezvous_cancel(struct xm_transfer *t);

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
/* The end of a receive that came into `landing`: `bytes` go to where they belong. */
xcclResult_t xm_rendezvous_unpack(struct xm_transfer *t, MPI_Count bytes);
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
/* Until then. */
void xm_rendezvous_wait(struct xm_transfer *t);
/* Give back what a start of a persistent one holds; all that it holds. */
void xm_rendezvous_rest(struct xm_transfer *t);
void xm_rendezvous_close(struct xm_transfer *t);

/* What goes wrong; any thread may find it, and the program's reports it. */
void     xm_rendezvous_fail(struct xm_rendezvous *r, xcclResult_t res);
uint64_t xm_descriptor_check(const struct xm_descriptor *d);

/* ---- offer.c; by the thread that is at the transfer ---- */

/* Is the message gone? */
bool xm_offer_advance(struct xm_rendezvous *r);
/* A copy of the bytes in a file without a name; -1 if there is no memory for it. */
xcclResult_t xm_offer_to_file(const struct xm_rendezvous *r, int *file_p);

/* ---- left.c ---- */

/* The program cancels the send: it is over without the receiver, who finds the bytes in a file. */
void xm_offer_leave(struct xm_rendezvous *r);
/* Close the files of messages that were received; last: wait for all that may still be. */
void xm_offers_left(bool last);

/* ---- push.c: the sender writes; likewise ---- */

/* It may have to be known how many there are before anything is done about such a message. */
bool xm_push_depends(uint64_t bytes);
/* By the receiver of what it has taken: is the sender asked to? several: copies at once. */
bool xm_push_ask(struct xm_rendezvous *r, const struct xc_device_ops *dev, bool several);
/* NOT: it is the receiver's again. */
enum xm_push { XM_PUSH_WAITS, XM_PUSH_DONE, XM_PUSH_NOT };
enum xm_push xm_push_look(struct xm_rendezvous *r);
/* By the sender, which looks at all of its offers if it has been asked; and at this one then. */
bool xm_push_attend(void);
void xm_push_begin(struct xm_rendezvous *r);
void xm_push_advance(struct xm_rendezvous *r);

/* ---- question.c: of a copy by an engine, from begin until it is no longer in progress ---- */

void         xm_question_begin(struct xm_rendezvous *r);
xcclResult_t xm_question_ask(struct xm_rendezvous *r, const struct xc_device_ops *dev, void *event);

/* ---- fetch.c; likewise ---- */

/* A descriptor that nobody took yet, of a process of this node? */
bool xm_descriptor_is_open(const struct xm_descriptor *d, struct xm_offer **offer_p);
/* With the descriptor in r->got, and taken. served: the bytes are in the sender's file already. */
void xm_fetch_start(struct xm_transfer *t, bool served);
/* Is nothing under way? */
bool xm_fetch_advance(struct xm_transfer *t);

/* ---- shape.c: the first bytes of a buffer in host memory, in the order of its type ---- */

void xm_shape_gather(const struct xm_rendezvous *r, char *packed, size_t bytes);
void xm_shape_scatter(const struct xm_rendezvous *r, const char *packed, size_t bytes);

/* ---- kept.c: messages that a probe had to take out of MPI's queue ---- */

/* Are there any? Then each receive has to look for its message here first. */
bool xm_kept_any(void);
/*
 * Once messages are moved here while other threads receive, each receive looks here and is given to
 * MPI, if it has to be, between these. Nothing waits for other ranks there. Leaving twice is once.
 */
void xm_kept_enter(void);
void xm_kept_leave(void);
bool xm_kept_by_threads(void);
/* May threads do that? Then each receive that MPI is given otherwise is registered until it has it.
 */
bool xm_kept_has_threads(void);
/* -1: it is to be given to MPI as above. */
int  xm_kept_register(MPI_Comm comm, int source, int tag);
void xm_kept_unregister(int slot);
/* MPI_Probe, Iprobe, Mprobe, Improbe: a descriptor's message has the bytes of what it stands for.
 */
int xm_kept_probe(enum xm_function function, int profiling, const long *args);
/*
 * Is the message of this receive kept? Then *message_p is to be received with MPI_Mrecv or Imrecv,
 * and its status is from r.
 */
bool xm_kept_match(MPI_Comm comm, int source, int tag, MPI_Message *message_p,
                   struct xm_rendezvous *r);
/* The same of a message that the program has matched already. */
bool xm_kept_matched(MPI_Message message, struct xm_rendezvous *r);
void xm_kept_end(void);

/* ---- watcher.c: a thread for the time that the program spends elsewhere ---- */

/* Look after a transfer until it is forgotten. */
void xm_watch(struct xm_transfer *t);
void xm_unwatch(struct xm_transfer *t);
/* How many receives are there? */
int xm_watched_receives(void);
/* In every so many rounds over all receives MPI is asked for each of them. */
unsigned xm_watch_pause(void);
/* A thread of the program's looks after transfers itself just now. */
void xm_watch_looked(void);
/* It has looked at so many that are not over: and at others, if there are more. */
void xm_watch_others(int looked);
/* One was begun: many may be, before the first is waited for, and the link would be idle. */
void xm_watch_posted(void);
/* In there, on this thread: more may follow. */
bool xm_watch_is_posting(void);
void xm_watcher_end(void);

#endif
