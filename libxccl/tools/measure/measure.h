/* SPDX-License-Identifier: BSD-3-Clause */
/* Measuring calls of MPI, for xccl-perf and xccl-tune. For each case (a test at a size): plan,
 * fill, call, verify, measure. */
#ifndef XCCL_MEASURE_MEASURE_H
#define XCCL_MEASURE_MEASURE_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "device/device.h"

/* Collectives, then tests of messages. */
enum perf_test {
    PERF_ALLREDUCE,
    PERF_BCAST,
    PERF_REDUCE,
    PERF_REDUCE_SCATTER,
    PERF_REDUCE_SCATTER_BLOCK,
    PERF_ALLGATHER,
    PERF_ALLGATHERV,
    PERF_ALLTOALL,
    PERF_ALLTOALLV,
    PERF_GATHER,
    PERF_GATHERV,
    PERF_SCATTER,
    PERF_SCATTERV,
    PERF_SCAN,
    PERF_EXSCAN,
    PERF_LATENCY,
    PERF_BANDWIDTH,
    PERF_BIBANDWIDTH,
    PERF_HALO2D,
    PERF_HALO3D,
    PERF_NUM_TESTS,
    PERF_NUM_COLLS = PERF_LATENCY
};

enum perf_memory { PERF_HOST, PERF_DEVICE, PERF_MANAGED };

/* How values of a type are computed with: all integers as 64 bits, all floats as double. */
enum perf_class { PERF_SIGNED, PERF_UNSIGNED, PERF_FLOATING, PERF_COMPLEX };

struct perf_type {
    const char *name;
    size_t      size;
    enum perf_class class;
    double       epsilon; /* distance from 1 to the next value; 0 for integers */
    MPI_Datatype mpi;
};

enum perf_op_id {
    PERF_SUM,
    PERF_PROD,
    PERF_MAX,
    PERF_MIN,
    PERF_LAND,
    PERF_LOR,
    PERF_LXOR,
    PERF_BAND,
    PERF_BOR,
    PERF_BXOR,
    PERF_NUM_OPS
};

struct perf_op {
    const char     *name;
    enum perf_op_id id;
    MPI_Op          mpi;
};

struct perf_options {
    unsigned         tests; /* a bit per test */
    size_t           min_bytes, max_bytes;
    double           factor;
    long             iters, warmup;
    double           max_time; /* seconds of timed calls per size; 0: no limit */
    bool             in_place, check, barrier, force, samples, all_colls;
    char             type_name[16], op_name[16];
    enum perf_memory memory[2];  /* of the first and of the second end of a pair */
    long             window;     /* messages; 0: the default */
    bool             contiguous; /* faces lie in buffers of their own */
    bool             faces_given;
    int              root;
    const char      *json;   /* file, or NULL */
    const char      *device; /* "auto", "cuda", "rocm" */
    long             timeout;
    uint64_t         seed;   /* 0: from the clock of rank 0 */
    const char      *groups; /* as text, or NULL */
    bool             vendor;
    bool             nonblocking; /* collectives: the call, then MPI_Wait */
    double           work;        /* in between, in µs on the processor; no part of the time */
};

/* What the whole run knows. */
struct perf_run {
    const char             *tool; /* in front of messages */
    MPI_Comm                comm; /* that is measured on */
    MPI_Comm                all;  /* of comm's ranks, and of the groups that measure beside it */
    int                     all_rank, all_size;
    struct perf_vendor     *vendor; /* its library is called in place of MPI; or NULL */
    struct perf_options     opt;
    const struct perf_type *type;
    const struct perf_op   *op;
    int                     rank, nranks;
    enum perf_memory        memory;     /* of this rank */
    int         local_rank, local_size; /* of the host's ranks that need a device, or none */
    const char *runtime;                /* of the ranks that have a device; NULL: none has */
    const struct xc_device_ops *dev;    /* NULL: host memory only */
    int                         device;
    xcclStream_t                stream;  /* for the tool's own copies */
    void                       *bounce;  /* pinned where there is a device; PERF_CHUNK_BYTES */
    void                       *scratch; /* expected values; PERF_CHUNK_BYTES */
    FILE                       *json;    /* rank 0 with --json */
    int                         argc;
    char                      **argv;
};

enum { PERF_CHUNK_BYTES = 4 << 20 };

/* Elements [offset, offset + count) of a buffer: from where their values come. */
struct perf_segment {
    size_t offset, count;
    int    reduced; /* over so many ranks from 0 on; 0: a copy of one rank's input */
    int    rank;    /* whose input, unless reduced */
    size_t index;   /* first element in that input */
};

struct perf_run;
struct perf_case;
struct perf_halo;
struct perf_vendor;

/* Elements [first, first + n) of the receive buffer as they must be before or after the call. */
typedef void (*perf_image_fn)(const struct perf_run *run, const struct perf_case *pc, bool after,
                              size_t first, size_t n, void *out);

/* One test at one size, on this rank. Counts are in elements. */
struct perf_case {
    enum perf_test       test;
    uint64_t             seed;
    size_t               bytes; /* as the test defines it (see perf_test_bytes) */
    size_t               count; /* bytes / size of the type */
    bool                 in_place;
    size_t               send_elems, recv_elems; /* lengths of the two buffers */
    int                 *sendcounts, *sdispls, *recvcounts, *rdispls;
    struct perf_segment *input; /* where this rank's input lies in the receive buffer */
    int                  ninput;
    struct perf_segment *result; /* what the receive buffer must hold afterwards */
    int                  nresult;
    bool                 rest_untouched; /* and that everything else in it is as before */
    perf_image_fn        image;          /* what it must hold, instead of segments; or NULL */
    void                *sendbuf, *recvbuf;
    bool                 timed; /* this rank's times count */
    double               share; /* the times of calls are divided by this */

    /* Messages only. */
    int               messages;      /* that a rank sends in a call */
    size_t            message_bytes; /* of each */
    int               peer;          /* the other end of the pair */
    MPI_Request      *requests;      /* first those of receives */
    MPI_Status       *statuses;
    struct perf_halo *halo;
};

/* What verification of one case found on one rank; plain data, sent to rank 0 as bytes. */
struct perf_mismatch {
    size_t wrong; /* elements; 0: all right */
    size_t index; /* first wrong one, in the receive buffer */
    int    rank;
    int    where; /* enum perf_where */
    char   got[64], expected[96];
};
enum perf_where { PERF_IN_RESULT, PERF_IN_GAP, PERF_IN_SENDBUF, PERF_IN_BLOCK, PERF_IN_CORNER };

/* Written where nothing is to be, before the call. */
enum { PERF_POISON = 0xa5 };

/* types.c */
const struct perf_type *perf_type_find(const char *name);
const struct perf_op   *perf_op_find(const char *name);
const char             *perf_type_names(void);
const char             *perf_op_names(void);
bool                    perf_type_has_op(const struct perf_type *type, enum perf_op_id op);

/* values.c */
/* Elements first to first + n of rank's input, in the type's own representation. */
void perf_values_make(const struct perf_run *run, const struct perf_case *pc, int rank,
                      size_t first, size_t n, void *out);
/* First element, of n, in which got differs from the same positions reduced over the first ranks by
 * more than the tolerance, or n. Counts them in mismatch; fills its texts for the first that is
 * wrong. */
size_t perf_values_compare(const struct perf_run *run, const struct perf_case *pc, int ranks,
                           size_t first, size_t n, const void *got, struct perf_mismatch *mismatch);
/* One value as text. */
void perf_value_text(const struct perf_type *type, const void *value, char *text, size_t len);

/* tests.c */
struct perf_result;
const char *perf_test_name(enum perf_test test);
const char *perf_test_bytes(enum perf_test test); /* what "bytes" means, for the listing */
bool        perf_test_reduces(enum perf_test test);
bool        perf_test_rooted(enum perf_test test);
bool        perf_test_in_place(enum perf_test test); /* MPI_IN_PLACE can be given */
bool        perf_test_is_message(enum perf_test test);
bool        perf_test_is_halo(enum perf_test test);
/* nccl-tests' factor: bus per algorithm bandwidth. */
double perf_test_bus(enum perf_test test, int nranks);
/* The size that is run for these bytes: whole elements, or a whole block. */
size_t perf_test_round(const struct perf_run *run, enum perf_test test, size_t bytes);
/* Before the clock starts: what makes all ends ready. */
int perf_case_ready(const struct perf_run *run, const struct perf_case *pc);
/* What is timed. */
int perf_case_call(const struct perf_run *run, const struct perf_case *pc);
/* From the average time. */
void perf_case_bandwidth(const struct perf_run *run, const struct perf_case *pc,
                         struct perf_result *result);

/* colls.c */
int perf_coll_call(const struct perf_run *run, const struct perf_case *pc);
/* Whatever --nonblocking says. */
int perf_coll_call_blocking(const struct perf_run *run, const struct perf_case *pc);

/* vendor.c */
/* A communicator of the vendor's library over run->comm. Message printed on failure. */
bool perf_vendor_start(struct perf_run *run);
void perf_vendor_stop(struct perf_run *run);
/* The vendor's call for a collective, and a wait for the stream. MPI_SUCCESS or MPI_ERR_OTHER. */
int perf_vendor_call(const struct perf_run *run, const struct perf_case *pc);

/* groups.c */
/*
 * Puts communicators of the given ranks in the place of run->comm. "0/1+2/3": two of two ranks,
 * at once; "0-7": one. *idle_p: this rank is in none. Message printed by rank 0 on failure.
 */
bool perf_groups_split(struct perf_run *run, const char *text, bool *idle_p);

/* pairs.c */
/* 0: the first end of a pair, 1: the second, -1: neither (the last of an odd number of ranks). */
int  perf_pair_end(int rank, int nranks);
bool perf_pair_plan(const struct perf_run *run, struct perf_case *pc);
int  perf_pair_ready(const struct perf_run *run, const struct perf_case *pc);
int  perf_pair_call(const struct perf_run *run, const struct perf_case *pc);

/* halo.c */
/* Elements of the largest block of at most count, or of one element. */
size_t perf_halo_count(enum perf_test test, size_t count);
size_t perf_halo_face(enum perf_test test, size_t count);
/* "2 x 2 x 1" with this between the numbers. */
void perf_halo_grid(const struct perf_run *run, enum perf_test test, const char *between,
                    char *text, size_t len);
bool perf_halo_plan(const struct perf_run *run, struct perf_case *pc);
void perf_halo_free(struct perf_halo *halo);
int  perf_halo_call(const struct perf_run *run, const struct perf_case *pc);
/* In which part of a block with ghost cells an element is. */
enum perf_where perf_halo_where(const struct perf_case *pc, size_t index);

/* plan.c */
/* Room for so many requests; message printed on failure. */
bool perf_case_requests(const struct perf_run *run, struct perf_case *pc, int n);
/* Wait for the first n of them. */
int perf_case_wait(const struct perf_case *pc, int n);
/* False, with a message on rank 0, when a count does not fit MPI's int. */
bool perf_case_plan(const struct perf_run *run, enum perf_test test, size_t bytes,
                    struct perf_case *pc);
/*
 * Of sizes up to most, the largest of a collective whose counts fit MPI's int, and whose buffers
 * take no more than room on any rank; 0: not even one element does.
 */
size_t perf_test_most(const struct perf_run *run, enum perf_test test, size_t most, size_t room);
void   perf_case_free(struct perf_case *pc);

/* memory.c */
/* Choose the device of this rank and make it current. Message printed on failure. */
bool  perf_memory_start(struct perf_run *run);
void  perf_memory_stop(struct perf_run *run);
void *perf_memory_alloc(const struct perf_run *run, size_t bytes); /* NULL with a message */
void  perf_memory_free(const struct perf_run *run, void *ptr);
bool  perf_memory_write(const struct perf_run *run, void *dst, const void *src, size_t bytes);
bool  perf_memory_read(const struct perf_run *run, void *dst, const void *src, size_t bytes);
bool  perf_memory_set(const struct perf_run *run, void *dst, int byte, size_t bytes);
/*
 * Bytes of device memory that each rank may take, where it leaves as much to the paths that are
 * measured: 40 % of its share of the device, and the least of all ranks. SIZE_MAX: it is not known.
 * All ranks together.
 */
size_t perf_memory_room(const struct perf_run *run);
/* May MPI be given device pointers? Message printed if not. */
bool perf_memory_allowed(const struct perf_run *run);
/*
 * How messages of so many bytes reach the memory of the ranks that have a device, or "host". All
 * ranks together.
 */
const char *perf_memory_path(const struct perf_run *run, size_t bytes);

/* verify.c */
bool perf_case_fill(const struct perf_run *run, const struct perf_case *pc);
/* All ranks together: true everywhere if right everywhere; rank 0 prints what was wrong. */
bool perf_case_verify(const struct perf_run *run, const struct perf_case *pc);

/* measure.c */
struct perf_result {
    long        iters;
    double     *times;         /* rank 0 of all: rows of iters, in µs; negative: do not count */
    double      min, avg, max; /* over the ranks' own averages, in µs */
    double      algbw, busbw;  /* of collectives, GB/s */
    double      bw, total_bw;  /* of messages: of one pair or rank, and of all, GB/s */
    const char *path;
    bool        verified;
};
bool perf_case_measure(const struct perf_run *run, const struct perf_case *pc,
                       struct perf_result *result);
/* The path that all ranks took in their last call, or "mixed"; "vendor" past MPI. All together. */
const char *perf_case_path(const struct perf_run *run, const struct perf_case *pc);
/* One call, in µs, without the work beside it; negative if MPI reports an error. */
double perf_case_time(const struct perf_run *run, const struct perf_case *pc);
/* Keep the processor busy for so long. */
void        perf_work(double us);
const char *perf_path_last(void);
/* Before the parameters are read: the interposer, where it is loaded, warns of them. */
void perf_leave_warnings(void);

/* run.c */
/* True if ok on every rank. */
bool perf_agree(const struct perf_run *run, bool ok);
/* The ranks of comm take part, and no others. */
void perf_take_part(struct perf_run *run, MPI_Comm comm);
/* Rank, size and place on the host, from run->comm. */
void perf_find_place(struct perf_run *run);
void perf_agree_on_seed(struct perf_run *run);
/* Plan a case and allocate its buffers, on all ranks; message printed on failure. */
bool perf_case_begin(const struct perf_run *run, enum perf_test test, size_t bytes,
                     struct perf_case *pc);
void perf_case_end(const struct perf_run *run, struct perf_case *pc);
/* End the job if the case takes longer than --timeout; alarm(0) ends the watch. */
void perf_watch(const struct perf_run *run, const struct perf_case *pc);
/* Is stderr one? Most launchers put a pipe between a rank and the terminal. */
bool perf_on_terminal(void);
/* On rank 0, where stderr is a terminal: in the place of the line before, cut to its width. */
void perf_report_progress(const struct perf_run *run, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* sizes.c */
bool perf_parse_size(const char *text, size_t *bytes_p);

#endif
