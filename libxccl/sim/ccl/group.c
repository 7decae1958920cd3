/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * From calls to streams. Outside a group each call is a group of its own. At a group's end, each
 * communicator's collectives go to their streams in the order of the calls, then its sends and
 * receives as one piece of work in which all progress together.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ccl/ccl.h"
#include "core/graph.h"

struct job {
    struct job *next;
    enum xs_result (*run)(void *);
    void          *arg;
    const void    *of;
    pthread_t      thread;
    bool           threaded;
    enum xs_result res;
};

struct group {
    int              depth;
    enum xs_result   error; /* the first */
    struct xs_task  *tasks;
    struct xs_task **tasks_end;
    struct job      *jobs;
    struct job     **jobs_end;
};

static __thread struct group group;

static void task_free(struct xs_task *task)
{
    if (task->bounce_send != NULL) {
        xs_mem_release(task->bounce_send, XS_MEM_HOST);
    }
    if (task->bounce_recv != NULL) {
        xs_mem_release(task->bounce_recv, XS_MEM_HOST);
    }
    free(task);
}

/* Wait for the communicator's operations issued before; false: it was aborted. */
static bool begin(struct xs_comm *comm, uint64_t ticket)
{
    pthread_mutex_lock(&comm->lock);
    while ((comm->turn < ticket) && (__atomic_load_n(&comm->aborted, __ATOMIC_ACQUIRE) == 0)) {
        pthread_cond_wait(&comm->changed, &comm->lock);
    }
    bool good = (__atomic_load_n(&comm->aborted, __ATOMIC_ACQUIRE) == 0);
    comm->running = good;
    pthread_mutex_unlock(&comm->lock);
    return good;
}

static void end(struct xs_comm *comm, bool began)
{
    pthread_mutex_lock(&comm->lock);
    comm->running = comm->running && !began;
    comm->turn++;
    pthread_cond_broadcast(&comm->changed);
    pthread_mutex_unlock(&comm->lock);
    xs_comm_unuse(comm);
}

static void bounce_in(const struct xs_task *task)
{
    struct xs_range range;

    if (task->bounce_send != NULL) {
        size_t bytes = xs_send_bytes(task);

        memcpy(xs_mem_touch(task->bounce_send, bytes, &range), task->send_at, bytes);
    }
}

static void bounce_out(const struct xs_task *task)
{
    struct xs_range range;

    if (task->bounce_recv != NULL) {
        size_t bytes = xs_recv_bytes(task);

        memcpy(task->recv_at, xs_mem_touch(task->bounce_recv, bytes, &range), bytes);
    }
}

/* On the stream's thread: one collective, or all messages of a group. */
static void run_tasks(void *arg)
{
    struct xs_task *tasks = arg;
    struct xs_comm *comm = tasks->comm;
    bool            messages = (tasks->coll == XS_SEND) || (tasks->coll == XS_RECV);
    bool            began = begin(comm, tasks->ticket);
    bool            async = false;
    bool            good = began && xs_serial_begin(tasks);

    for (struct xs_task *t = tasks; good && (t != NULL); t = t->next) {
        bounce_in(t);
        async = async || t->async;
    }
    if (good) {
        good = messages ? xs_run_messages(tasks) : xs_run_collective(tasks);
    }
    if (good && async) {
        xs_comm_fail(comm, XS_INTERNAL_ERROR, "%s fails asynchronously as XCCL_SIM_FAIL asks",
                     xs_coll_name(tasks->coll));
    }
    xs_serial_end(tasks);
    while (tasks != NULL) {
        struct xs_task *next = tasks->next;

        if (good) {
            bounce_out(tasks);
        }
        task_free(tasks);
        tasks = next;
    }
    end(comm, began);
}

/* What one launch of a graph runs; in the order of the launches. */
static void *copy_tasks(const void *arg)
{
    struct xs_task *copy = xs_copy_flat(arg), *last = copy;

    while ((last != NULL) && (last->next != NULL)) {
        last->next = xs_copy_flat(last->next);
        last = last->next;
    }
    if (last == NULL) {
        return NULL;
    }
    struct xs_comm *comm = copy->comm;
    pthread_mutex_lock(&comm->lock);
    copy->ticket = comm->issued++;
    __atomic_add_fetch(&comm->users, 1, __ATOMIC_RELAXED);
    xs_serial_append(copy);
    pthread_mutex_unlock(&comm->lock);
    return copy;
}

static enum xs_result capture(struct xs_task *tasks)
{
    enum xs_error res = XS_OK;

    for (struct xs_task *t = tasks; (t != NULL) && (res == XS_OK); t = t->next) {
        bool alike =
            (t->stream == tasks->stream) && (t->bounce_send == NULL) && (t->bounce_recv == NULL);
        res = alike ? res : xs_capture_refuse(tasks->stream, XS_CAPTURE_UNSUPPORTED);
    }
    if (res == XS_OK) {
        res = xs_stream_enqueue(tasks->stream, run_tasks, copy_tasks, tasks);
    }
    return (res == XS_OK) ? XS_SUCCESS
                          : xs_problem(XS_DEVICE_ERROR, "an operation could not be captured: %s",
                                       xs_error_text((int)res));
}

/* Issue tasks, all of one communicator, on the stream of the first; order the others' around it. */
static enum xs_result issue(struct xs_task *tasks)
{
    struct xs_comm   *comm = tasks->comm;
    struct xs_stream *stream = tasks->stream;
    enum xs_error     res = XS_OK;

    xs_launch_takes_time();
    if (xs_stream_capture(stream) != NULL) {
        return capture(tasks);
    }
    xs_stream_pass(stream);
    for (struct xs_task *t = tasks->next; (t != NULL) && (res == XS_OK); t = t->next) {
        res = xs_stream_follow(stream, t->stream);
    }
    pthread_mutex_lock(&comm->lock); /* tickets and places in a stream's queue: the same order */
    tasks->ticket = comm->issued;
    __atomic_add_fetch(&comm->users, 1, __ATOMIC_RELAXED);
    struct xs_stream *others[64];
    size_t            count = 0;
    for (struct xs_task *t = tasks->next; t != NULL; t = t->next) {
        if ((t->stream != stream) && (count < sizeof(others) / sizeof(others[0]))) {
            others[count++] = t->stream;
        }
    }
    if (res == XS_OK) {
        res = xs_serial_enqueue(stream, run_tasks, tasks);
    }
    if (res == XS_OK) {
        comm->issued++;
    }
    pthread_mutex_unlock(&comm->lock);
    for (size_t i = 0; (i < count) && (res == XS_OK); i++) {
        res = xs_stream_follow(others[i], stream);
    }
    if (res != XS_OK) {
        return xs_problem(XS_DEVICE_ERROR, "an operation could not be enqueued: %s",
                          xs_error_text((int)res));
    }
    xs_launched(stream);
    return XS_SUCCESS;
}

/* Move the tasks of comm out of *list_p: its collectives, or its messages. */
static struct xs_task *take(struct xs_task **list_p, const struct xs_comm *comm, bool messages)
{
    struct xs_task  *taken = NULL;
    struct xs_task **taken_end = &taken;

    while (*list_p != NULL) {
        struct xs_task *task = *list_p;
        bool            message = (task->coll == XS_SEND) || (task->coll == XS_RECV);

        if ((task->comm == comm) && (message == messages)) {
            *list_p = task->next;
            task->next = NULL;
            *taken_end = task;
            taken_end = &task->next;
        } else {
            list_p = &task->next;
        }
    }
    return taken;
}

static void free_all(struct xs_task *tasks)
{
    while (tasks != NULL) {
        struct xs_task *next = tasks->next;

        task_free(tasks);
        tasks = next;
    }
}

static enum xs_result issue_all(struct xs_task *tasks)
{
    enum xs_result res = xs_connect(tasks);

    if (res != XS_SUCCESS) {
        free_all(tasks);
    }
    while ((tasks != NULL) && (res == XS_SUCCESS)) {
        const struct xs_comm *comm = tasks->comm;
        struct xs_task       *collectives = take(&tasks, comm, false);
        struct xs_task       *messages = take(&tasks, comm, true);

        while ((collectives != NULL) && (res == XS_SUCCESS)) {
            struct xs_task *next = collectives->next;

            collectives->next = NULL;
            res = issue(collectives);
            collectives = next;
        }
        if ((messages != NULL) && (res == XS_SUCCESS)) {
            res = issue(messages);
        }
    }
    return res;
}

enum xs_result xs_group_fail(enum xs_result res)
{
    if ((group.depth > 0) && (group.error == XS_SUCCESS)) {
        group.error = res;
    }
    return res;
}

static enum xs_result prepare(struct xs_task *task, void *stream)
{
    const char *name = xs_coll_name(task->coll);

    if (!xs_comm_valid(task->comm)) {
        return xs_problem(XS_INVALID_ARGUMENT, "%s : comm argument is not a communicator", name);
    }
    enum xs_result res = xs_comm_ready(task->comm);
    if (res != XS_SUCCESS) {
        return res;
    }
    if (task->comm->finalized) {
        return xs_problem(XS_INVALID_USAGE, "%s : the communicator was finalized", name);
    }
    if (task->comm->ctx->id != task->comm->ctx_id) {
        xs_orphan_used(task->comm->ctx, "a communicator");
        return xs_problem(XS_DEVICE_ERROR, "%s : the device was reset", name);
    }
    if (xs_stream_get(task->comm->ctx, stream, &task->stream) != XS_OK) {
        return xs_problem(XS_DEVICE_ERROR, "%s : invalid stream %p", name, stream);
    }
    if (xs_stream_ctx(task->stream)->device != task->comm->device) {
        return xs_problem(XS_DEVICE_ERROR,
                          "%s : the stream belongs to device %d, the "
                          "communicator to %d",
                          name, xs_stream_ctx(task->stream)->device, task->comm->device);
    }
    res = xs_check(task);
    if (res != XS_SUCCESS) {
        return res;
    }
    if (xs_fault(XS_FAULT_OP, name)) {
        return xs_problem(XS_SYSTEM_ERROR, "%s fails as XCCL_SIM_FAIL asks", name);
    }
    task->hang = xs_fault(XS_FAULT_HANG, name);
    task->kill = xs_fault(XS_FAULT_KILL, name);
    task->async = xs_fault(XS_FAULT_ASYNC, name);
    return XS_SUCCESS;
}

/* A collective of one rank is a copy, which NCCL launches in the call, in a group or not. */
static bool is_alone(const struct xs_task *task)
{
    return (task->comm->nranks == 1) && (task->coll < XS_SEND) && (xs_config()->flavour != XS_HPU);
}

enum xs_result xs_call(const struct xs_task *call, void *stream)
{
    struct xs_task *task = malloc(sizeof(*task));

    if (task == NULL) {
        return xs_group_fail(XS_SYSTEM_ERROR);
    }
    *task = *call;
    enum xs_result res = prepare(task, stream);
    bool           empty = (task->count == 0) && (task->coll < XS_SEND);
    if ((res != XS_SUCCESS) || empty) {
        task_free(task);
        return xs_group_fail(res);
    }
    if (group.depth == 0) {
        return issue_all(task);
    }
    if (is_alone(task)) {
        return xs_group_fail(issue_all(task));
    }
    *group.tasks_end = task;
    group.tasks_end = &task->next;
    return XS_SUCCESS;
}

enum xs_result xs_group_start(void)
{
    if (group.depth++ == 0) {
        group.error = XS_SUCCESS;
        group.tasks = NULL;
        group.tasks_end = &group.tasks;
        group.jobs = NULL;
        group.jobs_end = &group.jobs;
    }
    return XS_SUCCESS;
}

/* And those behind it that are of the same. */
static void *run_job(void *arg)
{
    struct job *first = arg;

    for (struct job *job = first; job != NULL; job = (first->of != NULL) ? job->next : NULL) {
        if (job->of == first->of) {
            job->res = job->run(job->arg);
        }
    }
    return NULL;
}

static bool is_first(const struct job *jobs, const struct job *job)
{
    while ((job->of != NULL) && (jobs != job) && (jobs->of != job->of)) {
        jobs = jobs->next;
    }
    return (job->of == NULL) || (jobs == job);
}

/*
 * Several ranks of this process may have to meet each other: a thread each. Splits of one
 * communicator come in their order on all ranks.
 */
static enum xs_result run_jobs(struct job *jobs)
{
    enum xs_result res = XS_SUCCESS;

    for (struct job *job = jobs; job != NULL; job = job->next) {
        bool first = is_first(jobs, job);
        job->threaded = first && (pthread_create(&job->thread, NULL, run_job, job) == 0);
        if (first && !job->threaded) {
            job->res = xs_problem(XS_SYSTEM_ERROR, "no thread for making a communicator");
        }
    }
    for (struct job *job = jobs; job != NULL; job = job->next) {
        if (job->threaded) {
            pthread_join(job->thread, NULL);
        }
    }
    while (jobs != NULL) {
        struct job *next = jobs->next;

        res = (res == XS_SUCCESS) ? jobs->res : res;
        free(jobs);
        jobs = next;
    }
    return res;
}

enum xs_result xs_group_add_job(enum xs_result (*run)(void *), void *arg, const void *of)
{
    if (group.depth == 0) {
        return run(arg);
    }
    struct job *job = calloc(1, sizeof(*job));
    if (job == NULL) {
        return xs_group_fail(XS_SYSTEM_ERROR);
    }
    job->run = run;
    job->arg = arg;
    job->of = of;
    *group.jobs_end = job;
    group.jobs_end = &job->next;
    return XS_SUCCESS;
}

enum xs_result xs_group_end(void)
{
    if (group.depth == 0) {
        return xs_problem(XS_INVALID_USAGE, "ncclGroupEnd: not in a group call.");
    }
    if (--group.depth > 0) {
        return XS_SUCCESS;
    }
    enum xs_result  res = run_jobs(group.jobs);
    struct xs_task *tasks = group.tasks;
    if (group.error != XS_SUCCESS) {
        res = group.error;
    }
    if (res == XS_SUCCESS) {
        return issue_all(tasks);
    }
    free_all(tasks);
    return res;
}
