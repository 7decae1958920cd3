/* SPDX-License-Identifier: BSD-3-Clause */
#include "vendor/vendor.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "xc_ccl_path.h" /* made by CMake: XC_CCL_PATH */

const char *xc_found_by_name(enum xc_found_by found_by)
{
    static const char *const names[] = {
        [XC_FOUND_LOADED] = "already loaded",
        [XC_FOUND_VARIABLE] = "XCCL_CCL_LIBRARY",
        [XC_FOUND_BUILT_IN] = "built-in path",
        [XC_FOUND_SONAME] = "soname",
    };
    return names[found_by];
}

/* What was tried so far, for the message at the end. */
struct trail {
    char   text[700];
    size_t len;
};

static void trail_add(struct trail *trail, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

static void trail_add(struct trail *trail, const char *fmt, ...)
{
    va_list ap;
    size_t  room = sizeof(trail->text) - trail->len;

    va_start(ap, fmt);
    int n = vsnprintf(trail->text + trail->len, room, fmt, ap);
    va_end(ap);
    trail->len += (n < (int)room) ? (size_t)n : room - 1;
}

static void real_path_of(void *handle, const char *fallback, char *buf, size_t len)
{
    struct link_map *map = NULL;
    const char      *name = fallback;
    char             resolved[PATH_MAX];

    if ((dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0) && (map != NULL) && (map->l_name[0] != '\0')) {
        name = map->l_name;
    }
    if (realpath(name, resolved) != NULL) {
        name = resolved;
    }
    /* Only for messages: of a path this long the end may be lost. */
    snprintf(buf, len, "%.*s", (int)len - 1, name);
}

static void found(struct xc_vendor_lib *lib_p, void *handle, const char *name,
                  enum xc_found_by found_by)
{
    lib_p->handle = handle;
    lib_p->found_by = found_by;
    real_path_of(handle, name, lib_p->path, sizeof(lib_p->path));
}

static const char *dl_error(void)
{
    const char *text = dlerror();
    return (text != NULL) ? text : "unknown error of the dynamic loader";
}

bool xc_vendor_loaded(const char *soname)
{
    void *handle = dlopen(soname, RTLD_NOLOAD | RTLD_LAZY | RTLD_LOCAL);

    if (handle == NULL) {
        return false;
    }
    dlclose(handle); /* only our reference */
    return true;
}

/* A second copy in one process would fight the first for devices and memory; so it is not opened,
 * but who asked for another file should know. */
static void warn_if_other(const struct xc_vendor_search *search, const struct xc_vendor_lib *lib)
{
    char resolved[PATH_MAX];

    if ((search->variable == NULL) ||
        ((realpath(search->variable, resolved) != NULL) && (strcmp(resolved, lib->path) == 0))) {
        return;
    }
    xc_warn("XCCL_CCL_LIBRARY=%s is not used: the program has already loaded %s", search->variable,
            lib->path);
}

static xcclResult_t open_file(const char *path, enum xc_found_by found_by,
                              const struct xc_vendor_search *search, struct xc_vendor_lib *lib_p)
{
    struct stat st;

    if ((stat(path, &st) == 0) && S_ISDIR(st.st_mode)) {
        return xc_fail(xcclLibraryNotFound,
                       "%s: %s (from %s) is a folder; name the library's file in it, such as %s/%s",
                       search->name, path, xc_found_by_name(found_by), path, search->soname);
    }
    if ((stat(path, &st) == 0) && !S_ISREG(st.st_mode)) { /* dlopen() would wait for a pipe */
        return xc_fail(
            xcclLibraryNotFound,
            "%s: %s (from %s) is a pipe or a device; name the library's file, such as %s",
            search->name, path, xc_found_by_name(found_by), search->soname);
    }
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL) {
        return xc_fail(
            xcclLibraryNotFound,
            "%s: cannot load %s (from %s): %s; correct the path, or repair the file or the "
            "libraries it needs (ldd shows them)",
            search->name, path, xc_found_by_name(found_by), dl_error());
    }
    found(lib_p, handle, path, found_by);
    return xcclSuccess;
}

xcclResult_t xc_vendor_open(const struct xc_vendor_search *search, struct xc_vendor_lib *lib_p)
{
    struct trail trail = {.len = 0};
    void        *handle = dlopen(search->soname, RTLD_NOLOAD | RTLD_NOW | RTLD_LOCAL);

    if (handle != NULL) {
        found(lib_p, handle, search->soname, XC_FOUND_LOADED);
        warn_if_other(search, lib_p);
        return xcclSuccess;
    }
    trail_add(&trail, "%s is not loaded by the program", search->soname);
    if (search->variable != NULL) {
        return open_file(search->variable, XC_FOUND_VARIABLE, search, lib_p);
    }
    trail_add(&trail, ", XCCL_CCL_LIBRARY is not set");
    if ((search->built_in != NULL) && (access(search->built_in, F_OK) == 0)) {
        return open_file(search->built_in, XC_FOUND_BUILT_IN, search, lib_p);
    }
    if (search->built_in != NULL) {
        trail_add(&trail, ", there is no %s (built-in path)", search->built_in);
    } else {
        trail_add(&trail, ", no path was built in");
    }
    if (search->by_soname) {
        handle = dlopen(search->soname, RTLD_NOW | RTLD_LOCAL);
        if (handle != NULL) {
            found(lib_p, handle, search->soname, XC_FOUND_SONAME);
            return xcclSuccess;
        }
        trail_add(&trail, ", by name: %s", dl_error());
    }
    return xc_fail(xcclLibraryNotFound, "no %s library: %s; set XCCL_CCL_LIBRARY to the file%s",
                   search->name, trail.text,
                   search->by_soname ? " or LD_LIBRARY_PATH to its folder" : "");
}

/* The address of a dynamic entry: glibc has relocated it, except on some machines. */
static const char *entry_address(const struct link_map *map, uintptr_t value)
{
    return (const char *)((value < map->l_addr) ? map->l_addr + value : value);
}

bool xc_vendor_soname(const struct xc_vendor_lib *lib, char *buf, size_t len)
{
    struct link_map *map = NULL;
    const char      *strings = NULL;
    size_t           offset = 0;
    bool             has = false;

    if ((dlinfo(lib->handle, RTLD_DI_LINKMAP, &map) != 0) || (map == NULL)) {
        return false;
    }
    for (const ElfW(Dyn) *d = map->l_ld; d->d_tag != DT_NULL; d++) {
        if (d->d_tag == DT_STRTAB) {
            strings = entry_address(map, d->d_un.d_ptr);
        } else if (d->d_tag == DT_SONAME) {
            offset = d->d_un.d_val;
            has = true;
        }
    }
    if (!has || (strings == NULL)) {
        return false;
    }
    snprintf(buf, len, "%s", strings + offset);
    return true;
}

void xc_vendor_close(struct xc_vendor_lib *lib)
{
    dlclose(lib->handle);
    lib->handle = NULL;
}

xcclResult_t xc_vendor_open_row(const struct xc_vendor_row *row, const char *explicit_path,
                                struct xc_vendor_lib *lib_p)
{
    char                    built_in[XC_PATH_MAX];
    struct xc_vendor_search search = {
        .name = row->name,
        .soname = row->soname,
        .variable = explicit_path,
        .built_in = xc_vendor_list_path(XC_CCL_PATH, row->name, built_in, sizeof(built_in)),
        .by_soname = true,
    };

    return xc_vendor_open(&search, lib_p);
}

xcclResult_t xc_vendor_resolve(const struct xc_vendor_lib *lib, const char *name,
                               const struct xc_vendor_symbol *symbols, size_t count, void *table)
{
    for (size_t i = 0; i < count; i++) {
        char *slot = (char *)table + symbols[i].offset;
        void *address;
        memcpy(&address, slot, sizeof(address));
        if (address != NULL) {
            continue; /* under another spelling */
        }
        address = dlsym(lib->handle, symbols[i].name);
        if (address != NULL) {
            memcpy(slot, &address, sizeof(address));
        } else if (symbols[i].required) {
            char since[16];
            return xc_fail(xcclLibraryNotFound,
                           "%s: %s (found by: %s) has no symbol %s, which is there from version %s "
                           "on; install a newer library or point XCCL_CCL_LIBRARY to one",
                           name, lib->path, xc_found_by_name(lib->found_by), symbols[i].name,
                           xc_nccl_version_text(symbols[i].since, since, sizeof(since)));
        }
    }
    return xcclSuccess;
}

const char *xc_vendor_list_path(const char *list, const char *name, char *buf, size_t len)
{
    size_t name_len = strlen(name);

    for (const char *p = list; *p != '\0';) {
        const char *end = strchrnul(p, ';');
        if ((strncmp(p, name, name_len) == 0) && (p[name_len] == '=')) {
            p += name_len + 1;
            snprintf(buf, len, "%.*s", (int)(end - p), p);
            return (buf[0] != '\0') ? buf : NULL;
        }
        p = (*end == ';') ? end + 1 : end;
    }
    return NULL;
}
