/* SPDX-License-Identifier: BSD-3-Clause */
#include "transfers/transfer.h"

#include <string.h>

#include "base/log.h"
#include "base/params.h"
#include "data/kernels.h"
#include "transfers/datarep.h"
#include "transfers/kept.h"
#include "transfers/staging.h"

struct row {
    const char *kinds;
    char        form;
    bool        large;
};

/* Of a function that receives a message the argument that is its buffer, else -1. */
static signed char receives_at[XM_NUM_TRANSFER_FUNCTIONS];

static const struct row rows[XM_NUM_TRANSFER_FUNCTIONS] = {
#define ROW(name) [XM_FN_MPI_##name - XM_NUM_COLLECTIVE_FUNCTIONS]
#define TWO(name, n, form, kinds)                                                                  \
    ROW(name) = {kinds, form, false}, ROW(name##_c) = {kinds, form, true},
#define ONE(name, n, form, kinds) ROW(name) = {kinds, form, false},
    XM_TRANSFERS_WITH_COUNTS(TWO) XM_TRANSFERS_WITHOUT_COUNTS(ONE)
#undef TWO
#undef ONE
#undef ROW
};

static const struct row *row_of(enum xm_function function)
{
    return &rows[(int)function - XM_NUM_COLLECTIVE_FUNCTIONS];
}

/* Messages have a communicator, or are matched already; partitioned ones are nobody else's. */
static bool is_message(const struct row *row)
{
    bool matched = (strcmp(row->kinds, "rnt.S") == 0) || (strcmp(row->kinds, "rnt.q") == 0);

    return matched || ((strchr(row->kinds, 'c') != NULL) && (strchr(row->kinds, 'm') == NULL));
}

const char *xm_transfer_kinds(enum xm_function function)
{
    return row_of(function)->kinds;
}

bool xm_transfer_is_message(enum xm_function function)
{
    return is_message(row_of(function));
}

void xm_transfers_init(void)
{
    for (int i = 0; i < XM_NUM_TRANSFER_FUNCTIONS; i++) {
        size_t at = strcspn(rows[i].kinds, "rb");
        bool   receives = is_message(&rows[i]) && (rows[i].kinds[at] != '\0');
        receives_at[i] = receives ? (signed char)at : -1;
    }
}

MPI_Comm xm_transfer_comm(const struct xm_transfer *t)
{
    int at = xm_transfer_argument(t->function, 'c');

    if (at >= 0) {
        return (MPI_Comm)(intptr_t)t->args[at];
    }
    return t->rendezvous.kept ? t->rendezvous.comm : XM_HANDLE(MPI_COMM_WORLD);
}

bool xm_transfer_may_be_on(const struct xm_transfer *t, MPI_Comm comm)
{
    bool known = (xm_transfer_argument(t->function, 'c') >= 0) || t->rendezvous.kept;

    return !known || (xm_transfer_comm(t) == comm);
}

int xm_transfer_raise(const struct xm_transfer *t, xcclResult_t res, const char *text)
{
    int window = xm_transfer_argument(t->function, 'w');
    int file = xm_transfer_argument(t->function, 'h');

    xm_kernel_copies_collect(XM_COLLECT_NONE); /* the program's handler may not come back */
    if (window >= 0) {
        return xm_raise_on_window((MPI_Win)(intptr_t)t->args[window], res, text);
    }
    if (file >= 0) {
        return xm_raise_on_file((MPI_File)(intptr_t)t->args[file], res, text);
    }
    /* With a request the program may have freed the communicator. */
    return xm_raise(t->comm_gone ? XM_HANDLE(MPI_COMM_WORLD) : xm_transfer_comm(t), res, text);
}

static int receive_of(enum xm_function function)
{
    return receives_at[(int)function - XM_NUM_COLLECTIVE_FUNCTIONS];
}

bool xm_transfer_receives(enum xm_function function)
{
    return receive_of(function) >= 0;
}

int xm_transfer_argument(enum xm_function function, char kind)
{
    const char *kinds = row_of(function)->kinds;
    const char *at = strchr(kinds, kind);

    return (at != NULL) ? (int)(at - kinds) : -1;
}

bool xm_transfer_packs(enum xm_function function)
{
    return (function == XM_FN_MPI_Pack) || (function == XM_FN_MPI_Pack_c) ||
           (function == XM_FN_MPI_Pack_external) || (function == XM_FN_MPI_Pack_external_c);
}

bool xm_transfer_unpacks(enum xm_function function)
{
    return (function == XM_FN_MPI_Unpack) || (function == XM_FN_MPI_Unpack_c) ||
           (function == XM_FN_MPI_Unpack_external) || (function == XM_FN_MPI_Unpack_external_c);
}

/* MPI counts these bytes in int, and not each of them says when there are too many. */
static bool can_be_counted(MPI_Count count, MPI_Datatype type)
{
    enum { MOST = INT32_MAX / 4 };
    MPI_Count size = -1;

    return (count >= 0) && (count <= MOST) && (type != XM_HANDLE(MPI_DATATYPE_NULL)) &&
           (xm_pmpi.Type_size_x(type, &size) == MPI_SUCCESS) && (size >= 0) &&
           ((count == 0) || (size <= MOST / count));
}

MPI_Count xm_transfer_most_unpacked(enum xm_function function, const long *args, MPI_Count all)
{
    int          at = xm_transfer_argument(function, 'n');
    bool         external = (row_of(function)->kinds[0] != 's');
    MPI_Count    count = row_of(function)->large ? (MPI_Count)args[at] : (int)args[at];
    MPI_Datatype type = (MPI_Datatype)(intptr_t)args[at + 1];
    MPI_Comm     self = xm_rendezvous_self();
    MPI_Aint     more = 0;
    int          bytes = 0;

    /* Whose failures are nobody's: MPI says itself what is wrong with the type. */
    if ((self == XM_HANDLE(MPI_COMM_NULL)) || !can_be_counted(count, type) ||
        (xm_pmpi.Pack_size((int)count, type, self, &bytes) != MPI_SUCCESS)) {
        return all;
    }
    if (external && (xm_pmpi.Pack_external_size((const char *)args[0], (int)count, type, &more) !=
                     MPI_SUCCESS)) {
        return all;
    }
    /* Elements may be longer there, or shorter. */
    MPI_Count most = (MPI_Count)bytes + more;
    return (most < all) ? most : all;
}

char xm_transfer_form(enum xm_function function)
{
    return row_of(function)->form;
}

bool xm_transfer_narrow(enum xm_function function, const long *args, enum xm_function *narrow_p)
{
    const struct row *row = row_of(function);
    enum xm_function  narrow = (enum xm_function)((int)function - 1);

    if (!row->large || (xm_mpi_functions[narrow] == NULL)) {
        xc_fail(xcclUnsupported, "this MPI does not have %s", xm_mpi_function_name(function));
        return false;
    }
    for (int i = 0; row->kinds[i] != '\0'; i++) {
        bool counts = (row->kinds[i] == 'n') || (row->kinds[i] == 'z');
        if (counts && ((args[i] > INT32_MAX) || (args[i] < INT32_MIN))) {
            xc_fail(xcclUnsupported,
                    "%s: a count of %ld does not fit this MPI, which has no functions with large "
                    "counts; pass at most %d elements at a time, of a larger datatype",
                    xm_mpi_function_name(function), args[i], INT32_MAX);
            return false;
        }
    }
    *narrow_p = narrow;
    return true;
}

static bool is_buffer(char kind)
{
    return (kind == 's') || (kind == 'r') || (kind == 'b');
}

static bool left_to_mpi(const struct xc_device_ops *dev)
{
    int p2p = xc_params()->p2p;

    return (p2p == XC_P2P_MPI) || ((p2p == XC_P2P_AUTO) && xm_mpi_gpu_aware(dev->name));
}

/* Has a receive of a named type room for a message that is fetched? */
static bool is_looked_at(enum xm_function function, const long *args, MPI_Count size)
{
    int at = receive_of(function);

    if (at < 0) {
        return false;
    }
    MPI_Count count = row_of(function)->large ? (MPI_Count)args[at + 1] : (int)args[at + 1];
    return (count > 0) && xm_rendezvous_looks_at((uint64_t)(count * size));
}

bool xm_transfer_is_plain_receive(const long *args)
{
    enum xm_nature nature;
    MPI_Count      size, count = (int)args[1];

    return xm_kept_lets_pass() && xm_type_named((MPI_Datatype)(intptr_t)args[2], &nature, &size) &&
           (count > 0) && !xm_rendezvous_looks_at((uint64_t)(count * size));
}

static bool may_be_on_device(const struct xc_device_ops *dev, const void *buf, bool *asked_p)
{
    if (buf == NULL) { /* no answer: it may be MPI_BOTTOM, with the addresses in the datatype */
        xm_buffer_forget();
        return true;
    }
    if (xc_mem_surely_host(buf)) {
        return false;
    }
    *asked_p = true;
    return xm_buffer_ask(dev, buf).kind == XC_MEM_DEVICE;
}

/* Would a descriptor lie in such a buffer as it was sent, and would MPI take it for elements? */
static bool is_even(enum xm_nature nature, MPI_Count size)
{
    return (nature != XM_HOLES) && (XM_DESCRIPTOR_BYTES % size == 0);
}

/* One may come for a message that is too long for the receive, too. */
static bool holds_descriptor(MPI_Count count, MPI_Count size)
{
    return (xm_rendezvous_looks_from() > 0) && (count > 0) && (count * size >= XM_DESCRIPTOR_BYTES);
}

/* Of a call whose buffers are named so far, and none on a device. */
static enum xm_way way_with_type(enum xm_function function, const long *args, MPI_Datatype type)
{
    enum xm_nature nature;
    MPI_Count      size;

    if (!xm_type_named(type, &nature, &size)) {
        return XM_WAY_OURS;
    }
    if ((function == XM_FN_MPI_Recv) && is_even(nature, size)) {
        return holds_descriptor((int)args[1], size) ? XM_WAY_LOOKED : XM_WAY_PLAIN;
    }
    if (!is_looked_at(function, args, size)) {
        return XM_WAY_PLAIN;
    }
    bool simple = (function == XM_FN_MPI_Irecv) && is_even(nature, size);
    return simple ? XM_WAY_LOOKED : XM_WAY_OURS;
}

/*
 * Without a device so far. No message to be fetched comes here yet; but one may match a receive
 * that was begun before.
 */
static enum xm_way way_without_device(enum xm_function function, const long *args)
{
    int at = receive_of(function);

    if (row_of(function)->form == 'Q') { /* while it waits another thread may begin to use one */
        return xm_kept_has_threads() ? XM_WAY_OURS : XM_WAY_PLAIN;
    }
    if ((at >= 0) && (xm_rendezvous_looks_from() > 0) &&
        ((row_of(function)->form == 'P') || xm_kept_any() || xm_kept_by_threads())) {
        return XM_WAY_OURS;
    }
    if ((at < 0) || (xm_rendezvous_looks_from() == 0) ||
        ((row_of(function)->form == 'B') && (*xm_rendezvous_watched() < XM_WATCHED_ALL))) {
        return XM_WAY_PLAIN;
    }
    return way_with_type(function, args, (MPI_Datatype)(intptr_t)args[at + 2]);
}

enum xm_way xm_transfer_way(enum xm_function function, const long *args)
{
    const struct xc_device_ops *dev = xc_device_active();
    const char                 *kinds = row_of(function)->kinds;

    if (dev == NULL) {
        return way_without_device(function, args);
    }
    if (left_to_mpi(dev)) {
        return XM_WAY_PLAIN;
    }
    if (xm_rendezvous_looks_from() > 0) {
        xm_rendezvous_announce(dev);
        if ((row_of(function)->form == 'Q') ||
            (xm_transfer_receives(function) &&
             (xm_kept_any() || xm_kept_by_threads() || (row_of(function)->form == 'P')))) {
            xm_buffer_forget();
            return XM_WAY_OURS;
        }
    }
    bool asked = false;
    for (int i = 0; kinds[i] != '\0'; i++) {
        if (is_buffer(kinds[i]) && may_be_on_device(dev, (const void *)args[i], &asked)) {
            return XM_WAY_OURS;
        }
        enum xm_way way = (kinds[i] == 't')
                              ? way_with_type(function, args, (MPI_Datatype)(intptr_t)args[i])
                              : XM_WAY_PLAIN;
        if (way != XM_WAY_PLAIN) {
            if (!asked) {
                xm_buffer_forget();
            }
            return way;
        }
    }
    return XM_WAY_PLAIN;
}

/* ---- reading the arguments ---- */

/* Buffers whose count or type is still to come, while the arguments are read. */
struct reader {
    struct xm_transfer *t;
    MPI_Count           count;
    int                 first; /* of them */
    int                 end;
    int                 at[4];   /* arguments that are buffers */
    bool                ignores; /* what the first of them holds */
    bool                valid;
};

static bool is_no_op(enum xm_function function, const long *args)
{
    int at = xm_transfer_argument(function, 'o');

    return (at >= 0) && ((MPI_Op)(intptr_t)args[at] == XM_HANDLE(MPI_NO_OP));
}

/* There may be no memory behind such a buffer. Messages that are matched already have come. */
static bool receives_from_nobody(const struct xm_transfer *t, int argument)
{
    int source = argument + ((t->kinds[argument] == 'b') ? 5 : 3);

    return (strchr(t->kinds, 'c') != NULL) && ((int)t->args[source] == MPI_PROC_NULL);
}

/*
 * A buffer that is ignored may have any count and type. But the origin of MPI_Fetch_and_op has that
 * of its result, and Open MPI reads it all the same: so it is host memory then, with anything in
 * it.
 */
static void take_buffers(struct reader *r, MPI_Count count, MPI_Datatype type)
{
    struct xm_transfer *t = r->t;

    for (int i = r->first; r->valid && (i < r->end); i++) {
        struct xm_part part = {.argument = r->at[i]};
        char           kind = t->kinds[part.argument];
        bool           ignored = r->ignores && (i == 0);
        if (ignored && (r->end == 1)) {
            continue; /* and so are its count and its type */
        }
        part.buffer.in = ((kind != 'r') || t->whole) && !ignored;
        part.buffer.out = (kind != 's');
        r->valid =
            (count >= 0) &&
            xm_buffer_single(&part.buffer, (const void *)t->args[part.argument], count, type);
        t->scattered =
            t->scattered || (r->valid && part.buffer.mixed && !xm_part_may_go_packed(t, &part));
        if (r->valid && (part.argument == receive_of(t->function))) {
            bool used = (xm_rendezvous_looks_from() > 0) && part.buffer.used &&
                        !receives_from_nobody(t, part.argument);
            t->rendezvous.looks = used && (part.buffer.bytes >= XM_DESCRIPTOR_BYTES);
            t->rendezvous.awaits = used && xm_rendezvous_looks_at((uint64_t)part.buffer.bytes);
            t->rendezvous.receive = part.buffer;
            t->rendezvous.argument = part.argument;
        }
        if (r->valid && xm_on_device(&part.buffer) && (t->num_parts < XM_MAX_PARTS)) {
            t->parts[t->num_parts++] = part;
        } else if (part.buffer.layout.flat != NULL || part.buffer.layout.held) {
            if (t->rendezvous.looks && (t->rendezvous.argument == part.argument)) {
                t->rendezvous.receive.type = type;
                t->rendezvous.receive.layout.flat = NULL;
                t->rendezvous.receive.layout.held = false;
            }
            xm_buffer_free(&part.buffer);
        }
    }
    r->first = r->end;
    r->count = 1;
}

/* Of a window: nothing is read or written, neither there nor here. */
static bool accesses_nobody(const struct xm_transfer *t)
{
    int at = xm_transfer_argument(t->function, 'k');

    return (at >= 0) && (t->form != 'Y') && ((int)t->args[at] == MPI_PROC_NULL);
}

/*
 * A type that was not committed: MPI is to see it and to say so, where the bytes would go without
 * it. Packing no element looks at the type alone.
 */
static bool is_uncommitted(const struct xm_transfer *t)
{
    MPI_Comm self = xm_rendezvous_self();
    char     none[1] = {0};
    int      position = 0;

    for (int i = 0; (i < t->num_parts) && (self != XM_HANDLE(MPI_COMM_NULL)); i++) {
        const struct xm_buffer *b = &t->parts[i].buffer;
        if (b->layout.derived &&
            (xm_pmpi.Pack(none, 0, b->type, none, 0, &position, self) != MPI_SUCCESS)) {
            return true;
        }
    }
    return false;
}

/*
 * At the end of a file collective reads may count bytes that never came: MPICH's non-blocking ones
 * do, and Open MPI's blocking ones.
 */
static bool counts_too_much(const struct xm_transfer *t)
{
    return strstr(xm_mpi_function_name(t->function), "_all") != NULL;
}

/*
 * Of these reads, and those from a file with another representation, nobody says how many bytes of
 * memory come: all of the buffer is sent back and forth.
 */
static void take_uncounted(struct xm_transfer *t)
{
    int at = xm_transfer_argument(t->function, 'h');

    if ((at >= 0) && (t->num_parts == 1) && t->parts[0].buffer.out) {
        t->parts[0].buffer.in =
            counts_too_much(t) || xm_datarep_converts((MPI_File)(intptr_t)t->args[at]);
    }
}

bool xm_transfer_read(struct xm_transfer *t, enum xm_function function, const long *args)
{
    const struct row *row = row_of(function);
    struct reader     r = {.t = t, .count = 1, .valid = true};

    r.ignores = is_no_op(function, args);

    memset(t, 0, offsetof(struct xm_transfer, rendezvous.out));
    t->function = function;
    t->kinds = row->kinds;
    t->form = row->form;
    t->request = XM_HANDLE(MPI_REQUEST_NULL);
    /* MPICH 4.0.2 leaves the status of these empty: so all of the buffer is sent back and forth. */
    t->whole = !XM_OPENMPI && (t->form == 'N') &&
               ((strncmp(t->kinds, "snt..r", 6) == 0) || (t->kinds[0] == 'b'));
    memcpy(t->args, args, sizeof(long) * strlen(row->kinds));
    for (int i = 0; t->kinds[i] != '\0'; i++) {
        MPI_Count number = row->large ? (MPI_Count)args[i] : (int)args[i];
        switch (t->kinds[i]) {
        case 's':
        case 'r':
        case 'b':
            r.at[r.end++] = i;
            break;
        case 'n':
            r.count = number;
            break;
        case 'm':
            t->partitions = (int)args[i];
            break;
        case 'N':
            t->per_partition = (MPI_Count)args[i];
            r.count = t->partitions * t->per_partition;
            break;
        case 't':
            take_buffers(&r, r.count, (MPI_Datatype)(intptr_t)args[i]);
            break;
        case 'z':
        case 'y':
            take_buffers(&r, (t->kinds[i] == 'y') ? (MPI_Count)args[i] : number,
                         XM_HANDLE(MPI_BYTE));
            break;
        default:
            break;
        }
    }
    /* Of a persistent receive the arguments are known each time that it is started. */
    bool again = (t->form == 'P') && xm_transfer_receives(function);
    bool good = r.valid && !accesses_nobody(t) && !is_uncommitted(t);
    if (good) {
        take_uncounted(t);
    } else if (t->num_parts > 0) {
        xm_transfer_close(t);
    }
    return good && ((t->num_parts > 0) || t->rendezvous.looks || again || t->scattered);
}

void xm_transfer_read_looked(struct xm_transfer *t, enum xm_function function, const long *args)
{
    struct xm_rendezvous *r = &t->rendezvous;

    memset(t, 0, offsetof(struct xm_transfer, rendezvous.out));
    t->function = function;
    t->kinds = row_of(function)->kinds;
    t->form = row_of(function)->form;
    t->request = XM_HANDLE(MPI_REQUEST_NULL);
    memcpy(t->args, args, sizeof(long) * strlen(t->kinds));
    r->receive.out = true;
    r->looks = r->awaits = xm_buffer_single(&r->receive, (const void *)args[0], (int)args[1],
                                            (MPI_Datatype)(intptr_t)args[2]);
    xm_rendezvous_expect(t);
    t->simple = true;
}
