/* SPDX-License-Identifier: BSD-3-Clause */
#include "ops/results.h"

static bool is_of_several(enum xm_function function)
{
    return (function == XM_FN_MPI_Waitall) || (function == XM_FN_MPI_Testall) ||
           (function == XM_FN_MPI_Testsome);
}

struct xm_results xm_results_of(enum xm_function function, const struct xm_array *a,
                                const long *args, bool failed)
{
    static const int  first = 0;
    struct xm_results none = {NULL, 0, NULL};

    switch (function) {
    case XM_FN_MPI_Wait:
        return (struct xm_results){&first, 1, (MPI_Status *)args[1]};
    case XM_FN_MPI_Waitall:
        return (struct xm_results){NULL, a->count, (MPI_Status *)args[2]};
    case XM_FN_MPI_Test:
    case XM_FN_MPI_Request_get_status:
        return *(int *)args[1] ? (struct xm_results){&first, 1, (MPI_Status *)args[2]} : none;
    case XM_FN_MPI_Testall:
        return (*(int *)args[2] || failed)
                   ? (struct xm_results){NULL, a->count, (MPI_Status *)args[3]}
                   : none;
    case XM_FN_MPI_Testany:
        return (*(int *)args[3] && (*(int *)args[2] != MPI_UNDEFINED))
                   ? (struct xm_results){(int *)args[2], 1, (MPI_Status *)args[4]}
                   : none;
    case XM_FN_MPI_Testsome:
        return (*(int *)args[2] != MPI_UNDEFINED)
                   ? (struct xm_results){(int *)args[3], *(int *)args[2], (MPI_Status *)args[4]}
                   : none;
    default:
        return none;
    }
}

/* A persistent request is inactive from here on, and says no more of this message. */
static void settle(const struct xm_array *a, int i)
{
    struct xm_entry *e = a->entries[i];

    if ((e != NULL) && (e->transfer != NULL) && (e->transfer->form == 'P')) {
        e->transfer->rendezvous.fetch = XM_FETCH_NONE;
        e->transfer->rendezvous.kept = false;
        e->transfer->instead = false;
        e->transfer->started = false;
        e->transfer->ended = false;
        e->transfer->wrong = MPI_SUCCESS;
    }
}

static void fix_status(const struct xm_fix *f, MPI_Status *status)
{
    if (f->bytes >= 0) {
        xm_pmpi.Status_set_elements_x(status, XM_HANDLE(MPI_BYTE), f->bytes);
    }
    if (f->kept) {
        status->MPI_SOURCE = f->source;
        status->MPI_TAG = f->tag;
    }
}

/* Did MPI complete number k, when it says that some of several failed? */
static bool is_whole(const struct xm_results *r, int k, bool failed, bool ignored)
{
    return !failed || ignored || (r->statuses[k].MPI_ERROR == MPI_SUCCESS);
}

bool xm_is_in_status(int code)
{
    int class = MPI_SUCCESS;

    return (xm_pmpi.Error_class(code, &class) == MPI_SUCCESS) && (class == MPI_ERR_IN_STATUS);
}

/* The one that failed, or, of several, those: they are over too. */
static void settle_failed(enum xm_function function, const struct xm_array *a, const long *args,
                          bool in_status)
{
    int  i = (function == XM_FN_MPI_Testany) ? *(const int *)args[2] : 0;
    bool one = (function == XM_FN_MPI_Wait) || (function == XM_FN_MPI_Test) ||
               (function == XM_FN_MPI_Testany);

    if (one && (i >= 0) && (i < a->count) && a->fixed[i]) {
        settle(a, i);
    }
    struct xm_results r = {NULL, 0, NULL};
    if (in_status) {
        r = xm_results_of(function, a, args, true);
    }
    for (int k = 0; (r.statuses != MPI_STATUSES_IGNORE) && (k < r.count); k++) {
        i = (r.indices != NULL) ? r.indices[k] : k;
        if (a->fixed[i] && (r.statuses[k].MPI_ERROR != MPI_ERR_PENDING)) {
            settle(a, i);
        }
    }
}

int xm_results_fix(enum xm_function function, struct xm_array *a, const long *args, int code)
{
    bool failed = (code != MPI_SUCCESS);
    if (failed) {
        settle_failed(function, a, args, xm_is_in_status(code));
    }
    if (failed && !xm_is_in_status(code)) {
        return code;
    }
    struct xm_results r = xm_results_of(function, a, args, failed);
    bool     ignored = (r.statuses == MPI_STATUS_IGNORE) || (r.statuses == MPI_STATUSES_IGNORE);
    bool     several = is_of_several(function);
    bool     looks = (function == XM_FN_MPI_Request_get_status);
    bool     tells = !looks || !xm_mpi_is_openmpi(); /* whose look never fails */
    int      wrong = MPI_SUCCESS;
    bool     raised = true;
    MPI_Comm comm = XM_HANDLE(MPI_COMM_WORLD);

    for (int k = 0; k < r.count; k++) {
        int                  i = (r.indices != NULL) ? r.indices[k] : k;
        const struct xm_fix *f = &a->fixes[i];
        if (!a->fixed[i] || !is_whole(&r, k, failed, ignored)) {
            continue;
        }
        if (!ignored) {
            fix_status(f, &r.statuses[k]);
        }
        if (!looks) {
            settle(a, i);
        }
        if ((f->code != MPI_SUCCESS) && tells) {
            wrong = f->code;
            comm = f->raised ? comm : f->comm;
            raised = raised && f->raised;
        }
    }
    if (wrong == MPI_SUCCESS) {
        return code;
    }
    for (int k = 0; several && !ignored && (k < r.count); k++) {
        int i = (r.indices != NULL) ? r.indices[k] : k;
        if (is_whole(&r, k, failed, ignored)) {
            r.statuses[k].MPI_ERROR = a->fixed[i] ? a->fixes[i].code : MPI_SUCCESS;
        }
    }
    if (!failed) { /* else MPI has called the handler */
        code = several ? MPI_ERR_IN_STATUS : wrong;
    }
    if (!failed && !raised) {
        a->raises = true;
        a->raises_on = comm;
    }
    return code;
}

/* The status of an operation that failed, which MPI holds for good. False: the call is of others.
 */
static bool mark(const struct xm_array *a, const struct xm_results *r, const struct xm_op *op,
                 bool with_code)
{
    int at = xm_array_find_op(a, op);

    for (int k = 0; k < r->count; k++) {
        if (((r->indices != NULL) ? r->indices[k] : k) == at) {
            if (with_code) {
                r->statuses[k].MPI_ERROR = op->code;
            }
            return true;
        }
    }
    return false;
}

/* With the first that failed. */
static int tell(enum xm_function function, struct xm_array *a, const long *args, int code,
                struct xm_op *op)
{
    bool              several = is_of_several(function);
    bool              well = (code == MPI_SUCCESS);
    struct xm_results r = xm_results_of(function, a, args, !well && xm_is_in_status(code));
    bool              said = several && (r.statuses != MPI_STATUSES_IGNORE);

    for (int k = 0; said && well && (k < r.count); k++) {
        r.statuses[k].MPI_ERROR = MPI_SUCCESS;
    }
    for (; op != NULL; op = xm_requests_failed()) {
        if (mark(a, &r, op, said) && well) {
            code = several ? MPI_ERR_IN_STATUS : op->code;
            if (!op->raised && !a->raises) {
                a->raises = true;
                a->raises_on = xm_persistent_comm_of(xm_op_comm_to_raise_on(op));
            }
        }
        xm_request_told(op);
    }
    return code;
}

int xm_results_tell(enum xm_function function, struct xm_array *a, const long *args, int code)
{
    struct xm_op *op = xm_requests_failed();

    return (op == NULL) ? code : tell(function, a, args, code, op);
}
