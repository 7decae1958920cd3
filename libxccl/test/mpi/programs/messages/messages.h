/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Random messages: what one is, and how it is drawn, sent, received and compared. All ranks draw
 * the same messages from one seed; each side draws by itself how it sends or receives.
 */
#ifndef MT_MESSAGES_H
#define MT_MESSAGES_H

#include "random.h"
#include "support.h"

enum {
    MG_MAX_ELEMENTS = 2 * RX_MAX_PLACES, /* basic ones of a datatype */
    MG_PART = 3,                         /* the slots of the two parts of a split */
    MG_SHIFTED = 5,                      /* the slot that only shifts use */
    MG_COMMS,
    MG_MESSAGES = 10,
    MG_SHIFTS = 2,
    MG_SIDES = 2 * (MG_MESSAGES + MG_SHIFTS),
    MG_SLOTS = MG_SIDES + 6, /* so some requests are always null */
    MG_WHERES = 3,
    MG_BUFFERED = 32 << 10 /* bytes of the largest message that is sent with a buffer */
};

/* A communicator as every rank knows it. */
struct mg_comm {
    MPI_Comm    comm; /* of this rank, if it belongs to it */
    const char *kind;
    int         rank; /* this one, or -1 */
    int         size;
    int         world[RX_MAX_RANKS]; /* rank of each member among all */
};

/* A datatype as its basic elements, in the order in which they are sent. */
struct mg_type {
    MPI_Datatype handle;
    const char  *base, *shape;
    int          num;
    bool         pairs; /* MPI libraries do not agree how many elements one is */
    size_t       at[MG_MAX_ELEMENTS];
    size_t       sizes[MG_MAX_ELEMENTS];
    size_t       size; /* of the data */
    intptr_t     low, high, extent;
};

enum mg_kind { MG_MESSAGE, MG_TO_NOBODY, MG_FROM_NOBODY, MG_CANCELLED, MG_SHIFT };

/* How the receives of a rank on a communicator may be made. */
enum mg_wild {
    MG_EXACT,   /* with the source, except where nobody else sends the tag */
    MG_ANY_TAG, /* perhaps with any tag */
    MG_ANY      /* with any source and any tag: the status says what came */
};

/* The same on every rank. */
struct mg_message {
    enum mg_kind   kind;
    enum mg_wild   wild;
    int            slot, source, dest, tag;
    bool           unique; /* nothing else has this tag */
    bool           alone;  /* no other receive can take it */
    bool           posted; /* its receive is there before anything is sent */
    uint64_t       seed;   /* of its data */
    size_t         bytes;
    int            send_count, recv_count;
    struct mg_type send_type, recv_type;
};

/* Each member sends to the one so many ranks away; at the ends to nobody, or around. */
struct mg_shift {
    int      distance;
    bool     around;
    int      tag;
    uint64_t seed;
};

struct mg_round {
    long              number;
    uint64_t          seed;
    int               passes;
    bool              ready; /* a barrier stands between the first receives and the sends */
    bool              loose; /* the next round begins without a barrier */
    int               num_messages;
    struct mg_message messages[MG_MESSAGES];
    int               num_shifts;
    struct mg_shift   shifts[MG_SHIFTS];
};

/* How a side is made; the modes of sends are standard, buffered, synchronous and ready. */
enum mg_form {
    MG_BLOCKING,
    MG_NONBLOCKING,
    MG_PERSISTENT,
    MG_PROBED,   /* MPI_Probe, then MPI_Recv */
    MG_IPROBED,  /* MPI_Iprobe until there is something, then MPI_Irecv */
    MG_MPROBED,  /* MPI_Mprobe, then MPI_Mrecv */
    MG_IMPROBED, /* MPI_Improbe until there is something, then MPI_Imrecv */
    MG_PAIRED,   /* MPI_Sendrecv or MPI_Isendrecv */
    MG_REPLACED  /* MPI_Sendrecv_replace or MPI_Isendrecv_replace */
};
enum mg_mode { MG_STANDARD, MG_BUFFER, MG_SYNCHRONOUS, MG_READY, MG_MODES };

/* The end of a message on this rank, and its buffer. */
struct mg_side {
    struct mg_message     message; /* of a shift, made for it */
    bool                  sends;
    enum mg_form          form;
    enum mg_mode          mode;
    bool                  frees;       /* the request is freed instead of completed */
    bool                  batched;     /* started with others by one call */
    bool                  returns;     /* a shift by the call that has a request */
    int                   source, tag; /* as the receive is made */
    const struct mg_type *type;
    int                   count;
    enum mt_where         where;
    size_t                bytes, origin;
    char                 *memory;
    char                 *before;
    const struct mg_side *replaced; /* the send whose buffer this receive fills */

    struct mg_side *pair; /* of the receive of a shift: the send */

    int        slot; /* of its request, or -1 */
    bool       active;
    bool       checked; /* its buffer was compared, or belongs to the program again */
    bool       known;   /* there is a status */
    MPI_Status status;
};

struct mg_worker {
    int             id;
    MPI_Comm        parent;
    struct mg_comm  comms[MG_COMMS];
    struct mg_round round;
    int             pass;
    const char     *phase;
    uint64_t        own; /* decisions that differ by rank */
    int             num_sides;
    struct mg_side  sides[MG_SIDES];
    MPI_Request     requests[MG_SLOTS];
    struct mg_side *owners[MG_SLOTS];
    char           *arenas[MG_WHERES];
    size_t          used[MG_WHERES];
    int             num_extra;
    char           *extra[MG_SIDES]; /* buffers that did not fit */
    enum mt_where   extra_where[MG_SIDES];
    char           *scratch[2];
    size_t          scratch_size[2];
};

/* messages_draw.c */
void mg_comms_make(struct mg_worker *w);
void mg_comms_free(struct mg_worker *w);
void mg_draw(struct mg_worker *w, long number);
void mg_shift_message(const struct mg_worker *w, const struct mg_shift *shift, int from,
                      struct mg_message *m);
bool mg_same_domain(const struct mg_message *a, const struct mg_message *b);

/* messages_check.c: buffers and what has to be in them */
void mg_side_open(struct mg_worker *w, struct mg_side *side);
void mg_side_fill(struct mg_worker *w, struct mg_side *side);
void mg_side_check(struct mg_worker *w, struct mg_side *side, const struct mg_message *came);
void mg_side_reuse(struct mg_worker *w, struct mg_side *side);
void mg_sides_close(struct mg_worker *w);
/* What a receive without wildcards gets; NULL for nothing. */
const struct mg_message *mg_expected(const struct mg_side *side);
void mg_status_check(struct mg_worker *w, const struct mg_side *side, const MPI_Status *status,
                     const struct mg_message *came);
void mg_expect(struct mg_worker *w, const struct mg_side *side, bool good, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
void mg_describe(const struct mg_worker *w, const struct mg_side *side, char *text, size_t size);

/* messages_calls.c: the calls that send and receive */
void mg_send(struct mg_worker *w, struct mg_side *side);
void mg_receive(struct mg_worker *w, struct mg_side *side);
void mg_exchange(struct mg_worker *w, struct mg_side *recv);
void mg_start_batched(struct mg_worker *w, bool sends);
bool mg_has_isendrecv(void);

/* Of a status that the side can do without: at times none. */
MPI_Status *mg_status_or_none(struct mg_worker *w, const struct mg_side *side, MPI_Status *status);

/* messages_wait.c: the calls that complete requests */
void mg_keep(struct mg_worker *w, struct mg_side *side, MPI_Request request);
void mg_done(struct mg_worker *w, struct mg_side *side, const MPI_Status *status);
void mg_try_some(struct mg_worker *w);
void mg_complete_all(struct mg_worker *w);

#endif
