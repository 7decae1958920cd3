/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Capture and graphs. A stream that captures puts its work into a list instead of its queue; a
 * launch of the graph puts a copy of each piece into the queue of a stream, in the order of the
 * capture. Branches are not simulated: one stream captures by itself. Kernels added by hand follow
 * each other too.
 */
#include <stdlib.h>
#include <string.h>

#include <malloc.h>

#include "core/graph.h"

#define GRAPH_MAGIC 0x47524146U
#define EXEC_MAGIC 0x45584543U

struct node {
    struct node *next;
    xs_work_fn  *run;
    xs_copy_fn  *copy;
    void        *arg; /* never run itself */
    size_t       index;
};

struct xs_graph {
    uint32_t     magic;
    int          users; /* the program's handle, and executables */
    struct node *nodes, **end;
    size_t       count;
};

struct xs_exec {
    uint32_t          magic;
    struct xs_graph  *graph;
    void            **set;  /* of nodes that were set anew, their args; or NULL */
    struct xs_stream *last; /* two launches do not overlap */
    int               users;
    pthread_mutex_t   lock;
    pthread_cond_t    over;
    unsigned long     launched, ended;
};

struct xs_capture {
    struct xs_capture *next;
    struct xs_graph   *graph;
    struct xs_stream  *stream;
    enum xs_mode       mode;
    pthread_t          thread;
    bool               invalid;
};

static pthread_mutex_t    lock = PTHREAD_MUTEX_INITIALIZER;
static struct xs_capture *captures;     /* of the process */
static int                num_captures; /* atomic */

static __thread enum xs_mode thread_mode = XS_MODE_GLOBAL;

static void graph_unuse(struct xs_graph *graph)
{
    if (__atomic_sub_fetch(&graph->users, 1, __ATOMIC_ACQ_REL) > 0) {
        return;
    }
    while (graph->nodes != NULL) {
        struct node *node = graph->nodes;
        graph->nodes = node->next;
        free(node->arg);
        free(node);
    }
    graph->magic = 0;
    free(graph);
}

void *xs_copy_flat(const void *arg)
{
    size_t bytes = malloc_usable_size((void *)(uintptr_t)arg);
    void  *copy = malloc(bytes);

    if (copy != NULL) {
        memcpy(copy, arg, bytes);
    }
    return copy;
}

static void graph_begin(struct xs_graph *graph)
{
    *graph = (struct xs_graph){.magic = GRAPH_MAGIC, .users = 1};
    graph->end = &graph->nodes;
}

enum xs_error xs_capture_begin(struct xs_stream *stream, int mode)
{
    struct xs_capture *c = calloc(1, sizeof(*c));
    struct xs_graph   *graph = calloc(1, sizeof(*graph));
    enum xs_error      res = XS_OUT_OF_MEMORY;

    if ((c == NULL) || (graph == NULL)) {
        goto free_both;
    }
    res = XS_INVALID_VALUE;
    if ((mode < XS_MODE_GLOBAL) || (mode > XS_MODE_RELAXED)) {
        goto free_both;
    }
    graph_begin(graph);
    *c = (struct xs_capture){
        .graph = graph, .stream = stream, .mode = (enum xs_mode)mode, .thread = pthread_self()};
    res = xs_stream_set_capture(stream, c);
    if (res != XS_OK) {
        goto free_both;
    }
    pthread_mutex_lock(&lock);
    c->next = captures;
    captures = c;
    __atomic_add_fetch(&num_captures, 1, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&lock);
    return XS_OK;
free_both:
    free(graph);
    free(c);
    return res;
}

enum xs_error xs_capture_end(struct xs_stream *stream, struct xs_graph **graph_p)
{
    struct xs_capture *c = xs_stream_capture(stream);

    if (c == NULL) {
        return XS_CAPTURE_UNMATCHED;
    }
    if ((c->mode != XS_MODE_RELAXED) && !pthread_equal(c->thread, pthread_self())) {
        return XS_CAPTURE_WRONG_THREAD;
    }
    pthread_mutex_lock(&lock);
    for (struct xs_capture **at = &captures; *at != NULL; at = &(*at)->next) {
        if (*at == c) {
            *at = c->next;
            break;
        }
    }
    __atomic_sub_fetch(&num_captures, 1, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&lock);
    xs_stream_set_capture(stream, NULL);
    *graph_p = c->invalid ? NULL : c->graph;
    enum xs_error res = c->invalid ? XS_CAPTURE_INVALIDATED : XS_OK;
    if (c->invalid) {
        graph_unuse(c->graph);
    }
    free(c);
    return res;
}

int xs_capture_status(struct xs_stream *stream)
{
    const struct xs_capture *c = xs_stream_capture(stream);

    return (c == NULL) ? 0 : c->invalid ? 2 : 1;
}

enum xs_error xs_capture_exchange(int *mode)
{
    enum xs_mode before = thread_mode;

    if ((mode == NULL) || (*mode < XS_MODE_GLOBAL) || (*mode > XS_MODE_RELAXED)) {
        return XS_INVALID_VALUE;
    }
    thread_mode = (enum xs_mode) * mode;
    *mode = (int)before;
    return XS_OK;
}

/* Does this capture keep the calling thread from calls that might disturb it? */
static bool prohibits(const struct xs_capture *c)
{
    if (pthread_equal(c->thread, pthread_self()) && (c->mode != XS_MODE_RELAXED)) {
        return true;
    }
    return (thread_mode == XS_MODE_GLOBAL) && (c->mode == XS_MODE_GLOBAL);
}

enum xs_error xs_capture_guard(void)
{
    enum xs_error res = XS_OK;

    if ((__atomic_load_n(&num_captures, __ATOMIC_ACQUIRE) == 0) ||
        (thread_mode == XS_MODE_RELAXED)) {
        return XS_OK;
    }
    pthread_mutex_lock(&lock);
    for (struct xs_capture *c = captures; c != NULL; c = c->next) {
        if (prohibits(c)) {
            c->invalid = true;
            res = XS_CAPTURE_UNSUPPORTED;
        }
    }
    pthread_mutex_unlock(&lock);
    return res;
}

enum xs_error xs_capture_guard_ctx(const struct xs_ctx *ctx)
{
    enum xs_error res = XS_OK;

    pthread_mutex_lock(&lock);
    for (struct xs_capture *c = captures; c != NULL; c = c->next) {
        if (xs_stream_ctx(c->stream) == ctx) {
            c->invalid = true;
            res = XS_CAPTURE_UNSUPPORTED;
        }
    }
    pthread_mutex_unlock(&lock);
    return res;
}

enum xs_error xs_capture_refuse(struct xs_stream *stream, enum xs_error error)
{
    struct xs_capture *c = xs_stream_capture(stream);

    if (c == NULL) {
        return XS_OK;
    }
    c->invalid = true;
    return error;
}

static enum xs_error add(struct xs_graph *graph, xs_work_fn *run, xs_copy_fn *copy, void *arg,
                         struct node **node_p)
{
    struct node *node = malloc(sizeof(*node));

    if (node == NULL) {
        return XS_OUT_OF_MEMORY;
    }
    *node = (struct node){NULL, run, copy, arg, graph->count++};
    *graph->end = node;
    graph->end = &node->next;
    *node_p = node;
    return XS_OK;
}

enum xs_error xs_capture_add(struct xs_capture *c, xs_work_fn *run, xs_copy_fn *copy, void *arg)
{
    struct node *node;

    if (c->invalid) {
        return XS_CAPTURE_INVALIDATED;
    }
    if (copy == NULL) {
        c->invalid = true;
        return XS_CAPTURE_UNSUPPORTED;
    }
    return add(c->graph, run, copy, arg, &node);
}

static bool is_graph(const struct xs_graph *graph)
{
    return (graph != NULL) && (graph->magic == GRAPH_MAGIC);
}

enum xs_error xs_graph_create(struct xs_graph **graph_p)
{
    struct xs_graph *graph = malloc(sizeof(*graph));

    if (graph == NULL) {
        return XS_OUT_OF_MEMORY;
    }
    graph_begin(graph);
    *graph_p = graph;
    return XS_OK;
}

enum xs_error xs_graph_add(struct xs_graph *graph, xs_work_fn *run, xs_copy_fn *copy, void *arg,
                           void **node_p)
{
    struct node  *node;
    enum xs_error res = is_graph(graph) ? XS_OK : XS_INVALID_VALUE;

    if (res == XS_OK) {
        res = add(graph, run, copy, arg, &node);
    }
    if (res == XS_OK) {
        *node_p = node;
    }
    return res;
}

enum xs_error xs_graph_count(const struct xs_graph *graph, size_t *count_p)
{
    if (!is_graph(graph)) {
        return XS_INVALID_VALUE;
    }
    *count_p = graph->count;
    return XS_OK;
}

enum xs_error xs_graph_destroy(struct xs_graph *graph)
{
    if (!is_graph(graph)) {
        return XS_INVALID_VALUE;
    }
    graph_unuse(graph);
    return XS_OK;
}

enum xs_error xs_graph_instantiate(struct xs_graph *graph, struct xs_exec **exec_p)
{
    if (!is_graph(graph)) {
        return XS_INVALID_VALUE;
    }
    struct xs_exec *exec = calloc(1, sizeof(*exec));
    if (exec == NULL) {
        return XS_OUT_OF_MEMORY;
    }
    __atomic_add_fetch(&graph->users, 1, __ATOMIC_RELAXED);
    *exec = (struct xs_exec){.magic = EXEC_MAGIC, .graph = graph, .users = 1};
    pthread_mutex_init(&exec->lock, NULL);
    pthread_cond_init(&exec->over, NULL);
    xs_live(XS_LIVE_GRAPH, 1);
    *exec_p = exec;
    return XS_OK;
}

/* No call that a capture forbids: the driver waits here, if it does, unasked. */
static void wait_for_launches(struct xs_exec *exec)
{
    pthread_mutex_lock(&exec->lock);
    while (exec->ended < exec->launched) {
        pthread_cond_wait(&exec->over, &exec->lock);
    }
    pthread_mutex_unlock(&exec->lock);
}

enum xs_error xs_exec_set(struct xs_exec *exec, const void *node, void *arg)
{
    if ((exec == NULL) || (exec->magic != EXEC_MAGIC) || (node == NULL)) {
        return XS_INVALID_VALUE;
    }
    wait_for_launches(exec); /* a device may, too */
    if (exec->set == NULL) {
        exec->set = calloc(exec->graph->count, sizeof(*exec->set));
    }
    if (exec->set == NULL) {
        return XS_OUT_OF_MEMORY;
    }
    size_t index = ((const struct node *)node)->index;
    free(exec->set[index]);
    exec->set[index] = arg;
    return XS_OK;
}

static void exec_unuse(struct xs_exec *exec)
{
    if (__atomic_sub_fetch(&exec->users, 1, __ATOMIC_ACQ_REL) > 0) {
        return;
    }
    for (size_t i = 0; (exec->set != NULL) && (i < exec->graph->count); i++) {
        free(exec->set[i]);
    }
    free(exec->set);
    graph_unuse(exec->graph);
    pthread_mutex_destroy(&exec->lock);
    pthread_cond_destroy(&exec->over);
    free(exec);
}

static void run_end(void *arg)
{
    struct xs_exec *exec = arg;

    pthread_mutex_lock(&exec->lock);
    exec->ended++;
    pthread_cond_broadcast(&exec->over);
    pthread_mutex_unlock(&exec->lock);
    exec_unuse(exec);
}

/* When may its nodes be set again? */
static enum xs_error note_end(struct xs_exec *exec, struct xs_stream *stream)
{
    pthread_mutex_lock(&exec->lock);
    exec->launched++;
    pthread_mutex_unlock(&exec->lock);
    __atomic_add_fetch(&exec->users, 1, __ATOMIC_RELAXED);
    enum xs_error res = xs_stream_enqueue(stream, run_end, NULL, exec);
    if (res != XS_OK) {
        run_end(exec);
    }
    return res;
}

enum xs_error xs_graph_launch(struct xs_exec *exec, struct xs_stream *stream)
{
    enum xs_error res = XS_OK;

    xs_launch_takes_time();
    if ((exec == NULL) || (exec->magic != EXEC_MAGIC)) {
        return XS_INVALID_VALUE;
    }
    if (xs_stream_capture(stream) != NULL) {
        return xs_capture_refuse(stream, XS_NOT_SUPPORTED); /* graphs in graphs */
    }
    if (xs_fault(XS_FAULT_GRAPH, NULL)) {
        return XS_OUT_OF_MEMORY;
    }
    xs_stream_pass(stream);
    if (exec->last != NULL) {
        res = xs_stream_follow(stream, exec->last);
    }
    exec->last = stream;
    for (struct node *node = exec->graph->nodes; (node != NULL) && (res == XS_OK);
         node = node->next) {
        const void *made = (exec->set != NULL) ? exec->set[node->index] : NULL;
        void       *arg = node->copy((made != NULL) ? made : node->arg);
        res = (arg == NULL) ? XS_OUT_OF_MEMORY : xs_stream_enqueue(stream, node->run, NULL, arg);
    }
    return ((res == XS_OK) && (exec->set != NULL)) ? note_end(exec, stream) : res;
}

enum xs_error xs_exec_destroy(struct xs_exec *exec)
{
    if ((exec == NULL) || (exec->magic != EXEC_MAGIC)) {
        return XS_INVALID_VALUE;
    }
    exec->magic = 0;
    xs_live(XS_LIVE_GRAPH, -1);
    exec_unuse(exec);
    return XS_OK;
}
