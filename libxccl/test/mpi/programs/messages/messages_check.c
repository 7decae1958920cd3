/* SPDX-License-Identifier: BSD-3-Clause */
/* The buffers of messages: what is in them before, and what has to be in them then. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "messages.h"

enum { ARENA = 8 << 20, GUARD = 64 };

/* ---- what is printed ---- */

static const char *form_name(const struct mg_side *side)
{
    static const char *const forms[] = {"blocking",    "non-blocking", "persistent",
                                        "MPI_Probe",   "MPI_Iprobe",   "MPI_Mprobe",
                                        "MPI_Improbe", "MPI_Sendrecv", "MPI_Sendrecv_replace"};

    return forms[side->form];
}

void mg_describe(const struct mg_worker *w, const struct mg_side *side, char *text, size_t size)
{
    static const char *const modes[] = {"standard", "buffered", "synchronous", "ready"};
    static const char *const wheres[] = {"host", "device", "managed"};
    const struct mg_message *m = &side->message;

    snprintf(text, size,
             "%s on %s, %d to %d, tag %d: %s%s%s, made with source %d and tag %d, %s, %d of %s %s, "
             "%zu bytes in all, memory %s%s%s%s%s",
             side->sends ? "send" : "receive", w->comms[m->slot].kind, m->source, m->dest, m->tag,
             side->sends ? modes[side->mode] : "", side->sends ? " " : "", form_name(side),
             side->source, side->tag, m->posted ? "early" : "late", side->count, side->type->base,
             side->type->shape, m->bytes, wheres[side->where],
             (m->kind == MG_CANCELLED) ? ", cancelled" : "", side->frees ? ", freed" : "",
             side->batched ? ", started with others" : "", side->returns ? ", with a request" : "");
}

void mg_expect(struct mg_worker *w, const struct mg_side *side, bool good, const char *format, ...)
{
    char    what[500], end[900] = "";
    va_list arguments;

    if (good) {
        mt_expect(true, "-");
        return;
    }
    va_start(arguments, format);
    vsnprintf(what, sizeof(what), format, arguments);
    va_end(arguments);
    if (side != NULL) {
        mg_describe(w, side, end, sizeof(end));
    }
    mt_expect(false, "seed %llu, thread %d, round %ld, pass %d, %s: %s\n  %s",
              (unsigned long long)rx_options.seed, w->id, w->round.number, w->pass, w->phase, what,
              end);
}

/* ---- buffers ---- */

static void *take(struct mg_worker *w, enum mt_where where, size_t bytes)
{
    size_t begin = (w->used[where] + 63) / 64 * 64;

    if (w->arenas[where] == NULL) {
        w->arenas[where] = mt_alloc(where, ARENA);
    }
    if (begin + bytes <= ARENA) {
        w->used[where] = begin + bytes;
        return w->arenas[where] + begin;
    }
    w->extra_where[w->num_extra] = where;
    return w->extra[w->num_extra++] = mt_alloc(where, bytes);
}

static char *scratch(struct mg_worker *w, int which, size_t bytes)
{
    if (bytes > w->scratch_size[which]) {
        free(w->scratch[which]);
        w->scratch_size[which] = 2 * bytes;
        w->scratch[which] = mt_alloc(MT_HOST, w->scratch_size[which]);
    }
    return w->scratch[which];
}

/* Room for the elements and guards around them; a buffer that is replaced is the send's. */
void mg_side_open(struct mg_worker *w, struct mg_side *side)
{
    const struct mg_type *type = side->type;
    intptr_t              steps = (side->count > 0) ? side->count - 1 : 0;

    side->origin = (size_t)(GUARD - ((type->low < 0) ? type->low : 0));
    side->bytes = side->origin + (size_t)(type->high + steps * type->extent) + GUARD;
    side->before = mt_alloc(MT_HOST, side->bytes);
    if (side->replaced != NULL) {
        side->where = side->replaced->where;
        side->memory = side->replaced->memory;
    } else {
        side->memory = take(w, side->where, side->bytes);
    }
}

void mg_sides_close(struct mg_worker *w)
{
    for (int i = 0; i < w->num_sides; i++) {
        free(w->sides[i].before);
    }
    for (int i = 0; i < MG_SLOTS; i++) {
        if (w->owners[i] != NULL) { /* persistent and inactive: the others are over */
            MPI_Request_free(&w->requests[i]);
            w->owners[i] = NULL;
        }
    }
    for (int i = 0; i < w->num_extra; i++) {
        mt_free(w->extra_where[i], w->extra[i]);
    }
    w->num_extra = 0;
    memset(w->used, 0, sizeof(w->used));
}

/* The data of a message, from one end to the other of what it has in this pass. */
static const char *data_of(struct mg_worker *w, const struct mg_message *m)
{
    char *data = scratch(w, 0, m->bytes);

    mt_fill_noise(data, m->bytes, rx_hash(m->seed, 9, (uint64_t)w->pass));
    return data;
}

static void scatter(char *to, const struct mg_type *type, const char *data, size_t bytes)
{
    size_t at = 0;

    for (intptr_t i = 0; at < bytes; i++) {
        for (int e = 0; (e < type->num) && (at < bytes); e++) {
            memcpy(to + i * type->extent + (intptr_t)type->at[e], data + at, type->sizes[e]);
            at += type->sizes[e];
        }
    }
}

void mg_side_fill(struct mg_worker *w, struct mg_side *side)
{
    const struct mg_side *data_side = (side->replaced != NULL) ? side->replaced : side;
    uint64_t              place = (uint64_t)(data_side - w->sides);

    mt_fill_noise(side->before, side->bytes, rx_hash(w->round.seed, place, (uint64_t)w->pass));
    if (data_side->sends) {
        const struct mg_message *m = &data_side->message;
        scatter(side->before + side->origin, data_side->type, data_of(w, m), m->bytes);
    }
    side->checked = side->known = side->active = false;
    mt_put(side->memory, side->where, side->before, side->bytes);
}

static long first_difference(const char *a, const char *b, size_t bytes)
{
    if (memcmp(a, b, bytes) == 0) {
        return -1;
    }
    for (size_t i = 0; i < bytes; i++) {
        if (a[i] != b[i]) {
            return (long)i;
        }
    }
    return -1;
}

/* Every byte: what came, what lies between and behind it, and the guards. */
void mg_side_check(struct mg_worker *w, struct mg_side *side, const struct mg_message *came)
{
    char *expected = scratch(w, 1, 2 * side->bytes);
    char *got = expected + side->bytes;

    memcpy(expected, side->before, side->bytes);
    if (came != NULL) {
        scatter(expected + side->origin, side->type, data_of(w, came), came->bytes);
    }
    mt_get(got, side->memory, side->where, side->bytes);
    long at = first_difference(expected, got, side->bytes);
    mg_expect(w, side, at < 0,
              "byte %ld of %zu (the pointer is at %zu) is %02x instead of %02x, before it was %02x",
              at, side->bytes, side->origin, (at < 0) ? 0 : (unsigned char)got[at],
              (at < 0) ? 0 : (unsigned char)expected[at],
              (at < 0) ? 0 : (unsigned char)side->before[at]);
}

/* The program writes to the buffer of a send that is over. */
void mg_side_reuse(struct mg_worker *w, struct mg_side *side)
{
    char *other = scratch(w, 1, side->bytes);

    mt_fill_noise(other, side->bytes, 1);
    mt_put(side->memory, side->where, other, side->bytes);
    side->checked = true;
}

const struct mg_message *mg_expected(const struct mg_side *side)
{
    return (side->message.source < 0) || (side->message.kind == MG_CANCELLED) ? NULL
                                                                              : &side->message;
}

void mg_status_check(struct mg_worker *w, const struct mg_side *side, const MPI_Status *status,
                     const struct mg_message *came)
{
    const struct mg_type *type = side->type;
    size_t                bytes = (came != NULL) ? came->bytes : 0;
    int                   nobody = (came == NULL);
    int                   source = nobody ? MPI_PROC_NULL : came->source;
    int                   tag = nobody ? MPI_ANY_TAG : came->tag;
    int                   count, expected = MPI_UNDEFINED, elements = 0;
    bool                  unclear = false;

#ifdef MPICH_VERSION /* 4.0.2: requests of receives from nobody have source 0 and tag 0 */
    unclear = nobody && (side->form != MG_BLOCKING);
#endif

    mg_expect(w, side, unclear || ((status->MPI_SOURCE == source) && (status->MPI_TAG == tag)),
              "the status has source %d and tag %d instead of %d and %d", status->MPI_SOURCE,
              status->MPI_TAG, source, tag);
    if (bytes % type->size == 0) {
        expected = (int)(bytes / type->size);
    }
    MPI_Get_count(status, type->handle, &count);
    mg_expect(w, side, count == expected, "MPI_Get_count says %d instead of %d", count, expected);
    if (type->pairs) {
        return;
    }
    expected = 0;
    for (size_t at = 0; at < bytes; expected++) {
        at += type->sizes[expected % type->num];
    }
    MPI_Get_elements(status, type->handle, &elements);
    mg_expect(w, side, elements == expected, "MPI_Get_elements says %d instead of %d", elements,
              expected);
}
