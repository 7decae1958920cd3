/* SPDX-License-Identifier: BSD-3-Clause */
#include "ops/results.h"

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

int xm_results_fix(enum xm_function function, const struct xm_array *a, const long *args, int code)
{
    bool failed = (code != MPI_SUCCESS);
    if (failed && !xm_is_in_status(code)) {
        return code;
    }
    struct xm_results r = xm_results_of(function, a, args, failed);
    bool ignored = (r.statuses == MPI_STATUS_IGNORE) || (r.statuses == MPI_STATUSES_IGNORE);
    bool several = (function == XM_FN_MPI_Waitall) || (function == XM_FN_MPI_Testall) ||
                   (function == XM_FN_MPI_Testsome);
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
        if (function != XM_FN_MPI_Request_get_status) {
            settle(a, i);
            if (f->code != MPI_SUCCESS) {
                wrong = f->code;
                comm = f->raised ? comm : f->comm;
                raised = raised && f->raised;
            }
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
        xm_pmpi.Comm_call_errhandler(comm, code);
    }
    return code;
}
