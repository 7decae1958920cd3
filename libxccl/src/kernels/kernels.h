/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Arguments of the device's kernels: one structure by value each. Read by the host's compiler, by
 * nvcc, by hipcc and by the simulation, so the types have one size everywhere.
 */
#ifndef XK_KERNELS_KERNELS_H
#define XK_KERNELS_KERNELS_H

#include <stdint.h>

#include "kernels/operations.h"

/* Of the arguments and of the commands; a plugin of another number is not used. */
#define XK_VERSION 15

#define XK_IMAGE_SYMBOL "xccl_direct_image"

/* What a plugin libxccl-direct-<runtime>.so holds: kernels as the runtime loads them. */
struct xk_image {
    int32_t     version;
    uint32_t    last;                /* number of an operation; 0: XK_LAST_NUMBER */
    const void *local, *collectives; /* what became of local.cu and of collectives.cu */
};

/* Operations of a communicator are numbered up to this; then its ranks join anew. */
#define XK_LAST_NUMBER 0x7fff0000u
/* Beside a number: a checked sum (XK_SUM_CHECKED) may have left its range. */
#define XK_TROUBLE 0x80000000u

/*
 * xk_batch: bytes that lie side by side, each copy by the first `blocks` blocks of its row of the
 * grid. The last of these says so in host memory.
 */
enum { XK_BATCH = 16 };
struct xk_copy {
    uint64_t  to, from, bytes;
    uint32_t *finished; /* device memory, 0 between kernels: blocks that are through */
    uint32_t *done;     /* host memory; becomes */
    uint32_t  value;
    uint32_t  blocks;
};
struct xk_batch {
    struct xk_copy copy[XK_BATCH];
};

/* A stretch of bytes, repeated by each level in turn; the innermost is the first. */
enum { XK_LEVELS = 5, XK_FEW_RUNS = 8 };
struct xk_level {
    uint64_t count;
    int64_t  stride; /* bytes, in memory */
    uint64_t packed; /* bytes, in the packed data */
};
struct xk_run {
    int64_t         offset; /* bytes from the buffer */
    uint64_t        packed; /* and from the packed data */
    uint64_t        bytes;
    uint64_t        stretches;
    uint32_t        unit; /* bytes that are moved at once: 1, 2, 4, 8 or 16; all of it is aligned */
    uint32_t        levels;
    struct xk_level level[XK_LEVELS];
};

/*
 * xk_pack: data of a datatype from memory to its packed form, or back. Blocks (x, y): y is the run,
 * and the blocks along x share it.
 */
struct xk_pack {
    uint64_t             memory, packed;
    uint32_t             out; /* to memory */
    uint32_t             count;
    const struct xk_run *runs; /* in memory that the device reads, or NULL: */
    struct xk_run        few[XK_FEW_RUNS];
};

/*
 * xk_pack_listed: the same for elements of many irregular stretches. These are listed in the order
 * of the packed data, in memory of the device.
 */
enum { XK_TILE_BYTES = 256 };
struct xk_piece {
    int64_t  offset; /* bytes from the element */
    uint64_t packed; /* and from its packed data */
};
struct xk_listed {
    uint64_t memory, packed;
    uint64_t total;  /* bytes that are moved, the first ones of the packed data */
    uint64_t size;   /* bytes of an element's data */
    int64_t  extent; /* from one element to the next */
    uint64_t same;   /* bytes of each piece, or 0 */
    /*
     * int64_t offsets of the pieces, where all have the same length. Else: an xk_piece of each and
     * one behind the last, and a uint32_t for each XK_TILE_BYTES of packed data: the piece that has
     * its first byte.
     */
    uint64_t list;
    uint32_t pieces; /* entries */
    uint32_t unit;   /* as of a run */
    uint32_t out;    /* to memory */
    uint32_t
        span; /* the other side is not packed: it is shaped as memory is, from its address on */
};

/* ---- collectives among the ranks of a node, see exchange.h and mapped.h ---- */

/*
 * Each rank has a workspace for a communicator, which the others write to. For either parity of the
 * operation's number there is a slot for each rank that writes: a header of 16 bytes, and from
 * XK_SLOT_HEADER on words of 16 bytes, of which 8 are data. Behind the slots are the words by which
 * the ranks of a mapped kernel meet: a line for their coming and one for their going, and in that
 * the rank's own word for a checked sum that may have left its range. They are of 8 bytes, with the
 * number in the upper half, as in each half of a slot's word: so in all of an arena data lies where
 * no number does, whatever the sizes of the communicators that had the memory before.
 */
enum {
    XK_MAX_RANKS = 8,
    XK_SLOT_HEADER = 128,
    XK_MEETING_LINE = 128,
    XK_TROUBLE_AT = XK_MEETING_LINE + 64,
    XK_MEETING_BYTES = 2 * XK_MEETING_LINE,
};

/* Bytes that one rank can send to another: the fewer ranks, the more, in the same memory. */
XK_ANYWHERE uint32_t xk_slot_data(uint32_t size)
{
    return (size <= 2) ? 512 << 10 : (size <= 4) ? 256 << 10 : 128 << 10;
}

XK_ANYWHERE uint64_t xk_slot_bytes(uint32_t size)
{
    return XK_SLOT_HEADER + 2 * (uint64_t)xk_slot_data(size);
}

/* Words of a slot, its header among them. */
XK_ANYWHERE uint32_t xk_slot_words(uint32_t size)
{
    return 1 + xk_slot_data(size) / 8;
}

/* Of one rank for a communicator of so many. */
XK_ANYWHERE uint64_t xk_workspace_bytes(uint32_t size)
{
    return 2 * size * xk_slot_bytes(size) + XK_MEETING_BYTES;
}

/* What the ranks of a communicator have of each other, as this rank's device reaches it. */
struct xk_ranks {
    uint64_t workspace[XK_MAX_RANKS];
    uint32_t rank, size;
    uint64_t abort; /* host memory, uint32_t: not 0 when a kernel that waits is to give up */
};

/* What goes from each rank to each. */
enum xk_form {
    XK_ALLREDUCE,
    XK_REDUCE,
    XK_BCAST,
    XK_ALLGATHER,
    XK_ALLTOALL,
    XK_GATHER,
    XK_SCATTER,
    XK_REDUCE_SCATTER,
    XK_SCAN,
    XK_EXSCAN,
    XK_BARRIER,
    XK_NUM_FORMS
};

/* This rank's dealings with one other, or with itself. Bytes from the buffers. */
struct xk_part {
    uint64_t send_at, receive_at;
    uint32_t send, receive; /* at most xk_slot_data() */
};

/* The same of blocks of any length. */
struct xk_span {
    uint64_t send_at, receive_at;
    uint64_t send, receive;
};

/* In the place of a reduction: blocks go where they belong. */
#define XK_NO_REDUCTION 0xffffu

/*
 * xk_exchange: small messages. Every rank writes its data with the operation's number in every word
 * into the others' slots, and reads what has come into its own. xk_short: the same of fewer
 * bytes, see short.h.
 */
struct xk_exchange {
    struct xk_ranks ranks;
    uint64_t        in, out;
    struct xk_part  parts[XK_MAX_RANKS];
    uint32_t        number;
    uint32_t        what;      /* reduction of what is received: to the first byte of out */
    uint32_t        elsewhere; /* out is no memory of this device's own */
    uint32_t        meets;     /* xk_meets() */
    uint32_t        most;      /* bytes of the longest part, sent or received */
    uint32_t        spare;
    uint32_t       *finished; /* as in struct xk_copy */
    uint32_t       *done; /* and behind it the number of an operation in trouble, written first */
};

/*
 * A pair is a unit of 16 bytes and a rank. Those of a chunk have a thread each, of so many. Four
 * chunks a block, one after the other, take less than xk_exchange: 10.7 us instead of 12.5 for a
 * reduce of 512 KiB. 2 H200s.
 */
enum { XK_PAIRS = 512, XK_MOST_CHUNKS = 4, XK_MOST_SHORT_BLOCKS = 32 };

/*
 * Blocks for so many bytes between every two ranks: a chunk each, while there are blocks. With two
 * chunks each a kernel that lingers takes up to 0.9 us longer from 16 KiB on, though fewer blocks
 * have to be told. 2 H200s.
 */
XK_ANYWHERE uint32_t xk_short_blocks(uint32_t size, uint64_t bytes)
{
    uint64_t blocks = (bytes * size + XK_PAIRS * 16 - 1) / (XK_PAIRS * 16);

    return (blocks < 1)                      ? 1
           : (blocks < XK_MOST_SHORT_BLOCKS) ? (uint32_t)blocks
                                             : XK_MOST_SHORT_BLOCKS;
}

/* Is it for xk_short, by so many blocks? A block has several chunks one after the other. */
XK_ANYWHERE int xk_is_short(uint32_t size, uint64_t most, uint32_t blocks)
{
    return most * size <= (uint64_t)blocks * XK_MOST_CHUNKS * XK_PAIRS * 16;
}

/*
 * Do the ranks of an exchange have to tell each other whether they have noticed that a checked sum
 * may have left its range? Those of an allreduce have all added the same.
 */
XK_ANYWHERE uint32_t xk_meets(enum xk_form form, uint32_t what)
{
    return (XK_OP_OF(what) == XK_SUM_CHECKED) && (form != XK_ALLREDUCE);
}

/*
 * xk_rounds: blocks that are too long for a slot, a piece of each in every round. A round is an
 * exchange with a number of its own. See rounds.h.
 */
struct xk_rounds {
    struct xk_ranks ranks;
    uint64_t        in, out;
    struct xk_span  spans[XK_MAX_RANKS];
    uint32_t        number; /* of the first round */
    uint32_t        rounds;
    uint32_t        piece;     /* bytes, a multiple of 16; at most xk_slot_data() */
    uint32_t        what;      /* as in xk_exchange */
    uint32_t        shared;    /* an allreduce: each rank adds a part, and sends it to all */
    uint32_t        one_way;   /* some rank only sends, or only receives */
    uint32_t        elsewhere; /* as in xk_exchange, and so on */
    uint32_t        spare;
    uint32_t       *finished;
    uint32_t       *done;
};

/*
 * xk_enqueued: the same on a stream of the program's, see enqueued.h. The counter is device memory
 * of this rank's.
 */
struct xk_counter {
    uint32_t number;   /* of the next operation */
    uint32_t finished; /* as in struct xk_copy */
    uint32_t rounds;   /* how often numbers have begun anew */
    uint32_t spare;    /* 0: what lies there is never taken for a word that has come */
};
struct xk_enqueued {
    struct xk_exchange exchange; /* but its number, and the words told at the end */
    uint32_t           last;     /* number before 1; even */
    uint32_t           sweep;    /* words that an operation clears of each slot */
    struct xk_counter *counter;
};

/* xk_await: one thread waits for a word of host memory. */
struct xk_await {
    const uint32_t *word;
    uint32_t        least, spare;
};

/* The parts of a collective whose blocks have all the same size. Reductions: all in one block. */
XK_ANYWHERE struct xk_span xk_span_of(enum xk_form form, uint32_t root, uint32_t rank,
                                      uint32_t other, uint64_t bytes)
{
    struct xk_span span = {0, 0, 0, 0};
    uint32_t       sends = 1, receives = 1;

    switch (form) {
    case XK_REDUCE:
    case XK_GATHER:
        sends = (other == root);
        receives = (rank == root);
        break;
    case XK_BCAST:
    case XK_SCATTER:
        sends = (rank == root);
        receives = (other == root);
        break;
    case XK_SCAN:
        sends = (other >= rank);
        receives = (other <= rank);
        break;
    case XK_EXSCAN:
        sends = (other > rank);
        receives = (other < rank);
        break;
    case XK_BARRIER:
        sends = receives = 0;
        break;
    default:
        break;
    }
    span.send = (sends != 0) ? bytes : 0;
    span.receive = (receives != 0) ? bytes : 0;
    if ((form == XK_ALLTOALL) || (form == XK_SCATTER) || (form == XK_REDUCE_SCATTER)) {
        span.send_at = other * bytes;
    }
    if ((form == XK_ALLGATHER) || (form == XK_ALLTOALL) || (form == XK_GATHER)) {
        span.receive_at = other * bytes;
    }
    return span;
}

/* Of one that fits. */
XK_ANYWHERE struct xk_part xk_part_of(const struct xk_span *s)
{
    struct xk_part part = {s->send_at, s->receive_at, (uint32_t)s->send, (uint32_t)s->receive};

    return part;
}

/*
 * xk_mapped: large ones. One rank reduces a stretch from several buffers into several; or it copies
 * several, each into one. Before that and after it the ranks meet, unless their hosts do. Sources
 * and targets are in an order of each rank's own, so that not all are at the same rank at once; a
 * reduction's begin with rank `turn`, and are added in the order of the ranks.
 */
struct xk_work {
    uint64_t from[XK_MAX_RANKS], to[XK_MAX_RANKS];
    uint64_t bytes;                 /* of each; or, where source i goes to target i: */
    uint64_t lengths[XK_MAX_RANKS]; /* of source i */
    uint32_t sources, targets;      /* targets 0: source i goes to target i */
    uint32_t turn;
    uint32_t number;
    uint32_t what;
    uint32_t meets;
};
struct xk_mapped {
    struct xk_ranks ranks;
    struct xk_work  work;
    uint32_t       *finished;
    uint32_t       *done; /* and behind it, as in xk_exchange */
};

/*
 * xk_linger and xk_attend: kernels that stay and carry out what they are told: copies the one,
 * exchanges and what xk_mapped does the other. The first block listens to the host, and tells the
 * others what is too much for one. A device reads at least 8 bytes at once, so each word of a
 * command has the command's number beside its value: the command is there when all numbers are the
 * same and new.
 */
enum {
    XK_IN_LOW,  /* of a copy: from */
    XK_IN_HIGH, /* mapped: sources | targets << 8 | turn << 16 | meets << 24 */
    XK_OUT_LOW, /* to; mapped: bytes */
    XK_OUT_HIGH,
    XK_BYTES,     /* at most 4 GiB less 1; or the number of records */
    XK_HOW,       /* xk_how() */
    XK_RANKS_LOW, /* by runs: where those are, XK_BYTES of them; or the list. No more of a copy. */
    XK_RANKS_HIGH,
    XK_NUMBER,
    XK_SERIAL, /* tells apart what was there before from what is there now */
    XK_WORDS,  /* even */
    /* Of some commands a record for each rank follows, see below. */
    XK_RECORDS = XK_WORDS,
    XK_RECORD = 5, /* words */
    XK_ALL_WORDS = XK_RECORDS + XK_RECORD * XK_MAX_RANKS,
    /* So many are looked at together, with the records of four ranks: one request on the bus. */
    XK_LISTENED = 32
};
/* A record, mapped: low and high of two addresses, and how long source i is. */
enum { XK_FROM, XK_TO = 2, XK_LENGTH = 4 };
/* And with XK_PARTS: a struct xk_part, its offsets below 4 GiB. */
enum { XK_SEND_AT, XK_SEND, XK_RECEIVE_AT, XK_RECEIVE };
/*
 * In the place of a form. XK_TELLS: a few bytes of device memory come back in the answers.
 * XK_TAKES: very few are in the command and go to device memory of the kernel's own. Neither waits
 * for the bus another time.
 */
enum xk_copies { XK_MAPPED = XK_NUM_FORMS, XK_COPIES, XK_LEAVE, XK_TELLS, XK_TAKES };
/*
 * What XK_COPIES does: a stretch; what xk_pack does by few runs, from memory IN and to it; what
 * xk_pack_listed does; or, with XK_PARTS, several stretches, XK_BYTES of them, with a record each
 * as of mapped ones.
 */
enum xk_by { XK_BY_BYTES, XK_BY_RUNS, XK_BY_RUNS_BACK, XK_BY_LIST, XK_BY_RECORDS };
/* At 1 KiB the words take as long as a copy and a fence. 2 H200s. */
enum { XK_TELLS_BYTES = 256, XK_TAKES_BYTES = 24 };
/* Which word of a command has 4 bytes of XK_TAKES. */
XK_ANYWHERE uint32_t xk_taken_at(uint32_t i)
{
    return (i < 2) ? XK_IN_LOW + i : XK_RANKS_LOW + i - 2;
}
/* In the place of a root's last bit: an exchange whose parts are told one by one. */
enum { XK_PARTS = 8 };
XK_ANYWHERE uint32_t xk_how(uint32_t form, uint32_t root, uint32_t blocks, uint32_t elsewhere,
                            uint32_t what)
{
    return form | root << 4 | blocks << 8 | elsewhere << 15 | what << 16;
}
XK_ANYWHERE uint32_t xk_how_form(uint32_t how)
{
    return how & 0xf;
}
XK_ANYWHERE uint32_t xk_how_root(uint32_t how)
{
    return (how >> 4) & (XK_PARTS - 1);
}
XK_ANYWHERE uint32_t xk_how_has_parts(uint32_t how)
{
    return (how >> 4) & XK_PARTS;
}
/* Words of a command, an even number. */
XK_ANYWHERE uint32_t xk_words_of(uint32_t how, uint32_t records)
{
    if ((xk_how_form(how) != XK_MAPPED) && (xk_how_has_parts(how) == 0)) {
        return XK_WORDS;
    }
    records = (records < XK_MAX_RANKS) ? records : XK_MAX_RANKS;
    return XK_RECORDS + (XK_RECORD * records + 1) / 2 * 2;
}
/* That it is for, if the kernel has as many. */
XK_ANYWHERE uint32_t xk_how_blocks(uint32_t how)
{
    return (how >> 8) & 0x7f;
}
XK_ANYWHERE uint32_t xk_how_elsewhere(uint32_t how)
{
    return (how >> 15) & 1;
}
XK_ANYWHERE uint32_t xk_how_what(uint32_t how)
{
    return how >> 16;
}
struct xk_command {
    uint64_t word[XK_ALL_WORDS]; /* value | number << 32 */
};
/* Device memory, zeroed once: what the first block tells the others, and what they answer. */
struct xk_relay {
    uint64_t word[XK_ALL_WORDS]; /* as in a command */
    uint64_t leave, spare;       /* the epoch of the kernel that is to end */
    uint32_t arrived;            /* blocks that have done their part */
    uint32_t ended;              /* number of the last command that all have done */
    uint32_t begun;              /* blocks that have */
    uint32_t spare_word;
    uint64_t room[10]; /* whole lines: several lie side by side */
};
/* Host memory that the device writes to. */
struct xk_answers {
    uint32_t alive;   /* becomes the kernel's epoch when all its blocks have begun */
    uint32_t done;    /* number of the last command carried out */
    uint32_t trouble; /* and of one whose checked sum may have left its range, written first */
    uint32_t gone;    /* becomes the epoch when it looks at no command any more */
    /* Of XK_TELLS, 4 bytes each: value | number << 32. It is there when the number is. */
    uint64_t told[XK_TELLS_BYTES / 4];
};
struct xk_linger {
    const struct xk_command *command;
    struct xk_answers       *answers;
    struct xk_relay         *relay;
    uint64_t                 idle_ns, life_ns; /* without a command; and at all */
    uint32_t                 epoch;
    uint32_t                 number; /* of the last command before it */
    uint32_t                 first;  /* is the command below the first one, of the next number? */
    uint32_t                 values[XK_ALL_WORDS];
};

#endif
