/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The mailbox: the part of a process's board that concerns messages. It says whether the process
 * can fetch messages from device memory, and holds the state of those that it offers.
 */
#ifndef XM_COMMS_MAILBOX_H
#define XM_COMMS_MAILBOX_H

#include "comms/board.h"
#include "device/device.h"

/* How the names of such files begin. */
#define XM_OFFER_FILES "xccl-message"

enum { XM_OFFERS = 1024, XM_OFFER_DEVICES = 16 };

/*
 * An offer is a message whose bytes stay with the sender until the receiver has fetched them.
 * Open: nobody has it yet. Taken: the receiver fetches. Refused: the receiver cannot reach the
 * memory. Served: the bytes are in the sender's file `fd` instead, at `at_in_file`. Asked: the
 * receiver waits a little for the sender to write them to the target. Pushing: it does. Done:
 * fetched, written, or of no use. Left: nobody has it yet, and its sender does not wait any longer:
 * the bytes are in the file.
 */
enum xm_offer_state {
    XM_OFFER_OPEN = 1,
    XM_OFFER_TAKEN,
    XM_OFFER_REFUSED,
    XM_OFFER_SERVED,
    XM_OFFER_DONE,
    XM_OFFER_ASKED,
    XM_OFFER_PUSHING,
    XM_OFFER_LEFT,
    XM_OFFER_STATES
};

/* Where a message's bytes are. */
struct xm_sent {
    uint64_t      bytes, offset; /* of the message, from the allocation's base */
    struct xc_ipc ipc;
    unsigned char uuid[XC_DEVICE_UUID_BYTES]; /* the device's */
};

struct xm_offer {
    uint64_t state; /* atomic: xm_offer_word() of the message; 0: free */
    int32_t  fd;
    int32_t  once; /* set before a refusal: the next message may be fetched again */
    uint64_t at_in_file;
    /* The receiver's memory, where it asks for the bytes. Apart from the state, which both poll. */
    uint64_t      target_nonce __attribute__((aligned(64)));
    uint64_t      target_offset;
    struct xc_ipc target;
    /* Complete before the offer is open. */
    struct xm_sent source __attribute__((aligned(64)));
} __attribute__((aligned(64)));

struct xm_mailbox {
    /*
     * Atomic. Every receive of so many bytes or more looks whether an offer came, and this process
     * can fetch; 0: no.
     */
    uint64_t      looks_from;
    uint32_t      num_devices; /* that it sees; set before looks_from */
    uint32_t      maps_unseen; /* may it also map memory of others? */
    unsigned char devices[XM_OFFER_DEVICES][XC_DEVICE_UUID_BYTES];
    uint64_t      mapping_ns; /* atomic: since when a thread of it maps memory; 0: none does */
    /* Atomic: how often this process was asked to write a message. */
    uint64_t asks __attribute__((aligned(64)));
    /* Atomic: when a thread of it looked last at what it is asked. */
    uint64_t looked_ns __attribute__((aligned(64)));
    /*
     * Atomic: the messages that came and cannot be fetched, since this process does not reach the
     * sender's board: so the sender learns it here. The last ones, by a number for each.
     */
    uint64_t        num_lost __attribute__((aligned(64)));
    uint64_t        lost[XM_OFFERS];
    struct xm_offer offers[XM_OFFERS];
};

/*
 * Let others know that this process fetches, with the devices that it sees. Once a device is
 * active; costs one load afterwards.
 */
void xm_mailbox_announce(const struct xc_device_ops *dev, uint64_t looks_from);

/*
 * From here on others leave no more messages here: those of an MPI-4 session may be received after
 * MPI_Finalize, when none is fetched.
 */
void xm_mailbox_take_no_more(void);
/* May other ranks send descriptors instead of messages to this one? */
bool xm_mailbox_is_announced(void);
/* From here on it does not fetch. */
void xm_mailbox_close(void);

/* Take a free offer and open it; -1: all are taken. */
int xm_offer_take(const struct xm_sent *source, uint64_t *number_p);
/* Give it back, in any state. */
void xm_offer_give(int slot);
/* Is one of so many bytes taken? */
enum { XM_LONG_BYTES = 8 << 20 };
bool xm_offers_any_long(void);
/* Of this process; of a board's process. NULL if there is no such slot. */
struct xm_offer *xm_offer_own(int slot);
struct xm_offer *xm_offer_of(struct xm_board *board, int slot);

/* That an offer is in, of whatever process. */
static inline struct xm_mailbox *xm_offer_mailbox(struct xm_offer *offer, int slot)
{
    char *offers = (char *)(offer - slot);

    return (struct xm_mailbox *)(void *)(offers - offsetof(struct xm_mailbox, offers));
}
/* A thread of this process begins to map memory, or has done so; one at a time. */
void xm_mailbox_maps(bool begins);
/*
 * Does one of this rank of MPI_COMM_WORLD? Then it comes to nothing else meanwhile. It takes
 * milliseconds: where it takes much longer something holds it up, and nobody is to count on its
 * end.
 */
bool xm_mailbox_is_mapping(int world_rank);
/* This process looks at what it is asked now. Returns how often it was. */
uint64_t xm_mailbox_looked(void);
/* And is at what it was asked for so long, unless it says again that it looks. */
void xm_mailbox_looks_for(uint64_t ns);

/* What an offer of message `number` holds in this state. */
static inline uint64_t xm_offer_word(uint64_t number, enum xm_offer_state state)
{
    return number * XM_OFFER_STATES + state;
}

static inline enum xm_offer_state xm_offer_state(const struct xm_offer *offer)
{
    return (enum xm_offer_state)(__atomic_load_n(&offer->state, __ATOMIC_ACQUIRE) %
                                 XM_OFFER_STATES);
}

/* From one state to another, if message `number` is in it. */
bool xm_offer_move(struct xm_offer *offer, uint64_t number, enum xm_offer_state from,
                   enum xm_offer_state to);

/*
 * The process of a rank of MPI_COMM_WORLD on this node, if it fetches messages of `bytes` from the
 * device `uuid`, which it may have to see for that; else NULL. A rank that is not found is looked
 * for again, ever more rarely.
 */
struct xm_board *xm_mailbox_find(int world_rank, uint64_t bytes,
                                 const unsigned char uuid[XC_DEVICE_UUID_BYTES]);
/* A message of a process, by its board and number, came and cannot be fetched: say so here. */
void xm_mailbox_lose(uint64_t nonce, uint64_t number);
/* Did a rank that was found say so of message `number` of this process? */
bool xm_mailbox_has_lost(int world_rank, uint64_t number);
/* It turned out that it cannot. */
void xm_mailbox_refused(int world_rank);
/* Will a rank that was found receive nothing any more? */
bool xm_mailbox_is_closed(int world_rank);

#endif
