/* SPDX-License-Identifier: BSD-3-Clause */
/* A call from its facts to its completion: the interposer's main flow. */
#include <stdio.h>

#include "base/log.h"
#include "intercept/run.h"

struct xm_config xm_config;

static __thread const char *last_path = "host";

const char *xm_last_path(void)
{
    return last_path;
}

/* Host memory by the address alone? MPI_IN_PLACE is the address of nothing in both families. */
static bool surely_host(const void *buf)
{
    return xc_mem_surely_host(buf) || (buf == MPI_IN_PLACE);
}

/* No page is shared between host and device memory, so one answer serves a whole page. */
static bool same_page(const void *a, const void *b)
{
    return ((uintptr_t)a >> 12) == ((uintptr_t)b >> 12);
}

static bool both_host(const void *a, const void *b)
{
    bool a_is_host = surely_host(a), b_is_host = surely_host(b);

    /* NULL is no answer: it may be MPI_BOTTOM, with the addresses in the datatype. */
    if ((a == NULL) || (b == NULL)) {
        return false;
    }
    if (a_is_host && b_is_host) {
        return true;
    }
    const struct xc_device_ops *dev = xc_device_active();
    if (dev == NULL) {
        return true;
    }
    /* Each question costs the driver some 80 ns. */
    a_is_host = a_is_host || (dev->mem_query(a).kind == XC_MEM_HOST);
    b_is_host = b_is_host || same_page(a, b) || (dev->mem_query(b).kind == XC_MEM_HOST);
    return a_is_host && b_is_host;
}

bool xm_call_is_plain(const void *sendbuf, const void *recvbuf)
{
    if (xm_config.check || !both_host(sendbuf, recvbuf)) {
        return false;
    }
    last_path = "host";
    return true;
}

/* "1 KiB-2 KiB": the sizes of a class. */
static void class_text(int size_class, char *buf, size_t len)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    int                      power = size_class - 1;

    if (size_class == 0) {
        snprintf(buf, len, "0 B");
        return;
    }
    int up = power + 1;
    snprintf(buf, len, "%d %s to %d %s", 1 << (power % 10), units[power / 10], 1 << (up % 10),
             units[up / 10]);
}

/* At info once per collective, size class and path (rank 0), at trace every call (all ranks). */
static void log_choice(const struct xm_comm *xm, const struct xm_facts *facts,
                       const struct xm_choice *choice, const char *path)
{
    static uint8_t seen[XM_NUM_COLLS][66];
    char           sizes[64];

    if (!xc_log_enabled(XC_LOG_INFO)) {
        return;
    }
    if (xc_log_enabled(XC_LOG_TRACE)) {
        xc_trace("%s of %llu bytes in %s on %d ranks: %s (%s)", xm_coll_name(facts->coll),
                 (unsigned long long)facts->bytes, xm_mem_name(facts->mem), facts->nranks, path,
                 choice->reason);
        return;
    }
    int     size_class = xm_size_class(facts->bytes);
    uint8_t bit = (uint8_t)(1u << choice->path);
    if ((xm->rank != 0) ||
        ((__atomic_fetch_or(&seen[facts->coll][size_class], bit, __ATOMIC_RELAXED) & bit) != 0)) {
        return;
    }
    class_text(size_class, sizes, sizeof(sizes));
    xc_info("%s of %s in %s on %d ranks: %s (%s)", xm_coll_name(facts->coll), sizes,
            xm_mem_name(facts->mem), facts->nranks, path, choice->reason);
}

static bool must_stage(const struct xm_side *side)
{
    return side->used && (side->mem.kind == XC_MEM_DEVICE);
}

/* MPI serves it; through host memory if it could not read the buffers. */
static int leave_to_mpi(const struct xm_call *call, struct xm_sides *sides,
                        const struct xc_device_ops *dev, const char **path_p)
{
    if ((dev == NULL) || (!must_stage(&sides->send) && !must_stage(&sides->recv)) ||
        xm_mpi_gpu_aware(dev->name)) {
        *path_p = "mpi";
        return xm_to_mpi(call);
    }
    *path_p = "mpi-staged";
    return xm_to_mpi_staged(call, sides, dev);
}

static int raise_with_history(struct xm_comm *xm, xcclResult_t res, const char *what)
{
    char history[512], text[1000], detail[256];

    snprintf(detail, sizeof(detail), "%s", what);
    xm_comm_history(xm, history, sizeof(history));
    snprintf(text, sizeof(text), "%s; last operations of rank %d: %s", detail, xm->rank, history);
    return xm_raise(xm->comm, res, text);
}

/*
 * A derived type that was not committed must be refused before anything is enqueued. Only functions
 * that use a type look: packing no element is one. The error reaches the program from there.
 */
static int check_side(const struct xm_call *call, const struct xm_side *side)
{
    char none[1] = {0};
    int  position = 0;

    if (!side->used || !side->layout.derived) {
        return MPI_SUCCESS;
    }
    return xm_pmpi.Pack(none, 0, side->type, none, 0, &position, call->comm);
}

static int check_committed(const struct xm_call *call, const struct xm_sides *sides)
{
    int code = check_side(call, &sides->send);

    return (code == MPI_SUCCESS) ? check_side(call, &sides->recv) : code;
}

static int serve_on_device(const struct xm_call *call, struct xm_sides *sides, struct xm_comm *xm,
                           struct xm_view *view)
{
    unsigned     available = (1u << XM_PATH_MPI) | (1u << XM_PATH_CCL);
    const char  *path = "ccl";
    xcclResult_t res = xm_check_environment(xm);

    if (res != xcclSuccess) {
        return xm_raise(call->comm, res, xc_last_detail());
    }
    struct xm_choice choice = xm_decide(xm_config.tune, xm_config.table, available, &view->facts);
    if (choice.path == XM_PATH_CCL) {
        int code = check_committed(call, sides);
        if (code != MPI_SUCCESS) {
            return code;
        }
        xm_comm_prepare(xm, view->dev, view->device);
        if (xm->state == XM_COMM_FAILED) {
            choice.path = XM_PATH_MPI;
            choice.reason = xm->reason;
        }
    }
    if (choice.path == XM_PATH_MPI) {
        int code = leave_to_mpi(call, sides, view->dev, &path);
        last_path = path;
        log_choice(xm, &view->facts, &choice, path);
        return code;
    }
    last_path = path;
    log_choice(xm, &view->facts, &choice, path);
    if (xm->state == XM_COMM_BROKEN) {
        return raise_with_history(xm, xcclInvalidUsage, xm->reason);
    }
    res = xm_run_ccl(sides, view, xm);
    return (res == xcclSuccess) ? MPI_SUCCESS : raise_with_history(xm, res, xc_last_detail());
}

int xm_serve(const struct xm_call *call)
{
    struct xm_sides sides;
    struct xm_comm *xm;
    struct xm_view  view;
    const char     *path;

    last_path = "host";
    if (xm_config.faulty || (call->comm == XM_HANDLE(MPI_COMM_NULL)) ||
        (xm_comm_get(call->comm, &xm) != xcclSuccess)) {
        return xm_to_mpi(call);
    }
    bool valid = xm_sides_of(call, xm, &sides);
    if (xm_config.check) {
        xcclResult_t res = xm_check_call(&sides, valid, xm);
        if (res != xcclSuccess) {
            return xm_raise(call->comm, res, xc_last_detail());
        }
    }
    if (!valid) {
        return xm_to_mpi(call); /* which says what is wrong with it */
    }
    xcclResult_t res = xm_facts_of(&sides, xm, &view);
    if (res != xcclSuccess) {
        return xm_raise(call->comm, res, xc_last_detail());
    }
    if (!view.on_device) {
        /* Yet a buffer that does not decide may be device memory. */
        bool staged = must_stage(&sides.send) || must_stage(&sides.recv);
        int  code = leave_to_mpi(call, &sides, view.dev, &path);
        last_path = staged ? path : "host";
        return code;
    }
    return serve_on_device(call, &sides, xm, &view);
}
