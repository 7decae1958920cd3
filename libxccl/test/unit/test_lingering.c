/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers of commands begin anew before one that a device heard of long ago could seem new. */
#include <string.h>

#include "check.h"
#include "comms/wait.h"
#include "data/lingering.h"

enum { MOST = 20, WORD = 7 };

static struct xm_post  post;
static struct xk_relay relay;
static int             cleared, launches;
static bool            no_clearing;

/* Of the last launch, when it was made. */
static struct xk_linger launched;
static int              words_left;

uint64_t xm_now_ns(void)
{
    return 5;
}

struct xm_wait xm_wait_begin_for_ever(const char *what)
{
    (void)what;
    return (struct xm_wait){0};
}

enum xm_wait_verdict xm_wait_step(struct xm_wait *wait)
{
    (void)wait;
    return XM_WAIT_ON;
}

static xcclResult_t create(xcclStream_t *stream_p)
{
    *stream_p = NULL;
    return xcclSuccess;
}

static xcclResult_t set(void *ptr, int value, size_t bytes, xcclStream_t stream)
{
    (void)stream;
    CHECK((ptr == &relay) && (value == 0) && (bytes == sizeof(relay)), "the relay is cleared");
    cleared++;
    return no_clearing ? xcclSystemError : xcclSuccess;
}

/* The kernel does what it is told and leaves. */
static xcclResult_t launch(void *function, const unsigned grid[2], unsigned threads,
                           const void *arguments, xcclStream_t stream)
{
    (void)function, (void)grid, (void)threads, (void)stream;
    memcpy(&launched, arguments, sizeof(launched));
    launches++;
    words_left = 0;
    for (size_t i = 0; i < sizeof(post.command.word) / sizeof(post.command.word[0]); i++) {
        words_left += (post.command.word[i] != 0);
    }
    post.answers.alive = launched.epoch;
    post.answers.done = launched.number + launched.first;
    post.answers.gone = launched.epoch;
    return xcclSuccess;
}

static const struct xc_device_ops dev = {
    .name = "cuda", .stream_create_urgent = create, .set_async = set, .launch = launch};

static bool tell(struct xm_lingering *l)
{
    static const uint32_t values[XK_ALL_WORDS] = {[XK_HOW] = XK_ALLREDUCE | 1 << 8};
    enum xm_told          how;

    if (!xm_linger_tell(l, values)) {
        return false;
    }
    CHECK(xm_linger_query(l, &how) == xcclSuccess && (how == XM_TOLD_DONE), "it was done");
    return true;
}

int main(void)
{
    struct xm_lingering l = {0};

    CHECK(xm_lingering_init(&l, &dev, &relay, &post, &relay, 1, 1, MOST) == xcclSuccess, "begin");
    l.adapts = false;
    for (int i = 0; i <= MOST; i++) {
        CHECK(tell(&l), "command %d", i);
    }
    CHECK((l.number == MOST + 1) && (cleared == 0), "number %u, cleared %d times", l.number,
          cleared);
    post.command.word[XK_HOW] = WORD; /* of a command that was told */
    post.answers.told[0] = post.answers.trouble = WORD;
    no_clearing = true;
    CHECK(!tell(&l) && (cleared == 1) && (launches == MOST + 1), "a device that fails");
    CHECK(l.number == MOST + 1, "number %u is kept", l.number);
    no_clearing = false;
    CHECK(tell(&l), "the next one");
    CHECK((l.number == 1) && (launched.number == 0) && (launched.first == 1), "number %u",
          l.number);
    CHECK((cleared == 2) && (words_left == 0), "%d words are left", words_left);
    CHECK((post.answers.told[0] == 0) && (post.answers.trouble == 0), "answers are left");
    CHECK(tell(&l) && (l.number == 2) && (cleared == 2), "not again: %u", l.number);
    return xt_done("a kernel that lingers");
}
