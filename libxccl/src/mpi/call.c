/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A call's arguments, and making it.
 *
 * Programs ask whether a function like MPI_Allreduce_c exists by looking for its name (mpi4py's
 * wheels do), and find ours; so it must work with an MPI library that has none: by the function
 * with int counts, as long as the counts fit.
 */
#include "mpi/call.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"

struct xm_signature xm_signatures[XM_NUM_COLLS] = {
#define XM_ROW(name, small, capitals, n, ni, np, kinds)                                            \
    [XM_##capitals] = {kinds, -1, -1, -1, false},
    XM_COLLECTIVES(XM_ROW)
#undef XM_ROW
};

static int position(const struct xm_signature *s, char kind)
{
    const char *at = strchr(s->kinds, kind);

    return (at == NULL) ? -1 : (int)(at - s->kinds);
}

void xm_call_init(void)
{
    for (int i = 0; i < XM_NUM_COLLS; i++) {
        struct xm_signature *s = &xm_signatures[i];
        s->sendbuf = (int8_t)position(s, 's');
        s->recvbuf = (int8_t)position(s, 'r');
        s->comm = (int8_t)position(s, 'c');
        s->wide_displs = (position(s, 'a') >= 0);
    }
}

/* Handles are ints in one family and pointers in the other; a long holds either. */
#define HANDLE(type, value) ((type)(intptr_t)(value))

static void read_argument(struct xm_call *call, char kind, long value)
{
    void *pointer = (void *)value;

    switch (kind) {
    case 's':
        call->sendbuf = pointer;
        break;
    case 'r':
        call->recvbuf = pointer;
        break;
    case 'n':
        call->sendcount = call->large ? (MPI_Count)value : (int)value;
        break;
    case 'm':
        call->recvcount = call->large ? (MPI_Count)value : (int)value;
        break;
    case 'N':
        call->sendcounts = pointer;
        break;
    case 'M':
        call->recvcounts = pointer;
        break;
    case 'd':
    case 'a':
        call->sdispls = pointer;
        break;
    case 'D':
    case 'A':
        call->rdispls = pointer;
        break;
    case 't':
        call->sendtype = HANDLE(MPI_Datatype, value);
        break;
    case 'u':
        call->recvtype = HANDLE(MPI_Datatype, value);
        break;
    case 'U':
        call->sendtypes = pointer;
        break;
    case 'V':
        call->recvtypes = pointer;
        break;
    case 'o':
        call->op = HANDLE(MPI_Op, value);
        break;
    case 'x':
        call->root = (int)value;
        break;
    default:
        call->comm = HANDLE(MPI_Comm, value);
        break;
    }
}

void xm_call_read(enum xm_function function, int profiling, const long *args, struct xm_call *call)
{
    memset(call, 0, sizeof(*call));
    call->function = function;
    call->coll = xm_function_coll(function);
    call->form = xm_function_form(function);
    call->large = ((int)function % 2) != 0;
    call->profiling = (profiling != 0);
    call->root = -1;
    int n = xm_mpi_arguments(function);
    memcpy(call->args, args, (size_t)n * sizeof(*args));
    const char *kinds = xm_signatures[call->coll].kinds;
    for (int i = 0; kinds[i] != '\0'; i++) {
        read_argument(call, kinds[i], args[i]);
    }
    if (call->form != XM_BLOCKING) {
        call->request = (MPI_Request *)args[n - 1];
    }
}

static bool fits(MPI_Count value)
{
    return (value >= INT_MIN) && (value <= INT_MAX);
}

/* MPI's own error for it, through the communicator's error handler. */
static int too_large(const struct xm_call *call, enum xm_function function)
{
    xc_error("%s: a count or displacement is no int (-%d to %d), and this MPI has no function for "
             "large counts",
             xm_mpi_function_name(function), INT_MAX, INT_MAX);
    xm_pmpi.Comm_call_errhandler(call->comm, MPI_ERR_COUNT);
    return MPI_ERR_COUNT;
}

/* On a communicator with a topology: how many this rank sends to, or receives from. */
static int num_neighbors(MPI_Comm comm, int topology, bool sends)
{
    int n = 0, rank = 0, in = 0, out = 0, weighted;

    if (topology == MPI_CART) {
        xm_pmpi.Cartdim_get(comm, &n);
        return 2 * n;
    }
    if (topology == MPI_GRAPH) {
        xm_pmpi.Comm_rank(comm, &rank);
        xm_pmpi.Graph_neighbors_count(comm, rank, &n);
        return n;
    }
    xm_pmpi.Dist_graph_neighbors_count(comm, &in, &out, &weighted);
    return sends ? out : in;
}

int xm_types_looked_at(const struct xm_call *call, bool sends, int n)
{
    int topology = MPI_UNDEFINED;

    if (!XM_OPENMPI || (call->coll != XM_ALLTOALLW) ||
        (xm_pmpi.Topo_test(call->comm, &topology) != MPI_SUCCESS) || (topology == MPI_UNDEFINED)) {
        return n;
    }
    int neighbors = num_neighbors(call->comm, topology, sends);
    return (neighbors > n) ? neighbors : n;
}

/*
 * Does what it sends, or receives, mean something on this rank? If not, its count may be any, and
 * its arrays may be anywhere: in place, and in those with a root where the other side is.
 */
static bool means_something(const struct xm_call *call, const long *args, bool sends)
{
    const struct xm_signature *s = &xm_signatures[call->coll];
    bool                       scatters = (call->coll == XM_SCATTER) || (call->coll == XM_SCATTERV);
    bool                       gathers = (call->coll == XM_GATHER) || (call->coll == XM_GATHERV);
    int                        rank = 0, inter = 0;

    if ((s->sendbuf < 0) || ((position(s, 'u') < 0) && (position(s, 'V') < 0))) {
        return true; /* both have the same counts */
    }
    if ((const void *)args[sends ? s->sendbuf : s->recvbuf] == MPI_IN_PLACE) {
        return false;
    }
    if ((!scatters && !gathers) || (xm_pmpi.Comm_rank(call->comm, &rank) != MPI_SUCCESS) ||
        (xm_pmpi.Comm_test_inter(call->comm, &inter) != MPI_SUCCESS)) {
        return true;
    }
    if (sends == scatters) { /* the side of the root */
        return call->root == (inter ? MPI_ROOT : rank);
    }
    return !inter || ((call->root != MPI_ROOT) && (call->root != MPI_PROC_NULL));
}

/* How many elements the arrays have; 0: this cannot be told. */
static int length_of_arrays(const struct xm_call *call, bool sends)
{
    int n = 0, inter = 0;

    if ((xm_pmpi.Comm_size(call->comm, &n) != MPI_SUCCESS) ||
        (xm_pmpi.Comm_test_inter(call->comm, &inter) != MPI_SUCCESS)) {
        return 0;
    }
    if (xm_coll_has_neighbors(call->coll)) {
        int status = MPI_UNDEFINED;
        xm_pmpi.Topo_test(call->comm, &status);
        return num_neighbors(call->comm, status, sends);
    }
    if (inter && (call->coll != XM_REDUCE_SCATTER)) {
        xm_pmpi.Comm_remote_size(call->comm, &n);
    }
    return n;
}

struct narrowed {
    long  args[XM_MAX_ARGUMENTS];
    void *room[XM_MAX_ROOMS]; /* arrays made for the call */
    int   rooms;
};

static bool is_of_sends(char kind)
{
    return (kind == 'n') || (kind == 'N') || (kind == 'd');
}

/* Replace an array of MPI_Count or MPI_Aint by one of ints; false: a value does not fit. */
static bool narrow_array(const struct xm_call *call, char kind, long *arg, struct narrowed *out)
{
    const void *array = (const void *)*arg;
    bool        counts = (kind == 'N') || (kind == 'M');
    int         n = length_of_arrays(call, is_of_sends(kind));
    int        *ints;

    if ((array == NULL) || (n == 0)) {
        return true;
    }
    ints = malloc((size_t)n * sizeof(*ints));
    if (ints == NULL) {
        return false;
    }
    out->room[out->rooms++] = ints;
    for (int i = 0; i < n; i++) {
        MPI_Count value =
            counts ? xm_count_at(call, array, i) : (MPI_Count)xm_displ_at(call, array, i);
        if (!fits(value)) {
            return false;
        }
        ints[i] = (int)value;
    }
    *arg = (long)ints;
    return true;
}

static bool narrow(const struct xm_call *call, struct narrowed *out)
{
    const char *kinds = xm_signatures[call->coll].kinds;
    bool        sends = means_something(call, out->args, true);
    bool        receives = means_something(call, out->args, false);

    for (int i = 0; kinds[i] != '\0'; i++) {
        bool means = is_of_sends(kinds[i]) ? sends : receives;
        switch (kinds[i]) {
        case 'n':
        case 'm':
            out->args[i] = means ? out->args[i] : 0;
            if (!fits((MPI_Count)out->args[i])) {
                return false;
            }
            break;
        case 'N':
        case 'M':
        case 'd':
        case 'D':
            if (means && !narrow_array(call, kinds[i], &out->args[i], out)) {
                return false;
            }
            break;
        default:
            break;
        }
    }
    return true;
}

/* Arrays made for a call that is not blocking must outlive it. */
static void release(const struct xm_call *call, struct narrowed *narrowed, enum xm_form form)
{
    for (int i = 0; i < narrowed->rooms; i++) {
        if (form == XM_BLOCKING) {
            free(narrowed->room[i]);
        } else if (call->rooms != NULL) {
            call->rooms[i] = narrowed->room[i];
        }
    }
}

bool xm_call_makes_arrays(const struct xm_call *call)
{
    return call->large && (xm_mpi_functions[call->function] == NULL) &&
           (strpbrk(xm_signatures[call->coll].kinds, "NMdD") != NULL);
}

static int make(const struct xm_call *call, enum xm_form form, const long *args)
{
    enum xm_function function = xm_function_of(call->coll, form, call->large);
    struct narrowed  narrowed = {.rooms = 0};

    if (xm_mpi_functions[function] != NULL) {
        return (int)xm_mpi_forward(function, call->profiling, args);
    }
    if (!call->large) {
        xc_error("this MPI has no %s", xm_mpi_function_name(function));
        xm_pmpi.Comm_call_errhandler(call->comm, MPI_ERR_OTHER);
        return MPI_ERR_OTHER;
    }
    memcpy(narrowed.args, args, sizeof(narrowed.args));
    int res = narrow(call, &narrowed) ? (int)xm_mpi_forward(xm_function_of(call->coll, form, 0),
                                                            call->profiling, narrowed.args)
                                      : too_large(call, function);
    release(call, &narrowed, form);
    return res;
}

int xm_call_mpi(const struct xm_call *call)
{
    return make(call, call->form, call->args);
}

/* Makes the buffer begin at its only part. */
static void begin_at_part(const struct xm_call *call, int buffer, int displs, MPI_Count extent,
                          long *args)
{
    static const MPI_Count none; /* as an int and as an MPI_Aint, too */

    args[buffer] += (long)xm_displ_at(call, (const void *)args[displs], 0) * (long)extent;
    args[displs] = (long)&none;
}

/*
 * On a communicator of one rank MPI_Allgatherv of MPICH 4.0.2 and MPI_Alltoallw of Open MPI 4.1 do
 * not look at displacements. Before the copy of a program's buffer there may be no memory, so it
 * begins where the data does, until nobody uses those any longer.
 */
static void begin_at_only_part(const struct xm_call *call, long *args)
{
    const struct xm_signature *s = &xm_signatures[call->coll];
    bool                       gathers = (call->coll == XM_ALLGATHERV);
    int                        size = 0, inter = 0;
    MPI_Count                  lb, extent = 1;

    if ((xm_pmpi.Comm_size(call->comm, &size) != MPI_SUCCESS) || (size != 1) ||
        (xm_pmpi.Comm_test_inter(call->comm, &inter) != MPI_SUCCESS) || inter ||
        (gathers && (xm_pmpi.Type_get_extent_x(HANDLE(MPI_Datatype, args[position(s, 'u')]), &lb,
                                               &extent) != MPI_SUCCESS))) {
        return;
    }
    begin_at_part(call, s->recvbuf, position(s, 'D'), extent, args);
    if (!gathers && ((const void *)args[s->sendbuf] != MPI_IN_PLACE)) {
        begin_at_part(call, s->sendbuf, position(s, 'd'), extent, args);
    }
}

static void set_buffers(const struct xm_call *call, const void *sendbuf, void *recvbuf, long *args)
{
    const struct xm_signature *s = &xm_signatures[call->coll];

    memcpy(args, call->args, sizeof(call->args));
    if (s->sendbuf >= 0) {
        args[s->sendbuf] = (long)sendbuf;
    }
    if (s->recvbuf >= 0) {
        args[s->recvbuf] = (long)recvbuf;
    }
    bool copies = (sendbuf != call->sendbuf) || (recvbuf != call->recvbuf);
    if (copies && ((call->coll == XM_ALLGATHERV) || (call->coll == XM_ALLTOALLW))) {
        begin_at_only_part(call, args);
    }
}

int xm_call_mpi_with(const struct xm_call *call, const void *sendbuf, void *recvbuf)
{
    long args[XM_MAX_ARGUMENTS];

    set_buffers(call, sendbuf, recvbuf, args);
    return make(call, XM_BLOCKING, args);
}

static int make_request(const struct xm_call *call, enum xm_form form, const void *sendbuf,
                        void *recvbuf, MPI_Request *request)
{
    long args[XM_MAX_ARGUMENTS];
    int  n = xm_mpi_arguments(xm_function_of(call->coll, form, 0));

    set_buffers(call, sendbuf, recvbuf, args);
    args[n - 1] = (long)request;
    return make(call, form, args);
}

int xm_call_mpi_start(const struct xm_call *call, const void *sendbuf, void *recvbuf,
                      MPI_Request *request)
{
    return make_request(call, XM_NONBLOCKING, sendbuf, recvbuf, request);
}

int xm_call_mpi_init(const struct xm_call *call, const void *sendbuf, void *recvbuf,
                     MPI_Request *request)
{
    return make_request(call, XM_PERSISTENT, sendbuf, recvbuf, request);
}
