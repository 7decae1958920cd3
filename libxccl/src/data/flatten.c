/* SPDX-License-Identifier: BSD-3-Clause */
#include "data/flatten.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "data/lists.h"
#include "data/types.h"

/* Types within types. */
enum { MOST_NESTED = 64 };

/* ---- what a constructor was given ---- */

typedef int (*envelope_fn)(MPI_Datatype, MPI_Count *, MPI_Count *, MPI_Count *, MPI_Count *, int *);
typedef int (*contents_fn)(MPI_Datatype, MPI_Count, MPI_Count, MPI_Count, MPI_Count, int *,
                           MPI_Aint *, MPI_Count *, MPI_Datatype *);

/* MPI-4's functions with large counts: only they know types that were made with such. */
struct large {
    envelope_fn     envelope;
    contents_fn     contents;
    struct xm_flat *flat; /* what is found out on the way */
};

struct envelope {
    MPI_Count integers, addresses, counts, types;
    int       combiner;
};

/* Arguments of a constructor: integers, addresses and counts in a row. */
struct contents {
    struct envelope envelope;
    MPI_Count      *number;
    MPI_Datatype   *type;
};

static struct large find_large(void)
{
    struct large large = {.envelope = NULL};
    void        *envelope = xm_mpi_symbol("PMPI_Type_get_envelope_c");
    void        *contents = xm_mpi_symbol("PMPI_Type_get_contents_c");

    if ((envelope != NULL) && (contents != NULL)) {
        memcpy(&large.envelope, &envelope, sizeof(envelope));
        memcpy(&large.contents, &contents, sizeof(contents));
    }
    return large;
}

static bool read_envelope(const struct large *large, MPI_Datatype type, struct envelope *e)
{
    int integers, addresses, types;

    if (large->envelope != NULL) {
        return large->envelope(type, &e->integers, &e->addresses, &e->counts, &e->types,
                               &e->combiner) == MPI_SUCCESS;
    }
    if (xm_pmpi.Type_get_envelope(type, &integers, &addresses, &types, &e->combiner) !=
        MPI_SUCCESS) {
        return false;
    }
    *e = (struct envelope){integers, addresses, 0, types, e->combiner};
    return true;
}

static bool ask_contents(const struct large *large, MPI_Datatype type, struct contents *c,
                         int *integers, MPI_Aint *addresses)
{
    const struct envelope *e = &c->envelope;

    return ((large->contents != NULL)
                ? large->contents(type, e->integers, e->addresses, e->counts, e->types, integers,
                                  addresses, c->number + e->integers + e->addresses, c->type)
                : xm_pmpi.Type_get_contents(type, (int)e->integers, (int)e->addresses,
                                            (int)e->types, integers, addresses, c->type)) ==
           MPI_SUCCESS;
}

static void drop_contents(const struct large *large, struct contents *c)
{
    struct envelope e;

    for (MPI_Count i = 0; (c->type != NULL) && (i < c->envelope.types); i++) {
        /* Predefined handles are MPI's: named ones, and those of Fortran's parametrised types. */
        if (read_envelope(large, c->type[i], &e) && (e.combiner != MPI_COMBINER_NAMED) &&
            (e.combiner != MPI_COMBINER_F90_REAL) && (e.combiner != MPI_COMBINER_F90_COMPLEX) &&
            (e.combiner != MPI_COMBINER_F90_INTEGER)) {
            xm_pmpi.Type_free(&c->type[i]);
        }
    }
    free(c->number);
    free(c->type);
}

/* With the envelope read. The caller drops it. */
static bool read_contents(const struct large *large, MPI_Datatype type, struct contents *c)
{
    const struct envelope *e = &c->envelope;
    int                   *integers = malloc(((size_t)e->integers + 1) * sizeof(*integers));
    MPI_Aint              *addresses = malloc(((size_t)e->addresses + 1) * sizeof(*addresses));
    bool                   good = false;

    c->number = calloc((size_t)(e->integers + e->addresses + e->counts) + 1, sizeof(*c->number));
    c->type = calloc((size_t)e->types + 1, sizeof(*c->type));
    if ((integers == NULL) || (addresses == NULL) || (c->number == NULL) || (c->type == NULL)) {
        goto free_arrays;
    }
    good = ask_contents(large, type, c, integers, addresses);
    for (MPI_Count i = 0; good && (i < e->integers); i++) {
        c->number[i] = integers[i];
    }
    for (MPI_Count i = 0; good && (i < e->addresses); i++) {
        c->number[e->integers + i] = addresses[i];
    }
free_arrays:
    free(integers);
    free(addresses);
    if (!good) { /* no handles came */
        free(c->number);
        free(c->type);
    }
    return good;
}

/* ---- from constructors to runs ---- */

/* A type on its way. */
struct part {
    struct xm_runs runs;
    MPI_Aint       extent;
};

struct two {
    const char *name;
    size_t      first, second, offset;
};

/* Named types that are a struct of two, as C lays them out. */
static bool add_pair(MPI_Datatype type, struct xm_runs *runs)
{
    struct double_int {
        double a;
        int    b;
    };
    struct long_int {
        long a;
        int  b;
    };
    struct short_int {
        short a;
        int   b;
    };
    struct long_double_int {
        long double a;
        int         b;
    };
    static const struct two pairs[] = {
        {"MPI_DOUBLE_INT", sizeof(double), sizeof(int), offsetof(struct double_int, b)},
        {"MPI_LONG_INT", sizeof(long), sizeof(int), offsetof(struct long_int, b)},
        {"MPI_SHORT_INT", sizeof(short), sizeof(int), offsetof(struct short_int, b)},
        {"MPI_LONG_DOUBLE_INT", sizeof(long double), sizeof(int),
         offsetof(struct long_double_int, b)},
    };
    const char *name = xm_type_name(type);

    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        if (strcmp(name, pairs[i].name) == 0) {
            return xm_runs_add(runs, 0, pairs[i].first) &&
                   xm_runs_add(runs, (ptrdiff_t)pairs[i].offset, pairs[i].second);
        }
    }
    return false;
}

/* Elements of one size, or of several. */
static void note_element(struct xm_flat *flat, MPI_Count size)
{
    bool same = (flat->element == 0) || (flat->element == size);

    flat->element = same ? size : XM_ELEMENTS_DIFFER;
}

static bool take_named(const struct large *large, MPI_Datatype type, struct xm_runs *runs)
{
    enum xm_nature nature = XM_OTHER;
    MPI_Count      size, true_lb, true_extent;

    if (xm_type_named(type, &nature, &size) && (nature == XM_HOLES)) {
        note_element(large->flat, XM_ELEMENTS_DIFFER);
        return add_pair(type, runs);
    }
    if ((xm_pmpi.Type_size_x(type, &size) != MPI_SUCCESS) ||
        (xm_pmpi.Type_get_true_extent_x(type, &true_lb, &true_extent) != MPI_SUCCESS)) {
        return false;
    }
    if (size > 0) {
        note_element(large->flat, size);
    }
    /* One with holes that we do not know is left alone. */
    return (size == 0) ||
           ((size == true_extent) && (true_lb == 0) && xm_runs_add(runs, 0, (size_t)size));
}

static bool take(const struct large *large, MPI_Datatype type, int depth, struct part *part);

/* `count` elements side by side, at an offset. */
static bool add_block(struct xm_runs *runs, const struct part *inner, MPI_Count count,
                      MPI_Aint offset, struct xm_runs *spare)
{
    if (count == 1) {
        return xm_runs_append(runs, &inner->runs, offset);
    }
    return (count >= 0) && xm_runs_copy(spare, &inner->runs) &&
           xm_runs_repeat(spare, (size_t)count, inner->extent) &&
           xm_runs_append(runs, spare, offset);
}

/* The blocks of an indexed type. lengths: of each, or the one for all; unit: of displacements. */
static bool add_blocks(struct xm_runs *runs, const struct part *inner, MPI_Count blocks,
                       const MPI_Count *lengths, bool one_length, const MPI_Count *displs,
                       MPI_Aint unit)
{
    struct xm_runs spare = {.kept = NULL};
    bool           good = true;

    for (MPI_Count i = 0; good && (i < blocks); i++) {
        good = add_block(runs, inner, lengths[one_length ? 0 : i], displs[i] * unit, &spare);
    }
    xm_runs_free(&spare);
    return good;
}

/* The fastest dimension first, which is the last one in the order of C. */
static bool add_subarray(struct xm_runs *runs, const struct part *inner, const struct contents *c)
{
    bool             large = (c->envelope.counts > 0);
    MPI_Count        dims = c->number[0];
    const MPI_Count *sizes = c->number + (large ? 2 : 1);
    const MPI_Count *subsizes = sizes + dims, *starts = subsizes + dims;
    bool             c_order = (c->number[large ? 1 : 1 + 3 * dims] == MPI_ORDER_C);
    MPI_Aint         stride = inner->extent, offset = 0;
    struct xm_runs   all = {.kept = NULL};
    bool             good = xm_runs_copy(&all, &inner->runs);

    for (MPI_Count i = 0; good && (i < dims); i++) {
        MPI_Count d = c_order ? dims - 1 - i : i;
        good = xm_runs_repeat(&all, (size_t)subsizes[d], stride);
        offset += starts[d] * stride;
        stride *= sizes[d];
    }
    good = good && xm_runs_append(runs, &all, offset);
    xm_runs_free(&all);
    return good;
}

/* Each block may have a type of its own; often the next has the same. */
static bool add_struct(const struct large *large, const struct contents *c, int depth,
                       struct xm_runs *runs)
{
    MPI_Count      blocks = c->number[0];
    struct part    inner = {.extent = 0};
    struct xm_runs spare = {.kept = NULL};
    MPI_Datatype   taken = XM_HANDLE(MPI_DATATYPE_NULL);
    bool           good = true;

    for (MPI_Count i = 0; good && (i < blocks); i++) {
        if (c->number[1 + i] == 0) {
            continue;
        }
        if (c->type[i] != taken) {
            xm_runs_free(&inner.runs);
            good = take(large, c->type[i], depth + 1, &inner);
            taken = c->type[i];
        }
        good = good && add_block(runs, &inner, c->number[1 + i], c->number[1 + blocks + i], &spare);
    }
    xm_runs_free(&spare);
    xm_runs_free(&inner.runs);
    return good;
}

/* All that have one inner type. */
static bool add_all(struct xm_runs *runs, struct part *inner, const struct contents *c)
{
    const MPI_Count *n = c->number;

    switch (c->envelope.combiner) {
    case MPI_COMBINER_DUP:
    case MPI_COMBINER_RESIZED:
        return xm_runs_append(runs, &inner->runs, 0);
    case MPI_COMBINER_CONTIGUOUS:
        return xm_runs_repeat(&inner->runs, (size_t)n[0], inner->extent) &&
               xm_runs_append(runs, &inner->runs, 0);
    case MPI_COMBINER_VECTOR:
    case MPI_COMBINER_HVECTOR:
        return xm_runs_repeat(&inner->runs, (size_t)n[1], inner->extent) &&
               xm_runs_repeat(
                   &inner->runs, (size_t)n[0],
                   n[2] * ((c->envelope.combiner == MPI_COMBINER_VECTOR) ? inner->extent : 1)) &&
               xm_runs_append(runs, &inner->runs, 0);
    case MPI_COMBINER_INDEXED:
        return add_blocks(runs, inner, n[0], n + 1, false, n + 1 + n[0], inner->extent);
    case MPI_COMBINER_HINDEXED:
        return add_blocks(runs, inner, n[0], n + 1, false, n + 1 + n[0], 1);
    case MPI_COMBINER_INDEXED_BLOCK:
        return add_blocks(runs, inner, n[0], n + 1, true, n + 2, inner->extent);
    case MPI_COMBINER_HINDEXED_BLOCK:
        return add_blocks(runs, inner, n[0], n + 1, true, n + 2, 1);
    case MPI_COMBINER_SUBARRAY:
        return add_subarray(runs, inner, c);
    default:
        return false;
    }
}

static bool take_derived(const struct large *large, MPI_Datatype type, int depth,
                         struct contents *c, struct xm_runs *runs)
{
    struct part inner = {.extent = 0};
    bool        good;

    if (!read_contents(large, type, c)) {
        return false;
    }
    if (c->envelope.combiner == MPI_COMBINER_STRUCT) {
        good = add_struct(large, c, depth, runs);
    } else {
        good = (c->envelope.types == 1) && take(large, c->type[0], depth + 1, &inner) &&
               add_all(runs, &inner, c);
    }
    xm_runs_free(&inner.runs);
    drop_contents(large, c);
    return good;
}

/* The part is the caller's to free, whatever comes back. */
static bool take(const struct large *large, MPI_Datatype type, int depth, struct part *part)
{
    struct contents c = {.number = NULL};
    MPI_Count       lb, extent;

    if ((depth > MOST_NESTED) || !read_envelope(large, type, &c.envelope) ||
        (xm_pmpi.Type_get_extent_x(type, &lb, &extent) != MPI_SUCCESS) ||
        (extent == MPI_UNDEFINED)) {
        return false;
    }
    part->extent = (MPI_Aint)extent;
    switch (c.envelope.combiner) {
    case MPI_COMBINER_NAMED:
    case MPI_COMBINER_F90_REAL:
    case MPI_COMBINER_F90_COMPLEX:
    case MPI_COMBINER_F90_INTEGER:
        return take_named(large, type, &part->runs);
    default:
        return take_derived(large, type, depth, &c, &part->runs);
    }
}

/*
 * MPI's own numbers tell whether the constructors were understood. Its bounds may be wider: some
 * MPIs count blocks without data.
 */
static bool agrees(MPI_Datatype type, const struct xm_flat *flat)
{
    MPI_Count size, true_lb, true_extent;

    return (xm_pmpi.Type_size_x(type, &size) == MPI_SUCCESS) &&
           (xm_pmpi.Type_get_true_extent_x(type, &true_lb, &true_extent) == MPI_SUCCESS) &&
           (size == (MPI_Count)flat->runs.size) &&
           ((size == 0) || ((true_lb <= flat->low) && (flat->high <= true_lb + true_extent)));
}

/* Of the stretches of a run those that begin within the head; packed, they follow each other. */
static void add_head(struct xm_flat *flat, const struct xm_run *run, int levels, ptrdiff_t offset,
                     size_t packed)
{
    if ((packed >= XM_HEAD_BYTES) || (flat->pieces == XM_HEAD_BYTES)) {
        return; /* no more pieces than bytes: they do not overlap when packed */
    }
    if (levels == 0) {
        size_t left = XM_HEAD_BYTES - packed;
        flat->head[flat->pieces++] =
            (struct xm_piece){offset, packed, (run->bytes < left) ? run->bytes : left};
        return;
    }
    const struct xm_level *l = &run->level[levels - 1];
    for (size_t i = 0; (i < l->count) && (packed + i * l->packed < XM_HEAD_BYTES); i++) {
        add_head(flat, run, levels - 1, offset + l->stride * (ptrdiff_t)i, packed + l->packed * i);
    }
}

static bool find_head(struct xm_flat *flat)
{
    flat->head = malloc(XM_HEAD_BYTES * sizeof(*flat->head));
    for (size_t i = 0; (flat->head != NULL) && (i < flat->runs.count); i++) {
        if (flat->runs.kept[i].packed >= XM_HEAD_BYTES) {
            continue;
        }
        struct xm_run run = xm_runs_at(&flat->runs, i);
        add_head(flat, &run, run.levels, run.offset, run.packed);
    }
    return flat->head != NULL;
}

static struct xm_flat *make(MPI_Datatype type)
{
    struct large    large = find_large();
    struct part     part = {.extent = 0};
    struct xm_flat *flat = calloc(1, sizeof(*flat));

    if (flat == NULL) {
        return NULL;
    }
    flat->users = 1;
    large.flat = flat;
    bool good = take(&large, type, 0, &part);
    flat->runs = part.runs;
    if (good) {
        xm_runs_compact(&flat->runs);
        xm_runs_bounds(&flat->runs, &flat->low, &flat->high);
        flat->usable = agrees(type, flat);
    }
    flat->usable = flat->usable && find_head(flat);
    if (flat->usable) {
        flat->disjoint = xm_runs_disjoint(&flat->runs);
        flat->stretches = xm_runs_stretches(&flat->runs);
    } else {
        xm_runs_free(&flat->runs);
    }
    return flat;
}

/* ---- kept as an attribute ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int             keyval = MPI_KEYVAL_INVALID; /* atomic */
static bool            closed;                      /* atomic */

const struct xm_flat *xm_flat_hold(const struct xm_flat *flat)
{
    if (flat != NULL) {
        __atomic_add_fetch(&((struct xm_flat *)(uintptr_t)flat)->users, 1, __ATOMIC_RELAXED);
    }
    return flat;
}

void xm_flat_put(const struct xm_flat *flat)
{
    struct xm_flat *mine = (struct xm_flat *)(uintptr_t)flat;

    if ((mine != NULL) && (__atomic_sub_fetch(&mine->users, 1, __ATOMIC_ACQ_REL) == 0)) {
        xm_lists_free(mine->lists);
        xm_runs_free(&mine->runs);
        free(mine->head);
        free(mine);
    }
}

/* MPI calls this where the datatype goes. It takes no lock. */
static int on_type_free(MPI_Datatype type, int key, void *value, void *extra)
{
    (void)type;
    (void)key;
    (void)extra;
    xm_flat_put(value);
    return MPI_SUCCESS;
}

/* Not MPI_TYPE_NULL_COPY_FN: that is a function of the MPI library, which is not linked. */
static int on_type_copy(MPI_Datatype type, int key, void *extra, void *in, void *out, int *flag)
{
    (void)type;
    (void)key;
    (void)extra;
    (void)in;
    (void)out;
    *flag = 0;
    return MPI_SUCCESS;
}

static int keyval_get(void)
{
    int made = __atomic_load_n(&keyval, __ATOMIC_ACQUIRE);

    if ((made != MPI_KEYVAL_INVALID) || __atomic_load_n(&closed, __ATOMIC_ACQUIRE)) {
        return made;
    }
    pthread_mutex_lock(&lock);
    made = keyval;
    if (made == MPI_KEYVAL_INVALID) {
        if (xm_pmpi.Type_create_keyval(on_type_copy, on_type_free, &made, NULL) != MPI_SUCCESS) {
            made = MPI_KEYVAL_INVALID;
        }
        __atomic_store_n(&keyval, made, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&lock);
    return made;
}

static const struct xm_flat *usable(struct xm_flat *flat)
{
    if ((flat == NULL) || flat->usable) {
        return flat;
    }
    xm_flat_put(flat);
    return NULL;
}

/* Keep it with its type, unless another thread has meanwhile kept its own: then that one is given
 * back. What is kept is never replaced, as that would free it while others are about to hold it. */
static struct xm_flat *keep(MPI_Datatype type, int key, struct xm_flat *mine)
{
    static pthread_mutex_t keeping = PTHREAD_MUTEX_INITIALIZER;
    struct xm_flat        *kept = mine;
    void                  *value = NULL;
    int                    found = 0;

    pthread_mutex_lock(&keeping);
    if ((xm_pmpi.Type_get_attr(type, key, &value, &found) == MPI_SUCCESS) && found) {
        kept = (struct xm_flat *)(uintptr_t)xm_flat_hold(value);
    } else if (xm_pmpi.Type_set_attr(type, key, mine) == MPI_SUCCESS) {
        xm_flat_hold(mine);
    }
    pthread_mutex_unlock(&keeping);
    if (kept != mine) {
        xm_flat_put(mine);
    }
    return kept;
}

const struct xm_flat *xm_flat_get(MPI_Datatype type)
{
    int             key = keyval_get(), found = 0;
    void           *value = NULL;
    enum xm_nature  nature;
    MPI_Count       size;
    struct xm_flat *flat;

    /* A predefined type is quickly done, and keeps nothing of ours. */
    if ((key == MPI_KEYVAL_INVALID) || xm_type_named(type, &nature, &size)) {
        return usable(make(type));
    }
    if ((xm_pmpi.Type_get_attr(type, key, &value, &found) == MPI_SUCCESS) && found) {
        return usable((struct xm_flat *)(uintptr_t)xm_flat_hold(value));
    }
    flat = make(type);
    return usable((flat != NULL) ? keep(type, key, flat) : NULL);
}

void xm_flat_begin(void)
{
    __atomic_store_n(&closed, false, __ATOMIC_RELEASE);
}

void xm_flat_finalize(void)
{
    __atomic_store_n(&closed, true, __ATOMIC_RELEASE);
    int key = __atomic_exchange_n(&keyval, MPI_KEYVAL_INVALID, __ATOMIC_ACQ_REL);
    if (key != MPI_KEYVAL_INVALID) {
        xm_pmpi.Type_free_keyval(&key);
    }
}
