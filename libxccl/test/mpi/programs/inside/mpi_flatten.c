/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datatypes taken apart (src/data/flatten.c, which is compiled into this program), against what
 * MPI_Pack and MPI_Unpack do with them: random types within types, and some known ones.
 * Usage: mpi_flatten none SEED TYPES
 */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "data/flatten.h"
#include "data/lists.h"
#include "data/types.h"
#include "flatten_types.h"
#include "support.h"

enum { MOST_BYTES = 1 << 18 };

/* No device has any. */
void xm_lists_free(struct xm_list *lists)
{
    mt_expect(lists == NULL, "there is a list of a type");
}

/* A buffer that a type touches, and the type in packed form. */
struct sample {
    MPI_Datatype          type;
    const struct xm_flat *flat;
    const char           *what;
    int                   count;
    MPI_Aint              extent;
    int                   size;      /* packed, of all elements */
    ptrdiff_t             low, high; /* of all elements */
};

/* False if it is too long to be tried. */
static bool measure(struct sample *s)
{
    MPI_Count size, lb, extent, true_lb, true_extent;

    MPI_Type_size_x(s->type, &size);
    MPI_Type_get_extent_x(s->type, &lb, &extent);
    MPI_Type_get_true_extent_x(s->type, &true_lb, &true_extent);
    MPI_Count way = extent * (s->count - 1);
    s->extent = (MPI_Aint)extent;
    s->size = (int)(size * s->count);
    if (size == 0) { /* what it touches is anyone's guess */
        return true;
    }
    s->low = (ptrdiff_t)(true_lb + ((way < 0) ? way : 0));
    s->high = (ptrdiff_t)(true_lb + true_extent + ((way > 0) ? way : 0));
    return (size * s->count <= MOST_BYTES) && (s->high - s->low <= MOST_BYTES);
}

/* All stretches, the last one first: the order must not matter where it is said not to. */
static void move(const struct sample *s, char *base, char *packed, bool pack)
{
    ptrdiff_t offset;
    size_t    at;

    for (size_t i = s->flat->runs.count; i-- > 0;) {
        struct xm_run run = xm_runs_at(&s->flat->runs, i);
        mt_expect(xm_run_repeat(&run, (size_t)s->count, s->extent, s->flat->runs.size, XM_LEVELS),
                  "%s: no level is left for the count", s->what);
        for (size_t n = xm_run_stretches(&run); n-- > 0;) {
            xm_run_at(&run, n, &offset, &at);
            char *place =
                (char *)((uintptr_t)base + (uintptr_t)offset); /* base may be MPI_BOTTOM */
            memcpy(pack ? packed + at : place, pack ? place : packed + at, run.bytes);
        }
    }
}

static void check_pack(const struct sample *s)
{
    size_t bytes = (size_t)(s->high - s->low);
    char  *memory = mt_noise(bytes, 1), *want = mt_noise((size_t)s->size, 2);
    char  *got = mt_noise((size_t)s->size, 3);
    int    position = 0;

    MPI_Pack(memory - s->low, s->count, s->type, want, s->size, &position, MPI_COMM_SELF);
    move(s, memory - s->low, got, true);
    mt_expect(memcmp(got, want, (size_t)s->size) == 0, "%s: packed otherwise than by MPI_Pack",
              s->what);
    free(memory);
    free(want);
    free(got);
}

static void check_unpack(const struct sample *s)
{
    size_t bytes = (size_t)(s->high - s->low);
    char  *want = mt_noise(bytes, 1), *got = mt_noise(bytes, 1),
         *packed = mt_noise((size_t)s->size, 4);
    int position = 0;

    MPI_Unpack(packed, s->size, &position, want - s->low, s->count, s->type, MPI_COMM_SELF);
    move(s, got - s->low, packed, false);
    mt_expect(memcmp(got, want, bytes) == 0, "%s: unpacked otherwise than by MPI_Unpack", s->what);
    free(want);
    free(got);
    free(packed);
}

/* Does each element lie apart from the others? */
static bool elements_apart(const struct sample *s)
{
    ptrdiff_t extent = (s->extent < 0) ? -s->extent : s->extent;

    return (s->count == 1) || (extent >= s->flat->high - s->flat->low);
}

/* Bytes of data that are there twice, found the slow way. */
static bool overlaps(const struct sample *s)
{
    char     *seen = calloc((size_t)(s->flat->high - s->flat->low) + 1, 1);
    bool      twice = false;
    ptrdiff_t offset;
    size_t    at;

    for (size_t i = 0; i < s->flat->runs.count; i++) {
        struct xm_run run = xm_runs_at(&s->flat->runs, i);
        for (size_t n = 0; n < xm_run_stretches(&run); n++) {
            xm_run_at(&run, n, &offset, &at);
            for (size_t b = 0; b < run.bytes; b++) {
                char *byte = &seen[offset - s->flat->low + (ptrdiff_t)b];
                twice = twice || (*byte != 0);
                *byte = 1;
            }
        }
    }
    free(seen);
    return twice;
}

static void check_type(MPI_Datatype type, int count, const char *what)
{
    struct sample s = {.type = type, .what = what, .count = count};

    if (!measure(&s)) {
        return;
    }
    s.flat = xm_flat_get(type);
    mt_expect(s.flat != NULL, "%s: was not taken apart", what);
    if (s.flat == NULL) {
        return;
    }
    mt_expect(s.flat->disjoint == !overlaps(&s), "%s: overlapping is taken for the other", what);
    check_pack(&s);
    if (s.flat->disjoint && elements_apart(&s)) {
        check_unpack(&s);
    }
    xm_flat_put(s.flat);
}

static void check_random(MPI_Datatype type, int i, uint64_t salt, const char *what)
{
    (void)salt;
    check_type(type, 1 + i % 3, what);
}

/* How many runs a type comes to, and how many levels the first has. */
static void known(const char *what, MPI_Datatype type, size_t runs, int levels, bool disjoint)
{
    const struct xm_flat *flat;

    MPI_Type_commit(&type);
    check_type(type, 2, what);
    flat = xm_flat_get(type);
    if (flat != NULL) {
        mt_expect(flat->runs.count == runs, "%s: %zu runs", what, flat->runs.count);
        int found = (flat->runs.count > 0) ? xm_runs_at(&flat->runs, 0).levels : 0;
        mt_expect(found == levels, "%s: %d levels", what, found);
        mt_expect(flat->disjoint == disjoint, "%s: disjoint is %d", what, flat->disjoint);
    }
    xm_flat_put(flat);
    MPI_Type_free(&type);
}

static void known_types(void)
{
    int          sizes[3] = {6, 7, 8}, subsizes[3] = {3, 4, 1}, starts[3] = {1, 1, 2};
    int          lengths[4] = {1, 1, 1, 1}, apart[4] = {9, 6, 3, 0}, twice[4] = {0, 4, 8, 4};
    MPI_Datatype type, inner;

    MPI_Type_vector(100, 2, 10, MPI_DOUBLE, &type);
    known("columns", type, 1, 1, true);
    MPI_Type_vector(100, 2, 2, MPI_DOUBLE, &type);
    known("a vector without holes", type, 1, 0, true);
    MPI_Type_vector(10, 3, 2, MPI_INT, &type);
    known("a vector that overlaps itself", type, 1, 1, false);
    MPI_Type_vector(4, 1, 10, MPI_INT, &inner);
    MPI_Type_create_resized(inner, 0, sizeof(int), &type);
    MPI_Type_free(&inner);
    MPI_Type_contiguous(10, type, &inner);
    MPI_Type_free(&type);
    known("columns one after the other", inner, 1, 2, true);
    MPI_Type_create_subarray(3, sizes, subsizes, starts, MPI_ORDER_C, MPI_DOUBLE, &type);
    known("a face of a cube", type, 1, 2, true);
    MPI_Type_create_indexed_block(4, 1, apart, MPI_INT, &type);
    known("backwards", type, 1, 1, true);
    MPI_Type_indexed(4, lengths, twice, MPI_INT, &type);
    known("a byte twice", type, 2, 1, false);
    MPI_Type_contiguous(5, MPI_DOUBLE_INT, &type);
    known("pairs with a hole at the end", type, 1, 1, true);
    MPI_Type_contiguous(5, MPI_SHORT_INT, &type);
    known("pairs with a hole inside", type, 2, 1, true);
    MPI_Type_contiguous(0, MPI_INT, &type);
    known("nothing", type, 0, 0, true);
}

/* Many stretches: those at one distance are one run, and the others have no levels. */
static void many(void)
{
    enum { BLOCKS = 200000, ROWS = 100 };
    static int   places[BLOCKS], rows[ROWS];
    MPI_Datatype type, inner;

    for (int i = 0; i < BLOCKS; i++) {
        places[i] = 3 * i + ((i % 3 == 0) ? 1 : 0);
    }
    MPI_Type_create_indexed_block(BLOCKS, 1, places, MPI_INT, &type);
    MPI_Type_commit(&type);
    const struct xm_flat *flat = xm_flat_get(type);
    mt_expect((flat != NULL) && (flat->stretches == BLOCKS) && flat->disjoint,
              "many places: %zu stretches", (flat == NULL) ? 0 : flat->stretches);
    mt_expect((flat != NULL) && (flat->runs.count > XM_MAX_RUNS / 64), "many places: %zu runs",
              (flat == NULL) ? 0 : flat->runs.count);
    xm_flat_put(flat);
    MPI_Type_free(&type);

    for (int i = 0; i < BLOCKS; i++) {
        places[i] = 3 * i;
    }
    MPI_Type_create_indexed_block(2000, 1, places, MPI_INT, &type);
    known("many at one distance", type, 1, 1, true);
    for (int i = 0; i < ROWS; i++) {
        rows[i] = 50 * i;
    }
    MPI_Type_create_indexed_block(ROWS, 1, rows, MPI_INT, &inner);
    MPI_Type_create_resized(inner, 0, 3 * sizeof(int), &type);
    MPI_Type_free(&inner);
    MPI_Type_contiguous(10, type, &inner);
    MPI_Type_free(&type);
    known("many rows, of equal stretches", inner, 1, 2, true);
}

/* Addresses instead of displacements: the buffer is MPI_BOTTOM. */
static void absolute(void)
{
    static int            a[2] = {1, 2}, b[3] = {3, 4, 5};
    int                   lengths[2] = {2, 3}, packed[5];
    MPI_Aint              places[2];
    MPI_Datatype          type;
    const struct xm_flat *flat;

    MPI_Get_address(a, &places[0]);
    MPI_Get_address(b, &places[1]);
    MPI_Type_create_hindexed(2, lengths, places, MPI_INT, &type);
    MPI_Type_commit(&type);
    flat = xm_flat_get(type);
    mt_expect(flat != NULL, "absolute addresses: was not taken apart");
    if (flat != NULL) {
        struct sample s = {.type = type, .flat = flat, .what = "absolute addresses", .count = 1};
        move(&s, NULL, (char *)packed, true);
        for (int i = 0; i < 5; i++) {
            mt_expect(packed[i] == i + 1, "absolute addresses: element %d is %d", i, packed[i]);
        }
    }
    xm_flat_put(flat);
    MPI_Type_free(&type);
}

/* Kept with the type, and no longer: handles are used again. */
static void caching(void)
{
    MPI_Datatype          type, other;
    const struct xm_flat *first, *second, *copy;

    MPI_Type_vector(5, 1, 3, MPI_INT, &type);
    MPI_Type_commit(&type);
    first = xm_flat_get(type);
    second = xm_flat_get(type);
    mt_expect((first != NULL) && (first == second), "a type was taken apart twice");
    mt_expect((first != NULL) && (first->users == 3), "%d users",
              (first == NULL) ? 0 : first->users);
    MPI_Type_dup(type, &other);
    copy = xm_flat_get(other);
    mt_expect((copy != NULL) && (copy != first), "a duplicate has its origin's");
    xm_flat_put(copy);
    MPI_Type_free(&other);
    xm_flat_put(second);
    MPI_Type_free(&type);
    mt_expect((first != NULL) && (first->users == 1), "what a freed type kept is still kept");
    for (int i = 2; i < 50; i++) {
        MPI_Type_vector(i, 1, 3, MPI_INT, &type);
        second = xm_flat_get(type);
        mt_expect((second != NULL) && (second->runs.size == (size_t)i * sizeof(int)),
                  "a new type has what a freed one had");
        xm_flat_put(second);
        MPI_Type_free(&type);
    }
    xm_flat_put(first);
    MPI_Type_vector(7, 1, 3, MPI_INT, &type); /* left to MPI_Finalize, with its attribute */
    xm_flat_put(xm_flat_get(type));
    xm_flat_finalize();
    first = xm_flat_get(type);
    mt_expect((first != NULL) && (first->users == 1), "kept although MPI is being finalised");
    xm_flat_put(first);
}

/* Several threads that use a type for the first time: what one has is not taken from it. */
struct first_use {
    MPI_Datatype          type;
    pthread_barrier_t    *together;
    const struct xm_flat *got;
};

static void *use_first(void *argument)
{
    struct first_use *use = argument;

    pthread_barrier_wait(use->together);
    use->got = xm_flat_get(use->type);
    return NULL;
}

static void first_uses(void)
{
    enum { THREADS = 2, TYPES = 100, BLOCKS = 2000 };
    static int        apart[BLOCKS];
    pthread_barrier_t together;
    int               level, twice = 0;

    MPI_Query_thread(&level);
    if (level < MPI_THREAD_MULTIPLE) {
        return;
    }
    pthread_barrier_init(&together, NULL, THREADS);
    for (int i = 0; i < BLOCKS; i++) {
        apart[i] = i * 3 + i * i % 2;
    }
    for (int i = 0; i < TYPES; i++) {
        struct first_use use[THREADS];
        MPI_Type_create_indexed_block(BLOCKS, 1, apart, MPI_INT, &use[0].type);
        use[0].together = &together;
        use[1] = use[0];
        mt_in_threads(THREADS, use_first, use, sizeof(use[0]));
        twice += (use[0].got != use[1].got);
        MPI_Type_free(&use[0].type);
        mt_expect((use[0].got != NULL) && (use[1].got != NULL), "a thread got nothing");
        xm_flat_put(use[0].got);
        xm_flat_put(use[1].got);
    }
    mt_expect(twice == 0, "of %d types two threads have different ones kept", twice);
    pthread_barrier_destroy(&together);
}

int main(int argc, char **argv)
{
    ft_begin(argc, argv);
    known_types();
    many();
    absolute();
    ft_check_random(argv, check_random);
    first_uses();
    caching();
    mt_summary();
    MPI_Finalize();
    return mt_status();
}
