/* SPDX-License-Identifier: BSD-3-Clause */
/* What the programs of single cases share: counted checks, and buffers with values to expect. */
#ifndef MT_SUPPORT_H
#define MT_SUPPORT_H

#include <setjmp.h>
#include <stdint.h>

#include <mpi.h>

#include "memory.h"

/*
 * Start MPI with MPI_THREAD_MULTIPLE if there is that, with MT_LEVEL=serialized for one thread at a
 * time; open a device unless told to leave it.
 */
void mt_begin(int *argc, char ***argv, bool open_device);
/* The same with less threads. */
void mt_begin_at(int level, int *argc, char ***argv, bool open_device);

/* The first argument of the program: "cuda", "rocm" or "none". */
const char *mt_runtime(void);

/* Rank and size of MPI_COMM_WORLD. */
int mt_rank(void);
int mt_size(void);
/* The class of an MPI error code. */
int mt_class_of(int code);

/* Count a check; a failed one is printed with its rank. Any thread may call it. */
void mt_expect(bool good, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Add up the checks of all ranks and print them, before MPI_Finalize. */
void mt_summary(void);

/* The exit status: 1 if this rank saw a failure, also after mt_summary(). */
int mt_status(void);

/* A small generator, and `bytes` bytes of it; mt_noise() allocates one more, so that it is never
 * NULL. */
uint64_t mt_next(uint64_t *state);
void     mt_fill_noise(char *to, size_t bytes, uint64_t seed);
char    *mt_noise(size_t bytes, uint64_t seed);

/* A function of MPI that not every MPI has, by its name or as an extension (MPIX_); or NULL. */
void *mt_find(const char *name);

/* A function of the device runtime by its CUDA and HIP name; NULL without one. */
void *mt_driver(const char *cuda, const char *hip);

/* What is in a buffer of integers where no message of a test came. */
enum { MT_UNTOUCHED = -77 };

/* Number i of what rank `from` sends; salt tells its messages apart. */
int mt_value(int from, int salt, int i);

/* `room` integers, of which the first `count` have this rank's values and the rest are untouched.
 */
int *mt_ints_make(enum mt_where where, int room, int count, int salt);

/* Are the first `count` those of rank `from`, and the rest untouched? */
void mt_ints_expect(const int *buffer, enum mt_where where, int room, int count, int from, int salt,
                    const char *what);

/* The same bytes in a buffer of the host, which is the twin's to free, and in one of the device. */
struct mt_twin {
    char  *host, *device;
    size_t bytes;
};
struct mt_twin mt_twin_of(char *host, size_t bytes);
/* Does the device have now what is on the host? */
void mt_twin_expect(const struct mt_twin *t, const char *what);
void mt_twin_free(struct mt_twin *t);

/* Two ranks: each knows that the other one can fetch only after they have met on device memory. */
void mt_meet_on_device(void);

/* Does it tell of so many integers? */
void mt_expect_status(const MPI_Status *status, int from, int tag, int count, const char *what);

/* The path of this thread's last collective, or message, as xccl says; "none" without xccl. */
const char *mt_last_path(void);
const char *mt_last_message_path(void);

/* Was it this one? NULL: any is right. */
void mt_expect_path(const char *wanted, const char *what);
void mt_expect_message_path(const char *wanted, const char *what);

/* Two buffers of floats, and host memory to fill and read them through. */
struct mt_pair {
    enum mt_where where;
    int           count;
    float        *in;
    float        *out;
    float        *host;
};

struct mt_pair mt_pair_make(enum mt_where where, int count);
void           mt_pair_free(struct mt_pair *pair);

/* Values for a sum over a communicator, which differ by rank, place and salt; `out` gets others. */
void mt_pair_fill(struct mt_pair *pair, int count, MPI_Comm comm, int salt);

/* Does `out` hold the sum over the first `ranks` ranks of what mt_pair_fill() gave them? */
void mt_pair_expect_sum(struct mt_pair *pair, int count, int ranks, int salt, const char *what);

/* MPI_Allreduce and MPI_Alltoall with checked results; count is for one rank. */
void mt_pair_allreduce(struct mt_pair *pair, int count, MPI_Comm comm, int salt);
void mt_pair_alltoall(struct mt_pair *pair, int count, MPI_Comm comm);

/* One case of a program, chosen by its name. */
struct mt_named_case {
    const char *name;
    void (*run)(void);
};

/* Run the case that the program's second argument names; exits with 64 if there is none. */
void mt_run_case(const struct mt_named_case *cases, int argc, char **argv);
/* The same, and MPI_Finalize; returns the program's exit status. */
int mt_run_to_end(const struct mt_named_case *cases, int argc, char **argv);

/* A handler that leaves the call by longjmp() to mt_before; mt_jumps: times. */
extern jmp_buf      mt_before;
extern volatile int mt_jumps;
void                mt_jump(MPI_Comm *comm, int *code, ...);

/* Run work in so many threads, each with an element of `arguments`, which are `each` bytes long. */
void mt_in_threads(int threads, void *(*work)(void *argument), void *arguments, size_t each);

/*
 * Run work in two threads and free comms, which are made first: a communicator for each. work gets
 * the index of its communicator as an intptr_t; every second rank begins with the other.
 */
void mt_two_threads(MPI_Comm comms[2], void *(*work)(void *which));

#endif
