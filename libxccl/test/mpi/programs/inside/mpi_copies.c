/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packing and staging of device buffers (src/data/copy.c, which is compiled into this program) with
 * a device that only counts what it is asked for: are the bytes those that MPI_Pack and MPI_Unpack
 * move, is no other byte written, and are the copies few? By the runtime's copies alone, and with
 * the kernels, which are compiled into this program too.
 * Usage: mpi_copies none SEED TYPES
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "comms/wait.h"
#include "data/copy.h"
#include "data/events.h"
#include "data/flatten.h"
#include "data/gdrcopy.h"
#include "data/kernels.h"
#include "data/lists.h"
#include "flatten_types.h"
#include "support.h"

#define XK_SIMULATED
#include "kernels/local.cu"

enum { MOST_BYTES = 1 << 18, DEVICE = 3 };

static int  copies, rows_copies, launches, listed, quick, moved;
static bool with_kernels, pending; /* no event has come yet */

/* ---- a device that is host memory ---- */

static xcclResult_t copy(void *dst, const void *src, size_t bytes, xcclStream_t stream)
{
    (void)stream;
    copies++;
    memcpy(dst, src, bytes);
    return xcclSuccess;
}

static xcclResult_t copy_2d(void *dst, size_t dst_pitch, const void *src, size_t src_pitch,
                            size_t width, size_t height, xcclStream_t stream)
{
    (void)stream;
    rows_copies++;
    mt_expect((dst_pitch >= width) && (src_pitch >= width), "rows of %zu, pitches %zu and %zu",
              width, dst_pitch, src_pitch);
    for (size_t i = 0; i < height; i++) {
        memcpy((char *)dst + i * dst_pitch, (const char *)src + i * src_pitch, width);
    }
    return xcclSuccess;
}

static bool reachable(const void *ptr)
{
    (void)ptr;
    return true;
}

static xcclResult_t record(void *event, xcclStream_t stream)
{
    (void)event;
    (void)stream;
    return xcclSuccess;
}

static xcclResult_t query(void *event)
{
    (void)event;
    return pending ? xcclInProgress : xcclSuccess;
}

static const struct xc_device_ops device = {.name = "counting",
                                            .copy_async = copy,
                                            .copy_2d_async = copy_2d,
                                            .event_record = record,
                                            .event_query = query,
                                            .mem_reachable = reachable};

xcclResult_t xm_event_take(const struct xc_device_ops *dev, int number, void **event_p)
{
    static int some;

    (void)dev, (void)number;
    *event_p = &some;
    return xcclSuccess;
}

void xm_event_give(const struct xc_device_ops *dev, int number, void *event)
{
    (void)dev, (void)number, (void)event;
}

void xs_kernel_misaligned(uint64_t address, uint64_t bytes)
{
    fprintf(stderr, "%#llx is no address of %llu bytes\n", (unsigned long long)address,
            (unsigned long long)bytes);
    abort();
}

uint64_t xs_kernel_place(uint64_t address, uint64_t bytes)
{
    (void)bytes;
    return address;
}

/* These two are of kernels that are not run here. */
uint64_t xs_kernel_now_ns(void)
{
    return 0;
}

void xs_kernel_pause(void)
{
}

bool xm_gdrcopy_out(const struct xc_device_ops *dev, int number, char *host, char *memory,
                    size_t bytes)
{
    (void)dev, (void)number, (void)host, (void)memory, (void)bytes;
    return false;
}

bool xm_gdrcopy_in(const struct xc_device_ops *dev, int number, char *memory, char *host,
                   size_t bytes)
{
    (void)dev, (void)number, (void)host, (void)memory, (void)bytes;
    return false;
}

struct xm_kernels *xm_kernels_of(const struct xc_device_ops *dev, int number)
{
    static int some;

    mt_expect((dev == &device) && (number == DEVICE), "kernels of device %d", number);
    return with_kernels ? (struct xm_kernels *)(void *)&some : NULL;
}

bool xm_quick_copy(struct xm_kernels *k, enum xm_quick way, void *to, const void *from,
                   size_t bytes)
{
    mt_expect((k != NULL) && (way != XM_QUICK_FETCH) && (bytes <= XM_QUICK_BYTES),
              "a quick copy of %zu bytes", bytes);
    quick++;
    memcpy(to, from, bytes);
    return true;
}

/* Copies that begin together are not tried here. */
bool xm_kernels_linger(struct xm_kernels *k)
{
    (void)k;
    return false;
}

void xm_kernel_copies_wait(void)
{
}

bool xm_kernel_copy_start(struct xm_kernels *k, void *to, const void *from, size_t bytes,
                          struct xm_kernel_copy *copy_)
{
    (void)k, (void)to, (void)from, (void)bytes, (void)copy_;
    return false;
}

/* Fewer blocks than runs, and several for each of them. */
xcclResult_t xm_kernel_pack(struct xm_kernels *k, const struct xk_pack *what, xcclStream_t stream)
{
    (void)k;
    (void)stream;
    launches++;
    gridDim = (struct xk_index){3, 1 + what->count / 2};
    for (unsigned y = 0; y < gridDim.y; y++) {
        for (unsigned x = 0; x < gridDim.x; x++) {
            blockIdx = (struct xk_index){x, y};
            xk_pack(*what);
        }
    }
    return xcclSuccess;
}

xcclResult_t xm_kernel_pack_listed(struct xm_kernels *k, const struct xk_listed *what,
                                   xcclStream_t stream)
{
    (void)k;
    (void)stream;
    launches++;
    listed++;
    gridDim = (struct xk_index){3, 1};
    for (unsigned x = 0; x < gridDim.x; x++) {
        blockIdx = (struct xk_index){x, 0};
        xk_pack_listed(*what);
    }
    return xcclSuccess;
}

/* As the kernel that lingers does when it is told to. */
bool xm_quick_pack(struct xm_kernels *k, const struct xk_pack *what, bool elsewhere)
{
    struct xk_told t = {.values = {[XK_BYTES] = what->count,
                                   [XK_HOW] = xk_how(XK_COPIES, 0, 1, elsewhere,
                                                     what->out ? XK_BY_RUNS_BACK : XK_BY_RUNS)}};
    const uint64_t addresses[] = {what->memory, what->packed, (uint64_t)(uintptr_t)what->few};
    const int      places[] = {XK_IN_LOW, XK_OUT_LOW, XK_RANKS_LOW};

    mt_expect((k != NULL) && (what->runs == NULL), "a quick pack of %u runs", what->count);
    for (int i = 0; i < 3; i++) {
        t.values[places[i]] = (uint32_t)addresses[i];
        t.values[places[i] + 1] = (uint32_t)(addresses[i] >> 32);
    }
    quick++;
    carry_out_copy(&t, 1, NULL);
    return true;
}

bool xm_quick_pack_listed(struct xm_kernels *k, const struct xk_listed *what, bool elsewhere)
{
    struct xk_told t = {.values = {[XK_HOW] = xk_how(XK_COPIES, 0, 2, elsewhere, XK_BY_LIST)}};
    uint64_t       list = (uint64_t)(uintptr_t)what;

    mt_expect(k != NULL, "a quick pack by a list without kernels");
    t.values[XK_RANKS_LOW] = (uint32_t)list;
    t.values[XK_RANKS_HIGH] = (uint32_t)(list >> 32);
    quick++;
    carry_out_copy(&t, 1, NULL);
    return true;
}

xcclResult_t xm_stream_wait(const struct xc_device_ops *dev, xcclStream_t stream)
{
    (void)dev;
    (void)stream;
    return xcclSuccess;
}

void xm_scratch_begin(struct xm_scratch *scratch, const struct xc_device_ops *dev, int number)
{
    *scratch = (struct xm_scratch){.dev = dev, .device = number};
}

xcclResult_t xm_scratch_take(struct xm_scratch *scratch, enum xm_pool pool, size_t bytes,
                             void **ptr_p)
{
    (void)pool;
    *ptr_p = scratch->blocks[scratch->count++] = malloc(bytes);
    return xcclSuccess;
}

void xm_scratch_trim(struct xm_scratch *scratch, int count)
{
    while (scratch->count > count) {
        free(scratch->blocks[--scratch->count]);
    }
}

void xm_scratch_end(struct xm_scratch *scratch)
{
    xm_scratch_trim(scratch, 0);
}

/* ---- one buffer ---- */

struct sample {
    const char       *what;
    struct xm_buffer  buffer;
    size_t            span;
    struct xm_call    call;
    struct xm_scratch scratch;
    struct xm_copier  copier;
    bool              ordered; /* no byte is there twice */
};

/* False if it is too long to be tried. */
static bool begin(struct sample *s, MPI_Datatype type, int count, bool apart)
{
    memset(&s->buffer, 0, sizeof(s->buffer));
    if (!xm_buffer_single(&s->buffer, NULL, count, type) || !s->buffer.used ||
        (s->buffer.bytes > MOST_BYTES) || (s->buffer.high - s->buffer.low > MOST_BYTES)) {
        return false;
    }
    s->buffer.in = s->buffer.out = true;
    s->buffer.mem = (struct xc_mem_info){.kind = XC_MEM_DEVICE, .device = DEVICE};
    s->buffer.layout.flat = apart ? xm_flat_get(type) : NULL;
    s->span = (size_t)(s->buffer.high - s->buffer.low);
    s->call = (struct xm_call){.comm = MPI_COMM_SELF};
    xm_scratch_begin(&s->scratch, &device, DEVICE);
    s->copier = (struct xm_copier){&s->call, &device, NULL, &s->scratch, 0};
    s->ordered = xm_ordered(&s->call, &s->buffer);
    return true;
}

static void finish(struct sample *s)
{
    xm_buffer_free(&s->buffer);
    xm_scratch_end(&s->scratch);
}

/* What MPI packs from memory, which is the buffer's span. */
static char *packed_by_mpi(const struct sample *s, char *memory)
{
    char *packed = malloc((size_t)s->buffer.bytes);
    int   position = 0;

    MPI_Pack(memory - s->buffer.low, (int)s->buffer.count, s->buffer.type, packed,
             (int)s->buffer.bytes, &position, MPI_COMM_SELF);
    return packed;
}

static void unpacked_by_mpi(const struct sample *s, char *memory, char *packed)
{
    int position = 0;

    MPI_Unpack(packed, (int)s->buffer.bytes, &position, memory - s->buffer.low,
               (int)s->buffer.count, s->buffer.type, MPI_COMM_SELF);
}

static void check_pack(struct sample *s)
{
    size_t bytes = (size_t)s->buffer.bytes;
    char  *memory = mt_noise(s->span, 1), *want = packed_by_mpi(s, memory),
         *got = mt_noise(bytes, 2);

    s->buffer.buf = memory - s->buffer.low;
    xcclResult_t res = xm_pack(&s->copier, &s->buffer, got);
    mt_expect(res == xcclSuccess, "%s: packing fails", s->what);
    mt_expect(memcmp(got, want, bytes) == 0, "%s: packed wrongly", s->what);
    free(memory);
    free(want);
    free(got);
}

static void check_unpack(struct sample *s)
{
    char *packed = mt_noise((size_t)s->buffer.bytes, 3);
    char *want = mt_noise(s->span, 1), *got = mt_noise(s->span, 1);

    unpacked_by_mpi(s, want, packed);
    s->buffer.buf = got - s->buffer.low;
    xcclResult_t res = xm_unpack(&s->copier, &s->buffer, packed);
    mt_expect(res == xcclSuccess, "%s: unpacking fails", s->what);
    mt_expect(memcmp(got, want, s->span) == 0, "%s: unpacked wrongly", s->what);
    free(packed);
    free(want);
    free(got);
}

/* The data must come, the rest may. */
static void check_in(struct sample *s)
{
    char *memory = mt_noise(s->span, 1), *span = mt_noise(s->span, 4);

    s->buffer.buf = memory - s->buffer.low;
    xcclResult_t res = xm_stage_in(&s->copier, &s->buffer, span);
    char        *want = packed_by_mpi(s, memory), *got = packed_by_mpi(s, span);
    mt_expect(res == xcclSuccess, "%s: staging fails", s->what);
    mt_expect(memcmp(got, want, (size_t)s->buffer.bytes) == 0, "%s: staged in wrongly", s->what);
    free(memory);
    free(span);
    free(want);
    free(got);
}

/* Only the first bytes of data come out; of a type with bytes twice all, or whole elements. */
static void check_out(struct sample *s, MPI_Count bytes)
{
    char *memory = mt_noise(s->span, 1), *span = mt_noise(s->span, 4), *want = mt_noise(s->span, 1);
    char *old = packed_by_mpi(s, memory), *fresh = packed_by_mpi(s, span);

    memcpy(old, fresh, (size_t)bytes);
    unpacked_by_mpi(s, want, old);
    s->buffer.buf = memory - s->buffer.low;
    xcclResult_t res = xm_stage_out_bytes(&s->copier, &s->buffer, span, bytes);
    mt_expect(res == xcclSuccess, "%s: staging fails", s->what);
    mt_expect(memcmp(memory, want, s->span) == 0, "%s: %lld of %lld bytes staged out wrongly",
              s->what, (long long)bytes, (long long)s->buffer.bytes);
    free(memory);
    free(span);
    free(want);
    free(old);
    free(fresh);
}

/* By the kernel that lingers, which does not have all of them. */
static void check_quickly(struct sample *s, bool ordered)
{
    size_t         bytes = (size_t)s->buffer.bytes;
    char          *memory = mt_noise(s->span, 1), *packed = packed_by_mpi(s, memory);
    char          *got = mt_noise(bytes, 2), *fresh = mt_noise(bytes, 3), *want;
    struct xm_lane lane = {&s->copier, &s->buffer, got, false, false};

    s->buffer.buf = memory - s->buffer.low;
    if (xm_move_quickly(&lane, true)) {
        mt_expect(memcmp(got, packed, bytes) == 0, "%s: packed quickly and wrongly", s->what);
        moved++;
    }
    want = mt_noise(s->span, 1);
    unpacked_by_mpi(s, want, fresh);
    lane.other = fresh;
    lane.out = true;
    if (ordered && xm_move_quickly(&lane, false)) {
        mt_expect(memcmp(memory, want, s->span) == 0, "%s: unpacked quickly and wrongly", s->what);
        moved++;
    }
    free(memory);
    free(packed);
    free(got);
    free(fresh);
    free(want);
}

static void check_type(MPI_Datatype type, int count, const char *what, uint64_t salt, bool apart)
{
    struct sample s = {.what = what};

    if (begin(&s, type, count, true)) {
        bool ordered = s.ordered;
        finish(&s);
        begin(&s, type, count, apart);
        check_pack(&s);
        check_unpack(&s);
        check_in(&s);
        check_out(&s, s.buffer.bytes);
        check_quickly(&s, ordered && apart);
        if (ordered) {
            check_out(&s, (MPI_Count)(mt_next(&salt) % (uint64_t)(s.buffer.bytes + 1)));
        }
    }
    finish(&s);
}

static void check_random(MPI_Datatype type, int i, uint64_t salt, const char *what)
{
    check_type(type, 1 + i % 5, what, salt, i % 6 != 0);
}

/* ---- how many calls it takes ---- */

typedef void check_fn(struct sample *s);

static void check_out_all(struct sample *s)
{
    check_out(s, s->buffer.bytes);
}

static void expect_calls(struct sample *s, const char *how, check_fn *check, int single, int rows)
{
    copies = rows_copies = launches = 0;
    check(s);
    if (with_kernels) {
        mt_expect((copies == 0) && (rows_copies == 0) && (launches == 1),
                  "%s %s: %d copies, %d of rows and %d kernels, not one kernel", how, s->what,
                  copies, rows_copies, launches);
        return;
    }
    mt_expect((copies == single) && (rows_copies == rows),
              "%s %s: %d copies and %d of rows, not %d and %d", how, s->what, copies, rows_copies,
              single, rows);
}

/* rows: to pack it on the device, or 0 if it goes over the host. */
static void known(const char *what, MPI_Datatype type, int count, int single, int rows)
{
    struct sample s = {.what = what};

    MPI_Type_commit(&type);
    mt_expect(begin(&s, type, count, true), "%s: is no good sample", what);
    expect_calls(&s, "packing", check_pack, single, rows);
    expect_calls(&s, "unpacking", check_unpack, single, rows);
    expect_calls(&s, "staging out", check_out_all, single, rows);
    moved = 0;
    check_quickly(&s, true);
    mt_expect(moved == (with_kernels ? 2 : 0), "%s: moved quickly %d times", what, moved);
    finish(&s);
    MPI_Type_free(&type);
}

static void known_types(void)
{
    int          sizes[3] = {16, 16, 16}, subsizes[3] = {5, 16, 1}, starts[3] = {2, 0, 3};
    int          inside[3] = {5, 6, 1};
    int          lengths[2] = {1, 2}, swapped[2] = {2, 0};
    MPI_Datatype type, inner;

    MPI_Type_vector(1024, 1, 16, MPI_DOUBLE, &type);
    known("a column", type, 1, 0, 1);
    MPI_Type_vector(1024, 1, 16, MPI_DOUBLE, &inner);
    MPI_Type_create_resized(inner, 0, sizeof(double), &type);
    MPI_Type_free(&inner);
    known("four columns", type, 4, 0, 4);
    MPI_Type_create_subarray(3, sizes, subsizes, starts, MPI_ORDER_C, MPI_DOUBLE, &type);
    known("a face over the full width", type, 1, 0, 1);
    MPI_Type_create_subarray(3, sizes, inside, starts, MPI_ORDER_C, MPI_DOUBLE, &type);
    known("a face inside", type, 1, 0, 5);
    MPI_Type_indexed(2, lengths, swapped, MPI_INT, &type);
    MPI_Type_commit(&type);
    check_type(type, 1, "as dense as contiguous, but swapped", 1, true);
    MPI_Type_free(&type);
    MPI_Type_dup(MPI_DOUBLE_INT, &type);
    known("pairs", type, 100, 0, 1);
}

/* bytes: to be staged out. */
static void quickly(const char *what, MPI_Datatype type, int count, MPI_Count bytes, bool expected)
{
    struct sample s = {.what = what};

    MPI_Type_commit(&type);
    mt_expect(begin(&s, type, count, true), "%s: is no good sample", what);
    char *memory = mt_noise(s.span, 1), *kept = mt_noise(s.span, 1), *span = mt_noise(s.span, 4);
    s.buffer.buf = memory - s.buffer.low;
    quick = 0;
    bool out = xm_stage_out_quickly(&s.copier, &s.buffer, span, bytes);
    mt_expect((out == expected) && (quick == expected), "%s: staged out quickly: %d", what, out);
    if (expected) {
        memcpy(kept, span, (size_t)bytes);
    }
    mt_expect(memcmp(memory, kept, s.span) == 0, "%s: staged out quickly and wrongly", what);
    bool in = xm_stage_in_quickly(&s.copier, &s.buffer, span);
    mt_expect(in == (expected && (s.buffer.bytes <= XM_QUICK_BYTES)), "%s: staged in quickly: %d",
              what, in);
    mt_expect(!in || (memcmp(memory, span, s.span) == 0), "%s: staged in quickly and wrongly",
              what);
    free(memory);
    free(kept);
    free(span);
    finish(&s);
    MPI_Type_free(&type);
}

/* By the kernel that lingers: short stretches without holes. */
static void known_quick(void)
{
    enum { MOST = XM_QUICK_BYTES / sizeof(double) };
    MPI_Datatype type;

    MPI_Type_contiguous(2, MPI_DOUBLE, &type);
    quickly("as many as are quick", type, MOST / 2, XM_QUICK_BYTES, with_kernels);
    MPI_Type_dup(MPI_DOUBLE, &type);
    quickly("the first of many", type, 2 * MOST, 24, with_kernels);
    MPI_Type_dup(MPI_DOUBLE, &type);
    quickly("one too many", type, MOST + 1, XM_QUICK_BYTES + sizeof(double), false);
    MPI_Type_vector(8, 1, 2, MPI_DOUBLE, &type);
    quickly("with holes", type, 1, 64, false);
}

/* Far from each other in no order: as many copies as stretches, or over the host. */
static void irregular(void)
{
    enum { BLOCKS = 2000 };
    static int    displs[BLOCKS];
    struct sample s = {.what = "2000 places in no order"};
    MPI_Datatype  type;

    for (int i = 0; i < BLOCKS; i++) { /* a permutation: all side by side */
        displs[i] = (int)((long)i * i * 7 + 3L * i) % BLOCKS;
        for (int j = 0; j < i; j++) {
            if (displs[j] == displs[i]) {
                displs[i] = (displs[i] + 1) % BLOCKS;
                j = -1;
            }
        }
    }
    MPI_Type_create_indexed_block(BLOCKS, 1, displs, MPI_INT, &type);
    MPI_Type_commit(&type);
    mt_expect(begin(&s, type, 1, true), "%s: is no good sample", s.what);
    if (with_kernels) { /* the first one lists them for the device */
        copies = launches = 0;
        check_pack(&s);
        mt_expect((copies == 1) && (launches == 1), "%s: listed by %d copies and %d kernels",
                  s.what, copies, launches);
    }
    expect_calls(&s, "packing", check_pack, 2, 0);
    expect_calls(&s, "unpacking", check_unpack, 2, 0);
    expect_calls(&s, "staging out", check_out_all, 1, 0);
    finish(&s);
    MPI_Type_free(&type);
}

static void listed_known(const char *what, MPI_Datatype type, int count)
{
    struct sample s = {.what = what};
    uint64_t      salt = 9;

    MPI_Type_commit(&type);
    mt_expect(begin(&s, type, count, true), "%s: is no good sample", what);
    listed = 0;
    check_pack(&s);
    check_unpack(&s);
    check_out_all(&s);
    for (int i = 0; i < 20; i++) {
        check_out(&s, (MPI_Count)(mt_next(&salt) % (uint64_t)(s.buffer.bytes + 1)));
    }
    mt_expect(listed >= (with_kernels ? 4 : 0), "%s: %d by a list", what, listed);
    moved = 0;
    check_quickly(&s, s.ordered);
    mt_expect(moved == (with_kernels ? 1 + s.ordered : 0), "%s: moved quickly %d times", what,
              moved);
    finish(&s);
    MPI_Type_free(&type);
}

/* What stretches of which lengths come to: pieces of one length, or tiles to find them by. */
static void listed_types(void)
{
    enum { BLOCKS = 3000, BYTES = MOST_BYTES / 2 };
    static int   places[BLOCKS], same[BLOCKS], differing[BLOCKS], odd[BLOCKS];
    int          one[2] = {1, 1};
    MPI_Aint     zero[2] = {0, 40000};
    MPI_Datatype type, inner, both[2];
    uint64_t     state = 5;

    for (int count = 1; count <= 3; count += 2) {
        for (int i = 0, at = 0; i < BLOCKS; i++) {
            same[i] = 2;
            differing[i] = 1 + (int)(mt_next(&state) % 3);
            odd[i] = (i % 100 == 7) ? 90 : 1 + 6 * (i & 1);
            places[i] = at;
            at += 4 + (int)(mt_next(&state) % 5);
        }
        MPI_Type_indexed(300, same, places, MPI_DOUBLE, &type);
        listed_known("pieces of one length", type, count);
        MPI_Type_indexed(300, differing, places, MPI_INT, &type);
        listed_known("of lengths with a divisor", type, count);
        for (int i = 0; i < BLOCKS; i++) {
            places[i] = 100 * i + (i % 3);
        }
        MPI_Type_indexed(300, odd, places, MPI_CHAR, &type);
        listed_known("of lengths that have none", type, count);
        MPI_Type_indexed(600, odd, places, MPI_SHORT, &inner);
        MPI_Type_create_resized(inner, -8, BYTES / 3, &type);
        MPI_Type_free(&inner);
        listed_known("of two bytes, and of many", type, 1);
        MPI_Type_indexed(60, differing, places, MPI_INT, &both[0]);
        MPI_Type_indexed(70, odd, places, MPI_CHAR, &both[1]);
        MPI_Type_create_struct(2, one, zero, both, &type);
        listed_known("two of them", type, count);
        for (int i = 0; i < BLOCKS; i++) {
            places[i] = 7 * i + i % 3;
        }
        MPI_Type_vector(3, 1, 2, MPI_SHORT_INT, &inner); /* its runs are interleaved */
        MPI_Type_create_indexed_block(90, 1, places, inner, &type);
        MPI_Type_free(&inner);
        MPI_Type_free(&both[0]);
        MPI_Type_free(&both[1]);
        listed_known("pairs in no order", type, 1);
    }
}

static int copies_on(struct sample *s, int *stream)
{
    copies = 0;
    s->copier.stream = (xcclStream_t)stream;
    check_pack(s);
    xm_scratch_trim(&s->scratch, 0);
    return copies;
}

/* A list comes by one copy: whose stream does not come behind that has one of its own. */
static void kept_lists(void)
{
    enum { BLOCKS = 300 };
    static int    places[BLOCKS], first, second;
    struct sample s = {.what = "a list that is kept"};
    MPI_Datatype  type;

    for (int i = 0; i < BLOCKS; i++) {
        places[i] = 7 * i + i * i % 5;
    }
    MPI_Type_create_indexed_block(BLOCKS, 1, places, MPI_INT, &type);
    MPI_Type_commit(&type);
    mt_expect(begin(&s, type, 1, true), "%s: is no good sample", s.what);
    pending = true;
    mt_expect(copies_on(&s, &first) == 1, "%s: is not made", s.what);
    mt_expect(copies_on(&s, &first) == 0, "%s: is made twice for one stream", s.what);
    mt_expect(copies_on(&s, &second) == 1, "%s: is used before it is there", s.what);
    pending = false;
    mt_expect(copies_on(&s, &second) == 0, "%s: is not used although it is there", s.what);
    s.scratch.ordered = true;
    mt_expect(copies_on(&s, &second) == 1, "%s: is used in what may be captured", s.what);
    s.scratch.ordered = false;
    xm_lists_finalize();
    mt_expect(copies_on(&s, &first) == 1, "%s: is used after the end", s.what);
    finish(&s);
    MPI_Type_free(&type);
}

int main(int argc, char **argv)
{
    ft_begin(argc, argv);
    for (int i = 0; i < 2; i++) {
        with_kernels = (i == 1);
        known_types();
        known_quick();
        irregular();
        listed_types();
        if (with_kernels) {
            kept_lists();
        }
        ft_check_random(argv, check_random);
    }
    xm_flat_finalize();
    mt_summary();
    MPI_Finalize();
    return mt_status();
}
