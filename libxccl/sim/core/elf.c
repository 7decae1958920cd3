/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Hiding a symbol of a loaded object: its row of the dynamic symbol table becomes undefined, so
 * that dlsym() and later relocations pass over it, as if the library were too old to have it.
 */
#include <dlfcn.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/core.h"

struct tables {
    const ElfW(Sym) * symbols;
    const char *names;
    size_t      count;
};

/* The GNU hash table is the only place that tells how many rows the symbol table has. */
static size_t gnu_hash_count(const uint32_t *hash)
{
    uint32_t        buckets = hash[0];
    uint32_t        offset = hash[1];
    const uint32_t *bucket = hash + 4 + hash[2] * (sizeof(ElfW(Addr)) / sizeof(uint32_t));
    const uint32_t *chain = bucket + buckets;
    uint32_t        last = 0;

    for (uint32_t i = 0; i < buckets; i++) {
        last = (bucket[i] > last) ? bucket[i] : last;
    }
    if (last < offset) {
        return offset;
    }
    while ((chain[last - offset] & 1) == 0) {
        last++;
    }
    return (size_t)last + 1;
}

static struct tables find_tables(const struct link_map *map)
{
    struct tables tables = {NULL, NULL, 0};

    for (const ElfW(Dyn) *row = map->l_ld; row->d_tag != DT_NULL; row++) {
        if (row->d_tag == DT_SYMTAB) {
            tables.symbols = (const ElfW(Sym) *)row->d_un.d_ptr;
        } else if (row->d_tag == DT_STRTAB) {
            tables.names = (const char *)row->d_un.d_ptr;
        } else if (row->d_tag == DT_GNU_HASH) {
            tables.count = gnu_hash_count((const uint32_t *)row->d_un.d_ptr);
        }
    }
    return tables;
}

static bool make_undefined(const ElfW(Sym) * symbol)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t first = (uintptr_t)symbol & ~(page - 1);
    uintptr_t end = ((uintptr_t)(symbol + 1) + page - 1) & ~(page - 1);
    ElfW(Sym) *row = (ElfW(Sym) *)(uintptr_t)symbol;

    if (mprotect((void *)first, end - first, PROT_READ | PROT_WRITE) != 0) {
        return false;
    }
    row->st_shndx = SHN_UNDEF;
    row->st_value = 0;
    mprotect((void *)first, end - first, PROT_READ);
    return true;
}

bool xs_symbol_hide(const void *address, const char *name)
{
    Dl_info          info;
    struct link_map *map = NULL;

    if (dladdr1(address, &info, (void **)&map, RTLD_DL_LINKMAP) == 0) {
        return false;
    }
    struct tables tables = find_tables(map);
    for (size_t i = 1; i < tables.count; i++) {
        const ElfW(Sym) *symbol = &tables.symbols[i];

        if ((symbol->st_shndx != SHN_UNDEF) &&
            (strcmp(tables.names + symbol->st_name, name) == 0)) {
            return make_undefined(symbol);
        }
    }
    return false;
}
