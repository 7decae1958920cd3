/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Arguments of the device's kernels: one structure by value each. Read by the host's compiler, by
 * nvcc, by hipcc and by the simulation, so the types have one size everywhere.
 */
#ifndef XK_KERNELS_KERNELS_H
#define XK_KERNELS_KERNELS_H

#include <stdint.h>

/* Of the arguments and of the commands; a plugin of another number is not used. */
#define XK_VERSION 1

#define XK_IMAGE_SYMBOL "xccl_direct_image"

/* What a plugin libxccl-direct-<runtime>.so holds: kernels as the runtime loads them. */
struct xk_image {
    int32_t     version;
    int32_t     spare;
    const void *image;
};

/*
 * xk_copy: bytes that lie side by side, by as many blocks as there are. The last block says so in
 * host memory.
 */
struct xk_copy {
    uint64_t  to, from, bytes;
    uint32_t *finished; /* device memory, 0 between kernels: blocks that are through */
    uint32_t *done;     /* host memory; becomes */
    uint32_t  value;
    uint32_t  spare;
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
 * xk_linger: a kernel of one block that stays and copies what it is told to. A device reads at
 * least 8 bytes at once, so each word of a command has the command's number beside its value: the
 * command is there when all numbers are the same and new.
 */
enum { XK_TO_LOW, XK_TO_HIGH, XK_FROM_LOW, XK_FROM_HIGH, XK_BYTES, XK_UNUSED, XK_WORDS };
struct xk_command {
    uint64_t word[XK_WORDS]; /* value | number << 32 */
};
/* Host memory that the device writes to. */
struct xk_answers {
    uint32_t alive; /* becomes the kernel's epoch when it has begun */
    uint32_t done;  /* number of the last command carried out */
    uint32_t gone;  /* becomes the epoch when it looks at no command any more */
    uint32_t spare;
};
struct xk_linger {
    const struct xk_command *command;
    struct xk_answers       *answers;
    uint64_t                 idle_ns, life_ns; /* without a command; and at all */
    uint32_t                 epoch;
    uint32_t                 number; /* of the last command before it */
};

#endif
