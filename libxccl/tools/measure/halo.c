/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Halo exchanges. Each rank of a periodic grid has a block of n^2 or n^3 elements, with ghost cells
 * around it, and sends the outermost layer of each face to the neighbour behind that face. Face 2k
 * is the lower one along dimension k and face 2k + 1 the upper one; the last dimension is
 * contiguous in memory. Faces are either derived types on the block, or buffers of their own.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "measure/measure.h"

enum { MAX_DIMS = 3, MAX_FACES = 2 * MAX_DIMS };

struct perf_halo {
    int          dims;
    size_t       side;       /* n */
    size_t       face;       /* elements */
    bool         contiguous; /* faces lie in buffers of their own */
    MPI_Comm     comm;
    int          neighbour[MAX_FACES]; /* ranks */
    MPI_Datatype layer[MAX_FACES];     /* of the block, inside the face */
    MPI_Datatype ghost[MAX_FACES];     /* outside of it */
};

static int dims_of(enum perf_test test)
{
    return (test == PERF_HALO2D) ? 2 : 3;
}

static size_t power(size_t n, int exponent)
{
    size_t x = 1;

    for (int i = 0; i < exponent; i++) {
        x *= n;
    }
    return x;
}

/* n of the largest block of at most count elements. */
static size_t side_of(int dims, size_t count)
{
    size_t n = (size_t)((dims == 2) ? sqrt((double)count) : cbrt((double)count));

    /* The root of a double may be off by one. */
    while ((n > 1) && (power(n, dims) > count)) {
        n--;
    }
    while (power(n + 1, dims) <= count) {
        n++;
    }
    return (n > 0) ? n : 1;
}

size_t perf_halo_count(enum perf_test test, size_t count)
{
    int dims = dims_of(test);

    return power(side_of(dims, count), dims);
}

size_t perf_halo_face(enum perf_test test, size_t count)
{
    int dims = dims_of(test);

    return power(side_of(dims, count), dims - 1);
}

void perf_halo_grid(const struct perf_run *run, enum perf_test test, const char *between,
                    char *text, size_t len)
{
    int    grid[MAX_DIMS] = {0}, dims = dims_of(test);
    size_t at = 0;

    PMPI_Dims_create(run->nranks, dims, grid);
    text[0] = '\0';
    for (int k = 0; (k < dims) && (at < len); k++) {
        at += (size_t)snprintf(text + at, len - at, "%s%d", (k > 0) ? between : "", grid[k]);
    }
}

static bool find_neighbours(const struct perf_run *run, struct perf_halo *halo)
{
    int grid[MAX_DIMS] = {0}, periodic[MAX_DIMS] = {1, 1, 1};

    if ((MPI_Dims_create(run->nranks, halo->dims, grid) != MPI_SUCCESS) ||
        /* Without reordering, so that a rank is the same in both communicators. */
        (MPI_Cart_create(run->comm, halo->dims, grid, periodic, 0, &halo->comm) != MPI_SUCCESS)) {
        return false;
    }
    for (int k = 0; k < halo->dims; k++) {
        if (MPI_Cart_shift(halo->comm, k, 1, &halo->neighbour[2 * k],
                           &halo->neighbour[2 * k + 1]) != MPI_SUCCESS) {
            return false;
        }
    }
    return true;
}

/* One layer of the block, at a place along dimension k. */
static bool make_layer(const struct perf_run *run, const struct perf_halo *halo, int k, size_t at,
                       MPI_Datatype *type_p)
{
    int sizes[MAX_DIMS], subsizes[MAX_DIMS], starts[MAX_DIMS];

    for (int i = 0; i < halo->dims; i++) {
        sizes[i] = (int)halo->side + 2;
        subsizes[i] = (i == k) ? 1 : (int)halo->side;
        starts[i] = (i == k) ? (int)at : 1;
    }
    return (MPI_Type_create_subarray(halo->dims, sizes, subsizes, starts, MPI_ORDER_C,
                                     run->type->mpi, type_p) == MPI_SUCCESS) &&
           (MPI_Type_commit(type_p) == MPI_SUCCESS);
}

static bool make_types(const struct perf_run *run, struct perf_halo *halo)
{
    bool ok = true;

    for (int k = 0; ok && (k < halo->dims); k++) {
        ok = make_layer(run, halo, k, 1, &halo->layer[2 * k]) &&
             make_layer(run, halo, k, halo->side, &halo->layer[2 * k + 1]) &&
             make_layer(run, halo, k, 0, &halo->ghost[2 * k]) &&
             make_layer(run, halo, k, halo->side + 1, &halo->ghost[2 * k + 1]);
    }
    return ok;
}

static struct perf_halo *make_halo(const struct perf_run *run, const struct perf_case *pc)
{
    struct perf_halo *halo = calloc(1, sizeof(*halo));

    if (halo == NULL) {
        return NULL;
    }
    halo->dims = dims_of(pc->test);
    halo->side = side_of(halo->dims, pc->count);
    halo->face = power(halo->side, halo->dims - 1);
    halo->contiguous = run->opt.contiguous;
    halo->comm = MPI_COMM_NULL;
    for (int f = 0; f < MAX_FACES; f++) {
        halo->layer[f] = halo->ghost[f] = MPI_DATATYPE_NULL;
    }
    if (!find_neighbours(run, halo) || (!halo->contiguous && !make_types(run, halo))) {
        perf_halo_free(halo);
        return NULL;
    }
    return halo;
}

void perf_halo_free(struct perf_halo *halo)
{
    if (halo == NULL) {
        return;
    }
    for (int f = 0; f < MAX_FACES; f++) {
        if (halo->layer[f] != MPI_DATATYPE_NULL) {
            MPI_Type_free(&halo->layer[f]);
        }
        if (halo->ghost[f] != MPI_DATATYPE_NULL) {
            MPI_Type_free(&halo->ghost[f]);
        }
    }
    if (halo->comm != MPI_COMM_NULL) {
        MPI_Comm_free(&halo->comm);
    }
    free(halo);
}

/* A row of the block with its ghost cells: where it lies among the elements of whose input. */
struct row {
    int    rank;
    size_t index;  /* of the first element inside */
    int    ghosts; /* in how many dimensions the row lies outside the block */
};

static struct row find_row(const struct perf_run *run, const struct perf_halo *halo, size_t number)
{
    struct row row = {.rank = run->rank};
    size_t     width = halo->side + 2, stride = halo->side;

    for (int k = halo->dims - 2; k >= 0; k--) {
        size_t at = number % width;
        number /= width;
        if ((at == 0) || (at == width - 1)) {
            row.rank = halo->neighbour[2 * k + (at != 0)];
            at = (at == 0) ? halo->side : 1;
            row.ghosts++;
        }
        row.index += (at - 1) * stride;
        stride *= halo->side;
    }
    return row;
}

/* Elements from to end of a row, at out. */
static void make_row(const struct perf_run *run, const struct perf_case *pc, bool after,
                     size_t number, size_t from, size_t end, char *out)
{
    const struct perf_halo *halo = pc->halo;
    const int              *neighbour = &halo->neighbour[2 * (halo->dims - 1)];
    size_t                  size = run->type->size, side = halo->side;
    struct row              row = find_row(run, halo, number);
    size_t                  low = (from > 1) ? from : 1, high = (end < side + 1) ? end : side + 1;

    memset(out, PERF_POISON, (end - from) * size);
    if ((row.ghosts > 1) || ((row.ghosts == 1) && !after)) {
        return;
    }
    if (low < high) {
        perf_values_make(run, pc, row.rank, row.index + low - 1, high - low,
                         out + (low - from) * size);
    }
    if (!after || (row.ghosts == 1)) {
        return;
    }
    if (from == 0) {
        perf_values_make(run, pc, neighbour[0], row.index + side - 1, 1, out);
    }
    if (end == side + 2) {
        perf_values_make(run, pc, neighbour[1], row.index, 1, out + (end - 1 - from) * size);
    }
}

/* The block with its ghost cells; see perf_image_fn. */
static void make_image(const struct perf_run *run, const struct perf_case *pc, bool after,
                       size_t first, size_t n, void *out)
{
    size_t width = pc->halo->side + 2;

    for (size_t done = 0; done < n;) {
        size_t from = (first + done) % width;
        size_t part = (n - done < width - from) ? n - done : width - from;
        make_row(run, pc, after, (first + done) / width, from, from + part,
                 (char *)out + done * run->type->size);
        done += part;
    }
}

enum perf_where perf_halo_where(const struct perf_case *pc, size_t index)
{
    size_t width = pc->halo->side + 2;
    int    ghosts = 0;

    for (int k = 0; k < pc->halo->dims; k++) {
        ghosts += (index % width == 0) || (index % width == width - 1);
        index /= width;
    }
    return (ghosts == 0) ? PERF_IN_BLOCK : ((ghosts == 1) ? PERF_IN_RESULT : PERF_IN_CORNER);
}

bool perf_halo_plan(const struct perf_run *run, struct perf_case *pc)
{
    struct perf_halo *halo = make_halo(run, pc);
    int               faces = 2 * dims_of(pc->test);

    pc->halo = halo;
    if (halo == NULL) {
        fprintf(stderr, "%s: rank %d cannot set up a grid for %s\n", run->tool, run->rank,
                perf_test_name(pc->test));
        return false;
    }
    if (!perf_case_requests(run, pc, 2 * faces)) {
        return false;
    }
    pc->messages = faces;
    pc->message_bytes = halo->face * run->type->size;
    if (!halo->contiguous) {
        pc->recv_elems = power(halo->side + 2, halo->dims);
        pc->image = make_image;
        return true;
    }
    pc->send_elems = pc->recv_elems = halo->face * (size_t)faces;
    for (int f = 0; f < faces; f++) {
        pc->result[pc->nresult++] =
            (struct perf_segment){(size_t)f * halo->face, halo->face, false, halo->neighbour[f],
                                  (size_t)(f ^ 1) * halo->face};
    }
    return true;
}

/* From the neighbour behind face f, which calls the same face f ^ 1. */
static int receive_face(const struct perf_case *pc, MPI_Datatype element, int f)
{
    const struct perf_halo *halo = pc->halo;
    char                   *buf = pc->recvbuf;

    if (halo->contiguous) {
        return MPI_Irecv(buf + (size_t)f * pc->message_bytes, (int)halo->face, element,
                         halo->neighbour[f], f, halo->comm, &pc->requests[f]);
    }
    return MPI_Irecv(buf, 1, halo->ghost[f], halo->neighbour[f], f, halo->comm, &pc->requests[f]);
}

/* The tag is the receiver's face: two ranks may be neighbours on both sides. */
static int send_face(const struct perf_case *pc, MPI_Datatype element, int f)
{
    const struct perf_halo *halo = pc->halo;
    MPI_Request            *request = &pc->requests[pc->messages + f];

    if (halo->contiguous) {
        return MPI_Isend((char *)pc->sendbuf + (size_t)f * pc->message_bytes, (int)halo->face,
                         element, halo->neighbour[f], f ^ 1, halo->comm, request);
    }
    return MPI_Isend(pc->recvbuf, 1, halo->layer[f], halo->neighbour[f], f ^ 1, halo->comm,
                     request);
}

int perf_halo_call(const struct perf_run *run, const struct perf_case *pc)
{
    int status = MPI_SUCCESS;

    for (int f = 0; (status == MPI_SUCCESS) && (f < pc->messages); f++) {
        status = receive_face(pc, run->type->mpi, f);
    }
    for (int f = 0; (status == MPI_SUCCESS) && (f < pc->messages); f++) {
        status = send_face(pc, run->type->mpi, f);
    }
    return (status == MPI_SUCCESS) ? perf_case_wait(pc, 2 * pc->messages) : status;
}
