/* SPDX-License-Identifier: BSD-3-Clause */
#include "data/lingering.h"

#include <string.h>

#include "base/environment.h"
#include "base/log.h"
#include "base/params.h"
#include "comms/wait.h"

enum {
    THREADS = 512,
    AUTO_NS = 50 * 1000,
    /* Work of the program that stands behind it in some queue waits no longer than this. */
    LIFE_NS = 2 * 1000 * 1000,
    SPINS = 4096,
    SAVED_NS = 3500, /* what a command saves against a launch; 2 H200s */
    MOST_WASTED = 10,
    BYTES_PER_BLOCK = 16 << 10, /* of a copy */
    MOST_SMALL = 16,
};

static uint64_t idle_time(const struct xc_device_ops *dev)
{
    long us = xc_params()->direct_linger;

    if (xc_one_hardware_queue() || xc_launches_block()) {
        return 0; /* the program would stand behind it */
    }
    if (us >= 0) {
        return (uint64_t)us * 1000;
    }
    /* On ROCm nobody has measured it. */
    return (strcmp(dev->name, "cuda") == 0) ? AUTO_NS : 0;
}

xcclResult_t xm_lingering_init(struct xm_lingering *l, const struct xc_device_ops *dev,
                               void *function, struct xm_post *post, struct xk_relay *relay,
                               unsigned few, unsigned many, uint32_t most)
{
    l->dev = dev;
    l->function = function;
    l->post = post;
    l->relay = relay;
    l->few = few;
    l->many = many;
    l->most = most;
    l->idle_ns = idle_time(dev);
    l->adapts = (xc_params()->direct_linger < 0);
    pthread_mutex_init(&l->lock, NULL);
    static const struct xk_linger any;
    xcclResult_t                  res = dev->stream_create_urgent(&l->stream);

    if ((res == xcclSuccess) && (dev->repeat_create != NULL) &&
        (dev->repeat_create(&l->repeat, function, &any, 0, l->stream) != xcclSuccess)) {
        l->repeat = NULL;
    }
    return res;
}

/*
 * A command is new if its number lies ahead of the last one's, by less than half of all numbers.
 * Its words stay where they were: those of a command for one block only tell the other blocks
 * nothing, and one that they heard of so long ago would seem new. So before that nothing is left of
 * them.
 */
static xcclResult_t number_anew(struct xm_lingering *l)
{
    xcclResult_t res = l->dev->set_async(l->relay, 0, sizeof(*l->relay), l->stream);

    if (res == xcclSuccess) {
        memset(&l->post->command, 0, sizeof(l->post->command));
        l->post->answers.done = l->post->answers.trouble = 0;
        memset(l->post->answers.told, 0, sizeof(l->post->answers.told));
        l->number = 0;
    }
    return res;
}

/* values: the first command, or NULL. gone: so is the last one. */
static xcclResult_t launch(struct xm_lingering *l, uint64_t idle_ns, unsigned blocks,
                           const uint32_t *values, bool gone)
{
    xcclResult_t res = (gone && (l->number > l->most)) ? number_anew(l) : xcclSuccess;

    if (res != xcclSuccess) {
        return res;
    }
    const unsigned   grid[2] = {blocks, 1};
    struct xk_linger what = {.command = &l->post->command,
                             .answers = &l->post->answers,
                             .relay = l->relay,
                             .idle_ns = idle_ns,
                             .life_ns = LIFE_NS,
                             .epoch = ++l->epoch,
                             .number = l->number,
                             .first = (values != NULL)};

    l->blocks = blocks;
    l->served = 0;
    l->small = 0;
    if (values != NULL) {
        memcpy(what.values, values, sizeof(what.values));
        l->number++;
    }
    if (gone && (l->repeat != NULL) &&
        (l->dev->repeat_launch(l->repeat, grid, THREADS, &what, NULL) == xcclSuccess)) {
        return xcclSuccess;
    }
    return l->dev->launch(l->function, grid, THREADS, &what, l->stream);
}

xcclResult_t xm_linger_once(struct xm_lingering *l)
{
    xcclResult_t res = launch(l, 0, 1, NULL, false);

    return (res == xcclSuccess) ? l->dev->stream_sync(l->stream) : res;
}

static uint32_t answer(const uint32_t *word)
{
    return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

/* It is gone. Was it worth the time that the device may have been waited for? */
static void account(struct xm_lingering *l)
{
    l->launched = false;
    if ((uint64_t)l->served * SAVED_NS >= l->idle_ns) {
        l->wasted = l->skips = 0;
    } else if (l->adapts) {
        l->wasted += (l->wasted < MOST_WASTED);
        l->skips = 1u << l->wasted;
    }
}

/* After a command that came soon after the last one. */
static bool worth_trying(struct xm_lingering *l)
{
    l->skips -= (l->skips > 0);
    return l->skips == 0;
}

/* The first words say that all are there. */
static void tell(struct xm_lingering *l, const uint32_t *values)
{
    l->number++;
    l->served++;
    for (int i = (int)xk_words_of(values[XK_HOW], values[XK_BYTES]) - 1; i >= 0; i--) {
        __atomic_store_n(&l->post->command.word[i], values[i] | (uint64_t)l->number << 32,
                         __ATOMIC_RELEASE);
    }
}

/* What is launched next runs after it. */
static void tell_to_leave(struct xm_lingering *l)
{
    const uint32_t values[XK_WORDS] = {[XK_HOW] = xk_how(XK_LEAVE, 0, 1, 0, 0)};

    tell(l, values);
    l->launched = false;
}

/* ---- copies ---- */

static enum xk_copies form_of(enum xm_quick way, uint32_t bytes)
{
    if ((way == XM_QUICK_OUT) && (bytes <= XK_TELLS_BYTES)) {
        return XK_TELLS;
    }
    return ((way == XM_QUICK_IN) && (bytes <= XK_TAKES_BYTES)) ? XK_TAKES : XK_COPIES;
}

/* What is asked of the kernel, and waited for. */
struct copy {
    uint32_t                values[XK_ALL_WORDS];
    char                   *told_to; /* NULL, or where bytes of the answers go: */
    uint32_t                bytes;
    const struct xk_pack   *runs; /* NULL: it is none of those */
    const struct xk_listed *list; /* likewise */
};

static uint32_t blocks_for(const struct xm_lingering *l, enum xm_quick way, uint32_t bytes)
{
    uint32_t blocks = (way == XM_QUICK_FETCH_WIDE) ? bytes / BYTES_PER_BLOCK : 1;

    return (blocks < 1) ? 1 : (blocks < l->many) ? blocks : l->many;
}

static void describe(const struct xm_lingering *l, enum xm_quick way, void *to, const void *from,
                     uint32_t bytes, struct copy *c)
{
    uint64_t       t = (uint64_t)(uintptr_t)to, f = (uint64_t)(uintptr_t)from;
    enum xk_copies form = form_of(way, bytes);

    *c = (struct copy){
        .values = {[XK_IN_LOW] = (uint32_t)f,
                   [XK_IN_HIGH] = (uint32_t)(f >> 32),
                   [XK_OUT_LOW] = (uint32_t)t,
                   [XK_OUT_HIGH] = (uint32_t)(t >> 32),
                   [XK_BYTES] = bytes,
                   [XK_HOW] = xk_how(form, 0, blocks_for(l, way, bytes),
                                     (way == XM_QUICK_OUT) && (form == XK_COPIES), XK_BY_BYTES)},
        .told_to = (form == XK_TELLS) ? to : NULL,
        .bytes = bytes};
    for (uint32_t at = 0; (form == XK_TAKES) && (at < bytes); at += 4) {
        memcpy(&c->values[xk_taken_at(at / 4)], (const char *)from + at,
               (bytes - at < 4) ? bytes - at : 4);
    }
}

static void describe_records(const struct xm_lingering *l, const struct xk_copy *copies,
                             uint32_t count, struct copy *c)
{
    uint64_t bytes = 0;

    *c = (struct copy){.values = {[XK_IN_HIGH] = count, [XK_BYTES] = count}};
    for (uint32_t i = 0; i < count; i++) {
        uint32_t *record = &c->values[XK_RECORDS + XK_RECORD * i];
        record[XK_FROM] = (uint32_t)copies[i].from;
        record[XK_FROM + 1] = (uint32_t)(copies[i].from >> 32);
        record[XK_TO] = (uint32_t)copies[i].to;
        record[XK_TO + 1] = (uint32_t)(copies[i].to >> 32);
        record[XK_LENGTH] = (uint32_t)copies[i].bytes;
        bytes += copies[i].bytes;
    }
    enum xm_quick way = (bytes > XM_QUICK_FETCH_BYTES) ? XM_QUICK_FETCH_WIDE : XM_QUICK_FETCH;
    c->values[XK_HOW] =
        xk_how(XK_COPIES, XK_PARTS, blocks_for(l, way, (uint32_t)bytes), 0, XK_BY_RECORDS);
}

static void describe_runs(const struct xm_lingering *l, const struct xk_pack *what, bool elsewhere,
                          struct copy *c)
{
    uint64_t runs = (uint64_t)(uintptr_t)l->post->runs;

    *c = (struct copy){.values = {[XK_IN_LOW] = (uint32_t)what->memory,
                                  [XK_IN_HIGH] = (uint32_t)(what->memory >> 32),
                                  [XK_OUT_LOW] = (uint32_t)what->packed,
                                  [XK_OUT_HIGH] = (uint32_t)(what->packed >> 32),
                                  [XK_BYTES] = what->count,
                                  [XK_HOW] = xk_how(XK_COPIES, 0, 1, elsewhere,
                                                    what->out ? XK_BY_RUNS_BACK : XK_BY_RUNS),
                                  [XK_RANKS_LOW] = (uint32_t)runs,
                                  [XK_RANKS_HIGH] = (uint32_t)(runs >> 32)},
                       .runs = what};
}

static void describe_list(const struct xm_lingering *l, const struct xk_listed *what,
                          bool elsewhere, struct copy *c)
{
    uint64_t list = (uint64_t)(uintptr_t)&l->post->listed;

    *c = (struct copy){.values = {[XK_HOW] = xk_how(XK_COPIES, 0, 1, elsewhere, XK_BY_LIST),
                                  [XK_RANKS_LOW] = (uint32_t)list,
                                  [XK_RANKS_HIGH] = (uint32_t)(list >> 32)},
                       .list = what};
}

/* Bytes of an answer that have not come yet; those that have are in their place. */
static uint32_t read_told(const struct xm_lingering *l, char *to, uint32_t done, uint32_t bytes)
{
    while (done < bytes) {
        uint64_t word = __atomic_load_n(&l->post->answers.told[done / 4], __ATOMIC_ACQUIRE);
        if ((uint32_t)(word >> 32) != l->number) {
            break;
        }
        uint32_t value = (uint32_t)word, left = bytes - done;
        memcpy(to + done, &value, (left < 4) ? left : 4);
        done += (left < 4) ? left : 4;
    }
    return done;
}

/* Is the last command carried out? *read_p: of an answer's bytes, those that have come. */
static bool is_done(const struct xm_lingering *l, const struct copy *c, uint32_t *read_p)
{
    if (c->told_to == NULL) {
        return answer(&l->post->answers.done) == l->number;
    }
    *read_p = read_told(l, c->told_to, *read_p, c->bytes);
    return *read_p == c->bytes;
}

/*
 * The kernel says that it is done before it says that it is gone, and looks at no command after
 * that: so one that it is gone without having done was never begun, nor will be.
 */
static bool ask(struct xm_lingering *l, const struct copy *c)
{
    const struct xk_answers *a = &l->post->answers;
    struct xm_wait           wait = xm_wait_begin_for_ever("for a small copy on the device");
    uint32_t                 read = 0;

    if (c->runs != NULL) { /* the command says that they are there */
        memcpy(l->post->runs, c->runs->few, c->runs->count * sizeof(l->post->runs[0]));
    } else if (c->list != NULL) {
        l->post->listed = *c->list;
    }
    tell(l, c->values);
    for (unsigned spins = 0;; spins++) {
        if (is_done(l, c, &read)) {
            return true;
        }
        if (answer(&a->gone) == l->epoch) {
            account(l);
            return is_done(l, c, &read);
        }
        if (spins > SPINS) { /* the device works for another process, or has failed */
            xcclResult_t res = l->dev->stream_query(l->stream);
            if ((res != xcclSuccess) && (res != xcclInProgress)) {
                l->launched = false;
                l->idle_ns = 0;
                return false;
            }
            xm_wait_step(&wait);
        }
    }
}

/* Has it blocks that the command needs, and not for long blocks that none needs? */
static bool has_the_right_width(struct xm_lingering *l, bool wide)
{
    if (wide) {
        l->small = 0;
        return l->blocks > l->few;
    }
    l->small += (l->blocks > l->few);
    return l->small <= MOST_SMALL;
}

static bool carry_out(struct xm_lingering *l, const struct copy *c)
{
    const struct xk_answers *a = &l->post->answers;
    bool                     copied = false;
    bool                     wide = xk_how_blocks(c->values[XK_HOW]) > l->few;

    if ((l->idle_ns == 0) || (pthread_mutex_trylock(&l->lock) != 0)) {
        return false;
    }
    uint64_t now = xm_now_ns();
    bool     close = (now - l->last_ns < l->idle_ns);
    l->last_ns = now;
    if (l->launched && (answer(&a->gone) == l->epoch)) {
        account(l);
    }
    if (l->launched && (answer(&a->alive) == l->epoch) && has_the_right_width(l, wide)) {
        copied = ask(l, c);
    } else if (l->launched && (answer(&a->alive) == l->epoch)) {
        tell_to_leave(l);
        l->launched = (launch(l, l->idle_ns, wide ? l->many : l->few, NULL, false) == xcclSuccess);
    } else if (!l->launched && close && (l->idle_ns > 0) && worth_trying(l)) {
        l->launched = (launch(l, l->idle_ns, wide ? l->many : l->few, NULL, true) == xcclSuccess);
    }
    pthread_mutex_unlock(&l->lock);
    return copied;
}

bool xm_linger_copy(struct xm_lingering *l, enum xm_quick way, void *to, const void *from,
                    uint32_t bytes)
{
    struct copy c;

    describe(l, way, to, from, bytes, &c);
    return carry_out(l, &c);
}

bool xm_linger_is_there(struct xm_lingering *l)
{
    if ((l->idle_ns == 0) || (pthread_mutex_trylock(&l->lock) != 0)) {
        return false;
    }
    bool there = l->launched && (answer(&l->post->answers.alive) == l->epoch) &&
                 (answer(&l->post->answers.gone) != l->epoch);
    pthread_mutex_unlock(&l->lock);
    return there;
}

bool xm_linger_copies(struct xm_lingering *l, const struct xk_copy *copies, unsigned count)
{
    struct copy c;

    describe_records(l, copies, count, &c);
    return carry_out(l, &c);
}

bool xm_linger_pack(struct xm_lingering *l, const struct xk_pack *what, bool elsewhere)
{
    struct copy c;

    describe_runs(l, what, elsewhere, &c);
    return carry_out(l, &c);
}

bool xm_linger_pack_listed(struct xm_lingering *l, const struct xk_listed *what, bool elsewhere)
{
    struct copy c;

    describe_list(l, what, elsewhere, &c);
    return carry_out(l, &c);
}

/* A command that nobody waits for is over, or will never be begun. */
static void take_back(struct xm_lingering *l)
{
    const struct xk_answers *a = &l->post->answers;

    if (__atomic_load_n(&l->left, __ATOMIC_ACQUIRE) &&
        ((answer(&a->done) == l->number) || (answer(&a->gone) == l->epoch))) {
        l->left = false;
        __atomic_store_n(&l->busy, false, __ATOMIC_RELEASE);
    }
}

bool xm_linger_tell(struct xm_lingering *l, const uint32_t values[XK_ALL_WORDS])
{
    const struct xk_answers *a = &l->post->answers;
    bool                     wide = (l->many > l->few) && (xk_how_blocks(values[XK_HOW]) > l->few);

    if ((l->idle_ns == 0) || (pthread_mutex_trylock(&l->lock) != 0)) {
        return false;
    }
    uint64_t now = xm_now_ns();
    bool     close = (now - l->last_ns < l->idle_ns), told = false;
    l->last_ns = now;
    if (l->launched && (answer(&a->gone) == l->epoch)) {
        account(l);
    }
    take_back(l);
    if (__atomic_load_n(&l->busy, __ATOMIC_ACQUIRE)) { /* its query is not over */
        told = false;
    } else if (l->launched && has_the_right_width(l, wide)) {
        tell(l, values);
        told = true;
    } else if (l->launched) {
        tell_to_leave(l);
        l->launched = told =
            (launch(l, l->idle_ns, wide ? l->many : l->few, values, false) == xcclSuccess);
    } else if (close && worth_trying(l)) {
        l->launched = told =
            (launch(l, l->idle_ns, wide ? l->many : l->few, values, true) == xcclSuccess);
    }
    if (told) { /* else it may be another thread's, whose query is ending it just now */
        __atomic_store_n(&l->busy, true, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&l->lock);
    return told;
}

xcclResult_t xm_linger_query(struct xm_lingering *l, enum xm_told *how_p)
{
    const struct xk_answers *a = &l->post->answers;
    bool                     done = (answer(&a->done) == l->number);

    if (!done && (answer(&a->gone) != l->epoch)) {
        return xcclInProgress;
    }
    done = done || (answer(&a->done) == l->number); /* it says that it is done before */
    *how_p = !done                                ? XM_TOLD_LOST
             : (answer(&a->trouble) == l->number) ? XM_TOLD_IN_TROUBLE
                                                  : XM_TOLD_DONE;
    l->last_ns = done ? xm_now_ns() : l->last_ns;
    __atomic_store_n(&l->busy, false, __ATOMIC_RELEASE);
    return xcclSuccess;
}

void xm_linger_leave(struct xm_lingering *l)
{
    __atomic_store_n(&l->left, true, __ATOMIC_RELEASE);
}

xcclResult_t xm_linger_look(struct xm_lingering *l)
{
    xcclResult_t res = l->dev->stream_query(l->stream);

    return (res == xcclSuccess) ? xcclInProgress : res;
}

void xm_lingering_end(struct xm_lingering *l)
{
    l->dev->stream_sync(l->stream);
    if (l->repeat != NULL) {
        l->dev->repeat_destroy(l->repeat);
    }
    l->dev->stream_destroy(l->stream);
    pthread_mutex_destroy(&l->lock);
}
