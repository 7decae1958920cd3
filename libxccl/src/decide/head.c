/* SPDX-License-Identifier: BSD-3-Clause */
/* The head of a table's file: who measured it, and for which communicators it is. */
#include <ctype.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/libraries.h"
#include "base/log.h"
#include "decide/parse.h"

enum kind { TEXT, DATE, RANGE, CCL, NETWORK, MPI };

static const struct key {
    const char *name;
    enum kind   kind;
    size_t      offset, size;
    const char *allowed;
} keys[] = {
#define AT(field) offsetof(struct xm_head, field), sizeof(((struct xm_head *)NULL)->field)
    {"title", TEXT, AT(title), "a text"},
    {"measured", DATE, AT(measured), "the day, as 2026-11-22, or nobody"},
    {"where", TEXT, AT(where), "a text"},
    {"gpu_model", TEXT, AT(gpu_model), "a text"},
    {"driver", TEXT, AT(driver), "a text"},
    {"library", TEXT, AT(library), "a text"},
    {"mpi_library", TEXT, AT(mpi_library), "a text"},
    {"raw", TEXT, AT(raw), "a text"},
    {"gpu", TEXT, AT(gpu), "models separated by commas, as NVIDIA H200, AMD Instinct MI3*"},
    {"ranks", RANGE, AT(ranks), "lo-hi, as 2-8 or 2-inf, one number, or *"},
    {"nodes", RANGE, AT(nodes), "lo-hi, as 2-8 or 2-inf, one number, or *"},
    {"ranks_per_node", RANGE, AT(per_node), "lo-hi, as 2-8 or 2-inf, one number, or *"},
    {"ccl", CCL, AT(ccl), "and versions if not all, as nccl 2.27-2.28.3"},
    {"network", NETWORK, AT(network), "fabric, tcp, *"},
    {"mpi", MPI, AT(mpi), "gpu-aware, staged, *"},
#undef AT
};

enum { NUM_KEYS = sizeof(keys) / sizeof(keys[0]) };

static const char all_keys[] = "title, measured, where, gpu_model, driver, library, mpi_library, "
                               "raw, gpu, ranks, nodes, ranks_per_node, ccl, network, mpi";

static const struct xm_range everything = {0, XM_INF};

void xm_head_init(struct xm_head *head)
{
    *head = (struct xm_head){.ranks = everything,
                             .nodes = everything,
                             .per_node = everything,
                             .ccl_version = everything};
}

/* From 01 to most. */
static bool two_digits(const char *at, int most)
{
    int number = 10 * (at[0] - '0') + at[1] - '0';

    return (number >= 1) && (number <= most);
}

static bool is_date(struct xm_part part)
{
    static const char form[] = "dddd-dd-dd";

    for (size_t i = 0; i < part.len; i++) {
        if ((part.len != sizeof(form) - 1) ||
            ((form[i] == 'd') ? !isdigit((unsigned char)part.at[i]) : (part.at[i] != form[i]))) {
            return xm_part_is(part, "nobody");
        }
    }
    return (part.len > 0) && two_digits(part.at + 5, 12) && two_digits(part.at + 8, 31);
}

static bool copy_text(struct xm_part part, char *text, size_t len)
{
    if ((part.len == 0) || (part.len >= len)) {
        return false;
    }
    memcpy(text, part.at, part.len);
    text[part.len] = '\0';
    return true;
}

enum { VERSION_PARTS = 3, VERSION_BITS = 20 };

uint64_t xm_version_number(int version)
{
    uint64_t v = (version > 0) ? (uint64_t)version : 0;
    bool     old = (v >= 2000) && (v < 10000); /* smaller ones are MSCCL++'s, in the new form */
    uint64_t major = old ? v / 1000 : v / 10000, minor = old ? v / 100 % 10 : v / 100 % 100;

    return (major << 2 * VERSION_BITS) | (minor << VERSION_BITS) | (v % 100);
}

static bool parse_digits(struct xm_part part, uint64_t most, uint64_t *number_p)
{
    uint64_t number = 0;

    for (size_t i = 0; i < part.len; i++) {
        number = 10 * number + (uint64_t)(part.at[i] - '0');
        if (!isdigit((unsigned char)part.at[i]) || (number >= most)) {
            return false;
        }
    }
    *number_p = number;
    return part.len > 0;
}

/* "2", "2.28" or "2.28.3": the least or the largest version that this begins. */
static bool parse_version(struct xm_part part, bool largest, uint64_t *number_p)
{
    const uint64_t most = ((uint64_t)1 << VERSION_BITS) - 1;
    uint64_t       number = 0;
    struct xm_part one = {NULL, 0};

    for (int i = 0; i < VERSION_PARTS; i++) {
        uint64_t value = largest ? most : 0;
        if (xm_part_cut(&part, '.', &one) && !parse_digits(one, most, &value)) {
            return false;
        }
        number = (number << VERSION_BITS) | value;
    }
    *number_p = number;
    return part.at == NULL;
}

static bool parse_versions(struct xm_part part, struct xm_range *range)
{
    struct xm_part low = part, high = part;

    if ((part.len == 0) || xm_part_is(part, "*")) {
        *range = everything;
        return true;
    }
    const char *dash = memchr(part.at, '-', part.len);
    if (dash != NULL) {
        low.len = (size_t)(dash - part.at);
        high = (struct xm_part){dash + 1, part.len - low.len - 1};
    }
    if (!parse_version(low, false, &range->low)) {
        return false;
    }
    if (xm_part_is(high, "inf") && (dash != NULL)) {
        range->high = XM_INF;
        return true;
    }
    return parse_version(high, true, &range->high) && (range->low <= range->high);
}

static bool parse_ccl(struct xm_part part, struct xm_head *head)
{
    struct xm_part name = part, versions = {part.at, 0};
    const char    *blank = memchr(part.at, ' ', part.len), *known = NULL;

    if (blank != NULL) {
        name.len = (size_t)(blank - part.at);
        versions = xm_part_trim((struct xm_part){blank, part.len - name.len});
    }
    for (size_t i = 0; ((known = xc_library_name(i)) != NULL) && !xm_part_is(name, known); i++) {}
    return (known != NULL) && copy_text(name, head->ccl, sizeof(head->ccl)) &&
           parse_versions(versions, &head->ccl_version);
}

static bool parse_word(struct xm_part part, const char *const words[3], void *place)
{
    int i = xm_part_find(part, words, 3);

    if (i >= 0) {
        *(int *)place = i;
    }
    return i >= 0;
}

static bool parse_value(const struct key *key, struct xm_part value, struct xm_head *head)
{
    static const char *const networks[] = {"*", "tcp", "fabric"};
    static const char *const awarenesses[] = {"*", "staged", "gpu-aware"};
    char                    *at = (char *)head + key->offset;
    struct xm_range         *range = (struct xm_range *)(void *)at;

    switch (key->kind) {
    case TEXT:
        return copy_text(value, at, key->size);
    case DATE:
        return is_date(value) && copy_text(value, at, key->size);
    case RANGE:
        return xm_parse_range(value, false, &range->low, &range->high);
    case CCL:
        return parse_ccl(value, head);
    case NETWORK:
        return parse_word(value, networks, at);
    default:
        return parse_word(value, awarenesses, at);
    }
}

/* What a key takes; a library by its name. */
static xcclResult_t complain_of_value(const struct xm_place *place, struct xm_part value,
                                      const struct key *key)
{
    char        words[160];
    const char *name;
    size_t      n = 0;

    for (size_t i = 0; (key->kind == CCL) && ((name = xc_library_name(i)) != NULL); i++) {
        n += (size_t)snprintf(words + n, (n < sizeof(words)) ? sizeof(words) - n : 0, "%s, ", name);
    }
    snprintf(words + n, (n < sizeof(words)) ? sizeof(words) - n : 0, "%s", key->allowed);
    return xm_parse_complain(place, value, "value", words);
}

xcclResult_t xm_parse_setting(const struct xm_place *place, struct xm_head *head, uint32_t *seen)
{
    struct xm_part line = place->whole, name = line;

    xm_part_cut(&line, '=', &name);
    name = xm_part_trim(name);
    struct xm_part value = xm_part_trim(line);
    for (int i = 0; i < NUM_KEYS; i++) {
        if (!xm_part_is(name, keys[i].name)) {
            continue;
        }
        if ((*seen >> i) & 1) {
            return xm_parse_complain(place, name, "second", "each key once");
        }
        *seen |= (uint32_t)1 << i;
        if ((keys[i].kind == TEXT) && (value.len >= keys[i].size)) {
            char most[64];
            snprintf(most, sizeof(most), "a text of at most %zu bytes", keys[i].size - 1);
            return xm_parse_complain(place, value, "value", most);
        }
        return parse_value(&keys[i], value, head) ? xcclSuccess
                                                  : complain_of_value(place, value, &keys[i]);
    }
    return xm_parse_complain(place, name, "key", all_keys);
}

xcclResult_t xm_head_check(const struct xm_place *place, const struct xm_head *head)
{
    if (head->measured[0] == '\0') {
        return xc_fail(xcclInvalidArgument,
                       "%s: line 1, column 1: no line 'measured = ...'; allowed: the day, as "
                       "2026-11-22, or nobody",
                       place->source);
    }
    bool measured = strcmp(head->measured, "nobody") != 0;
    if (measured && ((head->where[0] == '\0') || (head->library[0] == '\0'))) {
        return xc_fail(xcclInvalidArgument,
                       "%s: line 1, column 1: 'measured = %s' without 'where' and 'library'; "
                       "allowed: a table that was measured says where and with which library",
                       place->source, head->measured);
    }
    return xcclSuccess;
}
