/* SPDX-License-Identifier: BSD-3-Clause */
#include "transfers/pipeline.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/params.h"
#include "comms/wait.h"

/* Each rank has so many messages under way; more are staged. */
enum { TAGS = 1024 };
/* Of them so many have pieces under way in each direction: they hold pinned memory. */
enum { PLACES = 8 };
enum { ANSWERS = TAGS }; /* the tag of answers */
/* Between two questions for them. */
static const uint64_t answers_pause_ns = 2000;
/* XCCL_PIPELINE=auto: two pieces, or nothing overlaps. */
enum { LEAST_BYTES = 2 << 20 };

/* What a rank says. takes_from: it takes messages of so many bytes and more; 0: none. */
struct said {
    uint64_t nonce, takes_from;
};

static MPI_Comm   comm;
static int        own_rank, size;
static uint64_t   nonce;       /* of the job */
static uint32_t  *takes_from;  /* by each rank */
static uint64_t   sends_from;  /* atomic; 0: nothing is sent so */
static uint64_t **last_number; /* of each rank and tag that was taken; see is_new() */
static unsigned   places[2];   /* taken; with the lock */
static int        free_tags[TAGS], num_free, num_used;
/* One receive is open for all answers: MPI takes long to look at each of many. */
static pthread_mutex_t  answering = PTHREAD_MUTEX_INITIALIZER;
static struct xm_answer answer;
static MPI_Request      answer_request;
static uint64_t         asked_ns;
static enum { NONE, TAKES, REFUSES } answers[TAGS]; /* atomic */
static uint64_t        number;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void do_nothing(struct xm_job *job)
{
    (void)job;
}

/* The program may sit in a call while its messages are to be moved. */
static bool has_threads(void)
{
    struct xm_job job = {.run = do_nothing};
    int           level = MPI_THREAD_SINGLE;

    return (xm_pmpi.Query_thread(&level) == MPI_SUCCESS) && (level == MPI_THREAD_MULTIPLE) &&
           (xm_offload(&job, "for a thread") == xcclSuccess);
}

static struct said say(void)
{
    struct xm_board_address address = {.nonce = 0};
    struct said             mine = {.takes_from = has_threads() ? xm_rendezvous_looks_from() : 0};

    if (xm_board_own() != NULL) {
        xm_board_address_of(xm_board_own(), &address);
    }
    mine.nonce = address.nonce ^ xm_now_ns();
    return mine;
}

/* A rank that runs without xccl, or with another XCCL_THREADS, never comes: then this tells. */
static xcclResult_t exchange(const struct said *mine, struct said *all)
{
    struct xm_wait wait = xm_wait_begin(
        "in MPI_Init for all ranks of MPI_COMM_WORLD: with XCCL_THREADS=multiple each has to run "
        "with xccl and with this variable");
    MPI_Request request;
    int         flag = 0;

    int code = xm_pmpi.Iallgather(mine, sizeof(*mine), XM_HANDLE(MPI_BYTE), all, sizeof(*all),
                                  XM_HANDLE(MPI_BYTE), XM_HANDLE(MPI_COMM_WORLD), &request);
    while ((code == MPI_SUCCESS) && !flag) {
        code = xm_pmpi.Test(&request, &flag, MPI_STATUS_IGNORE);
        if ((code == MPI_SUCCESS) && !flag && (xm_wait_step(&wait) == XM_WAIT_EXPIRED)) {
            return xc_fail(
                xcclTimeout,
                "not all ranks of MPI_COMM_WORLD run with xccl and XCCL_THREADS=multiple, "
                "or some came later than %ld s (XCCL_TIMEOUT)",
                xc_params()->timeout);
        }
    }
    return (code == MPI_SUCCESS) ? xcclSuccess
                                 : xc_fail(xcclInternalError, "MPI_Iallgather failed in MPI_Init");
}

static int expect_answer(void)
{
    return xm_pmpi.Irecv(&answer, sizeof(answer), XM_HANDLE(MPI_BYTE), MPI_ANY_SOURCE, ANSWERS,
                         comm, &answer_request);
}

/* Not a duplicate: that would call copy callbacks of a tool. */
static xcclResult_t make_comm(void)
{
    MPI_Group group;

    int code = xm_pmpi.Comm_group(XM_HANDLE(MPI_COMM_WORLD), &group);
    if (code == MPI_SUCCESS) {
        code = xm_pmpi.Comm_create(XM_HANDLE(MPI_COMM_WORLD), group, &comm);
        xm_pmpi.Group_free(&group);
    }
    if (code == MPI_SUCCESS) {
        code = xm_pmpi.Comm_set_errhandler(comm, XM_HANDLE(MPI_ERRORS_RETURN));
    }
    if (code == MPI_SUCCESS) {
        code = expect_answer();
    }
    return (code == MPI_SUCCESS) ? xcclSuccess
                                 : xc_fail(xcclInternalError, "MPI_Comm_create failed in MPI_Init");
}

static uint64_t least_bytes(void)
{
    long least = xc_params()->pipeline;

    return (least < 0) ? LEAST_BYTES : (uint64_t)least;
}

/* What is the same on all ranks decides whether they make a communicator. */
static xcclResult_t judge(const struct said *all)
{
    int able = 0;

    for (int i = 0; i < size; i++) {
        takes_from[i] = (uint32_t)all[i].takes_from;
        able += (all[i].takes_from > 0);
    }
    nonce = all[0].nonce;
    xcclResult_t res = (able > 1) ? make_comm() : xcclSuccess;
    if ((res == xcclSuccess) && (able > 1) && (takes_from[own_rank] > 0)) {
        __atomic_store_n(&sends_from, least_bytes(), __ATOMIC_RELEASE);
    }
    if ((own_rank == 0) && (able < size)) {
        xc_warn(
            "XCCL_THREADS=multiple: %d of %d ranks cannot take messages in pieces; MPI lets them "
            "have fewer threads, reaches device memory itself, or they have no device",
            size - able, size);
    }
    return res;
}

xcclResult_t xm_pipeline_agree(void)
{
    struct said mine = say();

    comm = XM_HANDLE(MPI_COMM_NULL);
    if ((xm_pmpi.Comm_size(XM_HANDLE(MPI_COMM_WORLD), &size) != MPI_SUCCESS) ||
        (xm_pmpi.Comm_rank(XM_HANDLE(MPI_COMM_WORLD), &own_rank) != MPI_SUCCESS)) {
        return xc_fail(xcclInternalError, "MPI_Comm_size failed in MPI_Init");
    }
    struct said *all = calloc((size_t)size, sizeof(*all));
    takes_from = calloc((size_t)size, sizeof(*takes_from));
    last_number = calloc((size_t)size, sizeof(*last_number));
    xcclResult_t res = ((all != NULL) && (takes_from != NULL) && (last_number != NULL))
                           ? exchange(&mine, all)
                           : xc_fail(xcclSystemError, "out of memory for %d ranks", size);
    if (res == xcclSuccess) {
        res = judge(all);
    }
    if (res != xcclTimeout) { /* MPI may still write there */
        free(all);
    }
    return res;
}

void xm_pipeline_end(void)
{
    __atomic_store_n(&sends_from, 0, __ATOMIC_RELEASE);
    if (takes_from == NULL) {
        return;
    }
    if (comm != XM_HANDLE(MPI_COMM_NULL)) {
        xm_pmpi.Cancel(&answer_request);
        xm_pmpi.Wait(&answer_request, MPI_STATUS_IGNORE);
        xm_pmpi.Comm_free(&comm);
    }
    for (int i = 0; i < size; i++) {
        free(last_number[i]);
    }
    free(last_number);
    free(takes_from);
    last_number = NULL;
    takes_from = NULL;
}

void xm_pipeline_send_no_more(void)
{
    __atomic_store_n(&sends_from, 0, __ATOMIC_RELEASE);
}

bool xm_pipeline_takes(int world_rank, uint64_t bytes)
{
    uint64_t least = __atomic_load_n(&sends_from, __ATOMIC_ACQUIRE);

    return (least > 0) && (bytes >= least) && (world_rank >= 0) && (world_rank < size) &&
           (world_rank != own_rank) && (takes_from[world_rank] > 0) &&
           (bytes >= takes_from[world_rank]);
}

MPI_Comm xm_pipeline_comm(void)
{
    return comm;
}

int xm_pipeline_take_tag(uint64_t *number_p)
{
    int tag = -1;

    pthread_mutex_lock(&lock);
    if (num_free > 0) {
        tag = free_tags[--num_free];
    } else if (num_used < TAGS) {
        tag = num_used++;
    }
    *number_p = (tag >= 0) ? ++number : 0;
    pthread_mutex_unlock(&lock);
    return tag;
}

void xm_pipeline_give_tag(int tag)
{
    pthread_mutex_lock(&lock);
    free_tags[num_free++] = tag;
    pthread_mutex_unlock(&lock);
}

void xm_pipeline_describe(struct xm_descriptor *d, int tag, uint64_t message, uint64_t bytes)
{
    memset(d, XM_DESCRIPTOR_FILL, sizeof(*d));
    d->magic = XM_PIPELINE_MAGIC;
    d->nonce = nonce;
    d->number = message;
    d->pid = own_rank;
    d->slot = tag;
    d->bytes = bytes;
    d->piece = (uint64_t)xc_params()->pipeline_piece;
    d->check = xm_descriptor_check(d);
}

/*
 * With the lock held. What memory held before a message came may be the descriptor of an earlier
 * one. A tag is used again when its message has gone, so its numbers grow.
 */
static bool is_new(const struct xm_descriptor *d)
{
    return (last_number[d->pid] == NULL) || (d->number > last_number[d->pid][d->slot]);
}

static bool is_valid(const struct xm_descriptor *d)
{
    return (takes_from != NULL) && (d->magic == XM_PIPELINE_MAGIC) && (d->nonce == nonce) &&
           (d->check == xm_descriptor_check(d)) && (d->pid >= 0) && (d->pid < size) &&
           (d->slot >= 0) && (d->slot < TAGS) && (d->piece > 0);
}

bool xm_pipeline_is_open(const struct xm_descriptor *d)
{
    bool open = is_valid(d);

    if (open) {
        pthread_mutex_lock(&lock);
        open = is_new(d);
        pthread_mutex_unlock(&lock);
    }
    return open;
}

bool xm_pipeline_take(const struct xm_descriptor *d)
{
    bool taken = is_valid(d);

    if (!taken) {
        return false;
    }
    pthread_mutex_lock(&lock);
    taken = is_new(d);
    if (taken && (last_number[d->pid] == NULL)) {
        last_number[d->pid] = calloc(TAGS, sizeof(uint64_t));
    }
    if (taken && (last_number[d->pid] != NULL)) {
        last_number[d->pid][d->slot] = d->number;
    }
    pthread_mutex_unlock(&lock);
    return taken;
}

int xm_pipeline_answer(const struct xm_answer *mine, int rank, MPI_Request *request)
{
    return xm_pmpi.Isend(mine, sizeof(*mine), XM_HANDLE(MPI_BYTE), rank, ANSWERS, comm, request);
}

/* All that have come. With `answering` held. */
static void take_answers(void)
{
    int flag = 1;

    while (flag && (xm_pmpi.Test(&answer_request, &flag, MPI_STATUS_IGNORE) == MPI_SUCCESS) &&
           flag) {
        if ((answer.tag >= 0) && (answer.tag < TAGS)) {
            __atomic_store_n(&answers[answer.tag], answer.takes ? TAKES : REFUSES,
                             __ATOMIC_RELEASE);
        }
        if (expect_answer() != MPI_SUCCESS) {
            xc_error("MPI_Irecv failed: messages in pieces do not go on");
            return;
        }
    }
}

bool xm_pipeline_answered(int tag, bool *takes_p)
{
    if ((__atomic_load_n(&answers[tag], __ATOMIC_ACQUIRE) == NONE) &&
        (xm_now_ns() - __atomic_load_n(&asked_ns, __ATOMIC_RELAXED) > answers_pause_ns) &&
        (pthread_mutex_trylock(&answering) == 0)) {
        take_answers();
        __atomic_store_n(&asked_ns, xm_now_ns(), __ATOMIC_RELAXED);
        pthread_mutex_unlock(&answering);
    }
    int come = (int)__atomic_exchange_n(&answers[tag], NONE, __ATOMIC_ACQ_REL);
    *takes_p = (come == TAKES);
    return come != NONE;
}

bool xm_pipeline_enter(bool sends)
{
    pthread_mutex_lock(&lock);
    bool entered = (places[sends] < PLACES);
    places[sends] += entered ? 1 : 0;
    pthread_mutex_unlock(&lock);
    return entered;
}

void xm_pipeline_leave(bool sends)
{
    pthread_mutex_lock(&lock);
    places[sends]--;
    pthread_mutex_unlock(&lock);
}
