/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Hundreds of requests of every kind in one array, completed one or some at a time while their
 * messages come in an order of their own. Each is completed once, with its data and its status.
 * Usage: mpi_many cuda|rocm|none CASE
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support.h"

enum { MANY = 300, FEWER = 120, ROUNDS = 8, SHORT = 16, LONG = 1500, MORE = 500 };
/* Open MPI 4.1.4 itself writes beyond a buffer that a longer message has no room in. */
enum { TOO_LONG = 150, TOO_SHORT = 100 };

enum kind { RECEIVE, SEND, PERSISTENT, CANCELLED, NOBODY, NONE, INACTIVE };

struct item {
    enum kind     kind;
    enum mt_where where;       /* of the buffer of the request in the array, and of the buffer */
    enum mt_where where_other; /* that its message is sent from or comes to */
    int           count, room;
    int          *here, *other;
    int           done;
};

struct batch {
    int         many, round;
    int         left; /* active requests */
    int         sent; /* messages */
    MPI_Comm    comm;
    int         previous, next;
    uint64_t    state;     /* of what each rank draws by itself */
    int         truncated; /* this one has no room for its message; or -1 */
    struct item items[MANY];
    MPI_Request requests[MANY], others[MANY];
    int         order[MANY]; /* that the messages go in */
    int         places[MANY];
    MPI_Status  statuses[MANY];
};

static int draw(uint64_t *state, int below)
{
    return (int)(mt_next(state) % (uint64_t)below);
}

static enum mt_where draw_where(uint64_t *state)
{
    return draw(state, 2) ? MT_DEVICE : MT_HOST;
}

/* The same on all ranks, but for the kinds of memory. */
static void draw_items(struct batch *b)
{
    static const enum kind odd[] = {SEND, SEND, PERSISTENT, CANCELLED, NOBODY, NONE, INACTIVE};
    enum { ODD = sizeof(odd) / sizeof(odd[0]) };
    uint64_t all = (uint64_t)b->round + 1;

    for (int i = 0; i < b->many; i++) {
        struct item *item = &b->items[i];
        int          kind = draw(&all, 2 * ODD);
        *item = (struct item){.kind = (kind < ODD) ? odd[kind] : RECEIVE};
        item->count = draw(&all, 3) ? LONG + draw(&all, 100) : SHORT;
        item->room = item->count + (draw(&all, 2) ? MORE : 0);
        item->where = draw_where(&b->state);
        item->where_other = draw_where(&b->state);
    }
    for (int i = 0; (b->truncated >= 0) && (i < b->many); i++) {
        /* Open MPI 4.1.4 takes one that was never started for what was in its place and failed. */
        b->items[i].kind = (b->items[i].kind == INACTIVE) ? NONE : b->items[i].kind;
    }
    if (b->truncated >= 0) { /* MPI finds it, or it is found when the message is fetched */
        struct item *item = &b->items[b->truncated];
        *item = (struct item){.kind = RECEIVE, .count = TOO_LONG, .room = TOO_SHORT};
        item->where_other = ((b->round % 2) == 0) ? MT_HOST : MT_DEVICE;
    }
    for (int i = 0; i < b->many; i++) {
        int j = draw(&b->state, i + 1);
        b->order[i] = b->order[j];
        b->order[j] = i;
    }
}

/* What receives, in the array or from a send there. */
static void receive(struct batch *b, int i)
{
    struct item *item = &b->items[i];

    b->requests[i] = b->others[i] = MPI_REQUEST_NULL;
    switch (item->kind) {
    case SEND:
        item->here = mt_ints_make(item->where, item->count, item->count, i);
        item->other = mt_ints_make(item->where_other, item->room, 0, i);
        MPI_Irecv(item->other, item->room, MPI_INT, b->previous, i, b->comm, &b->others[i]);
        return;
    case PERSISTENT:
    case INACTIVE:
        item->here = mt_ints_make(item->where, item->room, 0, i);
        MPI_Recv_init(item->here, item->room, MPI_INT, b->previous, i, b->comm, &b->requests[i]);
        if (item->kind == PERSISTENT) {
            MPI_Start(&b->requests[i]);
        }
        break;
    case NONE:
        break;
    default:
        item->here = mt_ints_make(item->where, item->room, 0, i);
        MPI_Irecv(item->here, item->room, MPI_INT,
                  (item->kind == NOBODY) ? MPI_PROC_NULL : b->previous, i, b->comm,
                  &b->requests[i]);
        break;
    }
    if ((item->kind == RECEIVE) || (item->kind == PERSISTENT)) {
        item->other = mt_ints_make(item->where_other, item->count, item->count, i);
    }
    if (item->kind == CANCELLED) {
        MPI_Cancel(&b->requests[i]);
    }
}

/* Messages to the receives of the next rank's array, until so many have gone. */
static void send_until(struct batch *b, int end)
{
    for (; b->sent < end; b->sent++) {
        int                i = b->order[b->sent];
        const struct item *item = &b->items[i];
        if ((item->kind == RECEIVE) || (item->kind == PERSISTENT)) {
            MPI_Isend(item->other, item->count, MPI_INT, b->next, i, b->comm, &b->others[i]);
        }
    }
}

static void batch_begin(struct batch *b)
{
    draw_items(b);
    b->left = b->sent = 0;
    for (int i = 0; i < b->many; i++) {
        receive(b, i);
        b->left += (b->items[i].kind != NONE) && (b->items[i].kind != INACTIVE);
    }
    MPI_Barrier(b->comm);
    for (int i = 0; i < b->many; i++) {
        const struct item *item = &b->items[i];
        if (item->kind == SEND) {
            MPI_Isend(item->here, item->count, MPI_INT, b->next, i, b->comm, &b->requests[i]);
        }
    }
    send_until(b, b->many / 3);
}

static void check_status(const struct batch *b, int i, const MPI_Status *status)
{
    const struct item *item = &b->items[i];
    int                cancelled = 0;

    MPI_Test_cancelled(status, &cancelled);
    mt_expect((cancelled != 0) == (item->kind == CANCELLED), "request %d is cancelled: %d", i,
              cancelled);
    if (((item->kind == RECEIVE) || (item->kind == PERSISTENT)) && (i != b->truncated)) {
        mt_expect_status(status, b->previous, i, item->count, "one of many");
    }
}

/* A call has completed number i, with this code; status: NULL, or what it says. */
static void note(struct batch *b, int i, int code, const MPI_Status *status)
{
    int class = MPI_SUCCESS;

    if ((i < 0) || (i >= b->many)) {
        mt_expect(false, "request %d was said to be done", i);
        b->left = 0;
        return;
    }
    struct item *item = &b->items[i];
    mt_expect((item->kind != NONE) && (item->kind != INACTIVE), "request %d was not active", i);
    mt_expect(item->done++ == 0, "request %d was done twice", i);
    mt_expect((b->requests[i] != MPI_REQUEST_NULL) == (item->kind == PERSISTENT),
              "request %d is there no more, or still", i);
    MPI_Error_class(code, &class);
    mt_expect(class == ((i == b->truncated) ? MPI_ERR_TRUNCATE : MPI_SUCCESS),
              "request %d ends with class %d", i, class);
    if (status != NULL) {
        check_status(b, i, status);
    }
    if ((item->kind == RECEIVE) || (item->kind == PERSISTENT)) {
        if (i != b->truncated) {
            mt_ints_expect(item->here, item->where, item->room, item->count, b->previous, i,
                           "one of many");
        }
    } else if (item->kind != SEND) {
        mt_ints_expect(item->here, item->where, item->room, 0, b->previous, i, "without a message");
    }
    b->left--;
    send_until(b, (b->left * 3 < b->many * 2) ? b->many : b->sent);
}

static void one_of_any(struct batch *b, bool waits, MPI_Status *status)
{
    int i = -1, flag = 1;
    int code = waits ? MPI_Waitany(b->many, b->requests, &i, status)
                     : MPI_Testany(b->many, b->requests, &i, &flag, status);

    mt_expect((b->left > 0) || (i == MPI_UNDEFINED), "request %d, and none is active", i);
    if ((code != MPI_SUCCESS) || (flag && (i != MPI_UNDEFINED))) {
        note(b, i, code, (status != MPI_STATUS_IGNORE) ? status : NULL);
    } else {
        mt_expect((b->left == 0) || !flag, "none is active, and %d should be", b->left);
    }
}

static void some(struct batch *b, bool waits, bool ignores)
{
    MPI_Status *statuses = ignores ? MPI_STATUSES_IGNORE : b->statuses;
    int         count = 0;
    int         code =
        (waits ? MPI_Waitsome : MPI_Testsome)(b->many, b->requests, &count, b->places, statuses);

    mt_expect((count == MPI_UNDEFINED) == (b->left == 0), "%d are done of %d", count, b->left);
    for (int k = 0; (count != MPI_UNDEFINED) && (k < count); k++) {
        const MPI_Status *status = ignores ? NULL : &b->statuses[k];
        int               i = b->places[k];
        int               own = (code == MPI_SUCCESS) ? MPI_SUCCESS : b->statuses[k].MPI_ERROR;
        if (ignores && (code != MPI_SUCCESS)) {
            own = (i == b->truncated) ? MPI_ERR_TRUNCATE : MPI_SUCCESS;
        }
        note(b, i, own, status);
    }
}

static void each(struct batch *b, bool ignores)
{
    MPI_Status  one;
    MPI_Status *status = ignores ? MPI_STATUS_IGNORE : &one;

    for (int i = 0; i < b->many; i++) {
        bool active =
            (b->items[i].done == 0) && (b->items[i].kind != NONE) && (b->items[i].kind != INACTIVE);
        int flag = 0;
        int code = MPI_Test(&b->requests[i], &flag, status);
        mt_expect(active || flag, "request %d is not active, and not over", i);
        if (active && (flag || (code != MPI_SUCCESS))) {
            note(b, i, code, ignores ? NULL : status);
        }
    }
}

enum way { ANY, SOME, EACH, DRAWN };

static void complete(struct batch *b, enum way way)
{
    bool over = false;

    while (!over) {
        MPI_Status one;
        enum way   now = (way == DRAWN) ? (enum way)draw(&b->state, EACH + 1) : way;
        bool       ignores = draw(&b->state, 2), waits = draw(&b->state, 2);
        over = (b->left <= 0); /* once more, when none is active */
        if (now == ANY) {
            one_of_any(b, waits, ignores ? MPI_STATUS_IGNORE : &one);
        } else if (now == SOME) {
            some(b, waits, ignores);
        } else {
            each(b, ignores);
        }
    }
}

static void batch_end(struct batch *b)
{
    MPI_Waitall(b->many, b->others, MPI_STATUSES_IGNORE);
    for (int i = 0; i < b->many; i++) {
        struct item *item = &b->items[i];
        if (item->kind == SEND) {
            mt_ints_expect(item->other, item->where_other, item->room, item->count, b->previous, i,
                           "what many send");
        }
        if (b->requests[i] != MPI_REQUEST_NULL) {
            MPI_Request_free(&b->requests[i]);
        }
        if (item->here != NULL) {
            mt_free(item->where, item->here);
        }
        if (item->other != NULL) {
            mt_free(item->where_other, item->other);
        }
    }
}

static struct batch *batch_make(MPI_Comm comm, int many, uint64_t seed)
{
    struct batch *b = calloc(1, sizeof(*b));

    b->comm = comm;
    b->many = many;
    b->previous = (mt_rank() + mt_size() - 1) % mt_size();
    b->next = (mt_rank() + 1) % mt_size();
    b->state = seed * 1000 + (uint64_t)mt_rank();
    b->truncated = -1;
    return b;
}

static void rounds(struct batch *b, enum way way)
{
    for (b->round = 0; b->round < ROUNDS; b->round++) {
        batch_begin(b);
        complete(b, way);
        batch_end(b);
    }
}

static void whole(enum way way)
{
    struct batch *b = batch_make(MPI_COMM_WORLD, MANY, (uint64_t)way + 1);

    rounds(b, way);
    free(b);
}

static void case_any(void)
{
    whole(ANY);
}

static void case_some(void)
{
    whole(SOME);
}

static void case_each(void)
{
    whole(EACH);
}

static void case_drawn(void)
{
    whole(DRAWN);
}

/* One of them has no room for its message. */
static void case_truncated(void)
{
    struct batch *b = batch_make(MPI_COMM_WORLD, MANY, 7);

    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    b->truncated = MANY / 2;
    rounds(b, DRAWN);
    free(b);
}

/*
 * Of messages that have come nearly all are there at the first look, however many others are waited
 * for. MPI has them when it has the barrier's.
 */
static void check_come(enum mt_where from, enum mt_where to)
{
    static int        *in, *out[MANY];
    static MPI_Request requests[MANY];
    int                flag = 0, seen = 0, peer = 1 - mt_rank();

    in = mt_ints_make(from, LONG, LONG, 0);
    for (int i = 0; i < MANY; i++) {
        out[i] = mt_ints_make(to, LONG, 0, 0);
        MPI_Irecv(out[i], LONG, MPI_INT, peer, i, MPI_COMM_WORLD, &requests[i]);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    for (int rank = 0; rank < 2; rank++) {
        for (int i = 0; (i < MANY) && (mt_rank() != rank); i++) {
            MPI_Send(in, LONG, MPI_INT, peer, i, MPI_COMM_WORLD);
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
    for (int i = MANY - 1; i >= 0; i--) {
        MPI_Test(&requests[i], &flag, MPI_STATUS_IGNORE);
        seen += flag;
    }
    mt_expect(seen >= MANY * 9 / 10, "%d of %d messages are seen at once", seen, MANY);
    MPI_Waitall(MANY, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < MANY; i++) {
        mt_ints_expect(out[i], to, LONG, LONG, peer, 0, "a message that has come");
        mt_free(to, out[i]);
    }
    mt_free(from, in);
}

static void case_come(void)
{
    check_come(MT_HOST, MT_HOST);
    check_come(MT_HOST, MT_DEVICE);
    check_come(MT_DEVICE, MT_DEVICE);
}

static MPI_Comm thread_comms[2];

/* MPI gives a thread handles of requests that the other one has just completed. */
static void *thread_work(void *argument)
{
    int           which = (int)(intptr_t)argument;
    struct batch *b = batch_make(thread_comms[which], FEWER, (uint64_t)which + 11);

    mt_memory_enter();
    rounds(b, DRAWN);
    free(b);
    return NULL;
}

static void case_threads(void)
{
    mt_two_threads(thread_comms, thread_work);
}

int main(int argc, char **argv)
{
    static const struct mt_named_case cases[] = {
        {"any", case_any},
        {"some", case_some},
        {"each", case_each},
        {"drawn", case_drawn},
        {"truncated", case_truncated},
        {"threads", case_threads},
        {"come", case_come},
        {NULL, NULL},
    };

    mt_begin(&argc, &argv, true);
    return mt_run_to_end(cases, argc, argv);
}
