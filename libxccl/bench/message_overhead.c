/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the interposer adds to messages between host buffers: a ping-pong of two ranks.
 *
 * Run with the interposer preloaded. MPI_Send and MPI_Recv then go through it; the MPI library's
 * own functions are looked up past it, so that both are timed in one process, in blocks that take
 * turns. The figure is the ratio of the medians over pairs of blocks, in percent: the machine's
 * other load meets both alike.
 */
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "bench.h"

enum { ROUNDS = 801, MAX_BARS = 8, MOST = 4 << 20 };

typedef int (*send_fn)(const void *, int, MPI_Datatype, int, int, MPI_Comm);
typedef int (*recv_fn)(void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Status *);

struct pair {
    send_fn send;
    recv_fn recv;
};

static struct bench_bar bars[MAX_BARS];
static int              nbars;

/* The functions in the MPI library itself: the interposer takes over MPI_ and PMPI_ names alike. */
static struct pair find_past_it(void)
{
    Dl_info     info;
    struct pair found = {NULL, NULL};
    void       *address = dlsym(RTLD_DEFAULT, "MPI_Get_library_version"); /* not taken over */

    if ((address != NULL) && (dladdr(address, &info) != 0)) {
        void *mpi = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
        found.send = (mpi != NULL) ? (send_fn)dlsym(mpi, "PMPI_Send") : NULL;
        found.recv = (mpi != NULL) ? (recv_fn)dlsym(mpi, "PMPI_Recv") : NULL;
    }
    return found;
}

/* ns for one way. */
static double time_block(const struct pair *p, char *buf, int bytes, int rounds)
{
    int rank, other;

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    other = 1 - rank;
    PMPI_Barrier(MPI_COMM_WORLD);
    double begin = bench_now_ns();
    for (int i = 0; i < rounds; i++) {
        if (rank == 0) {
            p->send(buf, bytes, MPI_BYTE, other, 1, MPI_COMM_WORLD);
            p->recv(buf, bytes, MPI_BYTE, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            p->recv(buf, bytes, MPI_BYTE, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            p->send(buf, bytes, MPI_BYTE, other, 1, MPI_COMM_WORLD);
        }
    }
    return (bench_now_ns() - begin) / (2.0 * rounds);
}

static void measure(const struct pair *past, char *buf, int bytes, double limit)
{
    static double     without[ROUNDS], with[ROUNDS], ratios[ROUNDS];
    const struct pair through = {MPI_Send, MPI_Recv};
    struct bench_bar *bar = &bars[nbars++];
    int               calls = (bytes < 65536) ? 100 : 4;
    int               rounds = (bytes < 65536) ? ROUNDS : ROUNDS / 4;

    time_block(&through, buf, bytes, calls);
    for (int i = 0; i < rounds; i++) {
        if (i % 2 == 0) {
            without[i] = time_block(past, buf, bytes, calls);
        }
        with[i] = time_block(&through, buf, bytes, calls);
        if (i % 2 == 1) {
            without[i] = time_block(past, buf, bytes, calls);
        }
        ratios[i] = 100.0 * (with[i] / without[i] - 1.0);
    }
    snprintf(bar->name, sizeof(bar->name), "host message %d B, 2 ranks", bytes);
    bar->unit = "%";
    bar->limit = limit;
    bar->without = bench_median(without, rounds);
    bar->with = bench_median(with, rounds);
    bar->measured = bench_median(ratios, rounds);
}

int main(int argc, char **argv)
{
    const int   sizes[] = {8, 1024, 4096, 16384, 65536, MOST};
    int         rank, nranks;
    struct pair past;
    bool        good = true;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &nranks);
    past = find_past_it();
    if ((dlsym(RTLD_DEFAULT, "xccl_mpi_last_path") == NULL) || (nranks != 2) ||
        (past.send == NULL) || (past.recv == NULL)) {
        fprintf(stderr, "message_overhead: put xccl-run in front, with 2 ranks\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    /* Mapped, as benchmarks and large arrays have it. */
    char *buf = mmap(NULL, MOST, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (buf == MAP_FAILED) {
        fprintf(stderr, "message_overhead: out of memory\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    memset(buf, 1, MOST);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        measure(&past, buf, sizes[i], 1.0);
    }
    for (int i = 0; (rank == 0) && (i < nbars); i++) {
        good = bench_report(&bars[i]) && good;
    }
    if ((rank == 0) && (argc > 1)) {
        good = bench_write_json(argv[1], "message_overhead", "", bars, nbars) && good;
    }
    munmap(buf, MOST);
    MPI_Finalize();
    return good ? 0 : 1;
}
