/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages between the two ends of a pair: latency, bandwidth, and bandwidth both ways. With n
 * ranks the pairs are i and i + n / 2, all at once; the last of an odd number of ranks is idle.
 */
#include <stdlib.h>

#include "measure/measure.h"

enum { READY_TAG = 1, DATA_TAG, DONE_TAG };
enum { DEFAULT_WINDOW = 64, WINDOW_BYTES = 256 << 20, LEAST_WINDOW = 2 };

int perf_pair_end(int rank, int nranks)
{
    int half = nranks / 2;

    return (rank < half) ? 0 : ((rank < 2 * half) ? 1 : -1);
}

static int window_of(const struct perf_run *run, const struct perf_case *pc)
{
    size_t fit;

    if (pc->test == PERF_LATENCY) {
        return 1;
    }
    if ((run->opt.window > 0) || (pc->bytes == 0)) {
        return (run->opt.window > 0) ? (int)run->opt.window : DEFAULT_WINDOW;
    }
    fit = WINDOW_BYTES / pc->bytes;
    fit = (fit < DEFAULT_WINDOW) ? fit : DEFAULT_WINDOW;
    return (fit > LEAST_WINDOW) ? (int)fit : LEAST_WINDOW;
}

bool perf_pair_plan(const struct perf_run *run, struct perf_case *pc)
{
    int    end = perf_pair_end(run->rank, run->nranks), half = run->nranks / 2;
    bool   one_way = pc->test == PERF_BANDWIDTH;
    size_t all;

    pc->messages = window_of(run, pc);
    pc->message_bytes = pc->bytes;
    pc->timed = (end == 0) || ((end == 1) && (pc->test == PERF_BIBANDWIDTH));
    pc->share = (pc->test == PERF_LATENCY) ? 2 : pc->messages;
    if (end < 0) {
        return true;
    }
    pc->peer = (end == 0) ? run->rank + half : run->rank - half;
    if (!perf_case_requests(run, pc, 2 * pc->messages)) {
        return false;
    }
    /* Each message has room of its own: what one of them brought cannot pass for another's. */
    all = pc->count * (size_t)pc->messages;
    pc->send_elems = (one_way && (end == 1)) ? 0 : all;
    pc->recv_elems = (one_way && (end == 0)) ? 0 : all;
    if (pc->recv_elems > 0) {
        pc->result[pc->nresult++] = (struct perf_segment){0, all, false, pc->peer, 0};
    }
    return true;
}

static int receive_all(const struct perf_run *run, const struct perf_case *pc,
                       MPI_Request *requests)
{
    int status = MPI_SUCCESS;

    for (int i = 0; (status == MPI_SUCCESS) && (i < pc->messages); i++) {
        char *to = (pc->bytes > 0) ? (char *)pc->recvbuf + (size_t)i * pc->bytes : NULL;
        status = MPI_Irecv(to, (int)pc->count, run->type->mpi, pc->peer, DATA_TAG, run->comm,
                           &requests[i]);
    }
    return status;
}

static int send_all(const struct perf_run *run, const struct perf_case *pc, MPI_Request *requests)
{
    int status = MPI_SUCCESS;

    for (int i = 0; (status == MPI_SUCCESS) && (i < pc->messages); i++) {
        char *from = (pc->bytes > 0) ? (char *)pc->sendbuf + (size_t)i * pc->bytes : NULL;
        status = MPI_Isend(from, (int)pc->count, run->type->mpi, pc->peer, DATA_TAG, run->comm,
                           &requests[i]);
    }
    return status;
}

/* PMPI: the tool's own traffic is no part of what it measures. */
static int signal_peer(const struct perf_run *run, const struct perf_case *pc, int tag)
{
    return PMPI_Send(NULL, 0, MPI_BYTE, pc->peer, tag, run->comm);
}

static int await_peer(const struct perf_run *run, const struct perf_case *pc, int tag)
{
    return PMPI_Recv(NULL, 0, MPI_BYTE, pc->peer, tag, run->comm, MPI_STATUS_IGNORE);
}

int perf_pair_ready(const struct perf_run *run, const struct perf_case *pc)
{
    int end = perf_pair_end(run->rank, run->nranks);

    if (end < 0) {
        return MPI_SUCCESS;
    }
    if ((pc->test == PERF_BANDWIDTH) && (end == 1)) {
        int status = receive_all(run, pc, pc->requests);
        if (status != MPI_SUCCESS) {
            return status;
        }
    }
    if (pc->test == PERF_BIBANDWIDTH) {
        return PMPI_Sendrecv(NULL, 0, MPI_BYTE, pc->peer, READY_TAG, NULL, 0, MPI_BYTE, pc->peer,
                             READY_TAG, run->comm, MPI_STATUS_IGNORE);
    }
    return (end == 0) ? await_peer(run, pc, READY_TAG) : signal_peer(run, pc, READY_TAG);
}

static int send_one(const struct perf_run *run, const struct perf_case *pc)
{
    return MPI_Send(pc->sendbuf, (int)pc->count, run->type->mpi, pc->peer, DATA_TAG, run->comm);
}

static int receive_one(const struct perf_run *run, const struct perf_case *pc)
{
    return MPI_Recv(pc->recvbuf, (int)pc->count, run->type->mpi, pc->peer, DATA_TAG, run->comm,
                    MPI_STATUS_IGNORE);
}

static int ping_pong(const struct perf_run *run, const struct perf_case *pc, int end)
{
    int status = (end == 0) ? send_one(run, pc) : receive_one(run, pc);

    if (status != MPI_SUCCESS) {
        return status;
    }
    return (end == 0) ? receive_one(run, pc) : send_one(run, pc);
}

static int one_way(const struct perf_run *run, const struct perf_case *pc, int end)
{
    int status = (end == 0) ? send_all(run, pc, pc->requests) : MPI_SUCCESS;

    if (status == MPI_SUCCESS) {
        status = perf_case_wait(pc, pc->messages);
    }
    if (status != MPI_SUCCESS) {
        return status;
    }
    return (end == 0) ? await_peer(run, pc, DONE_TAG) : signal_peer(run, pc, DONE_TAG);
}

static int both_ways(const struct perf_run *run, const struct perf_case *pc)
{
    int status = receive_all(run, pc, pc->requests);

    if (status == MPI_SUCCESS) {
        status = send_all(run, pc, pc->requests + pc->messages);
    }
    return (status == MPI_SUCCESS) ? perf_case_wait(pc, 2 * pc->messages) : status;
}

int perf_pair_call(const struct perf_run *run, const struct perf_case *pc)
{
    int end = perf_pair_end(run->rank, run->nranks);

    if (end < 0) {
        return MPI_SUCCESS;
    }
    switch (pc->test) {
    case PERF_LATENCY:
        return ping_pong(run, pc, end);
    case PERF_BANDWIDTH:
        return one_way(run, pc, end);
    default:
        return both_ways(run, pc);
    }
}
