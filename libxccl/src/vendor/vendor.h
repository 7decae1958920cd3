/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Vendor libraries: which there are, how one is found and opened. The only place that names a
 * vendor's file. Nothing here keeps state: who opens a library keeps what was found.
 */
#ifndef XC_VENDOR_VENDOR_H
#define XC_VENDOR_VENDOR_H

#include <stdbool.h>
#include <stddef.h>

#include "base/log.h"
#include "vendor/hccl_abi.h"
#include "vendor/nccl_abi.h"
#include "vendor/oneccl_abi.h"
#include <xccl/xccl.h>

#define XC_PATH_MAX 1024

#define XC_NEVER 2147483647 /* no version has it */

/*
 * A library: its names, and what it can do before anything is asked of it. Versions are of the
 * library itself; 0 is every version.
 */
struct xc_vendor_row {
    const char *name;     /* "nccl" */
    const char *soname;   /* "libnccl.so.2" */
    const char *device;   /* device runtime it works on: "cuda" */
    const char *variable; /* environment variable that the library cannot do without, or NULL */
    const char *remedy;   /* what to set it to */
    /* A symbol of each generation that tells a fork from what it forked; NULL-terminated or NULL */
    const char *const *marks;
    /* Symbols that are there and do not do what they are for; NULL-terminated or NULL */
    const char *const *hollow;
    size_t             id_bytes; /* size of its unique id */
    int                min_version;
    int                type_since[xcclNumTypes];
    int                op_since[xcclNumOps];
    unsigned           only_moved; /* a bit for each type that is moved and never reduced */
};

/* Does this version of the library have the type? row: NULL where none is loaded. */
bool xc_vendor_has_type(const struct xc_vendor_row *row, int version, xcclDataType_t type);

/* Places of the rows in the table; the NCCL family comes first. */
enum {
    XC_ROW_NCCL,
    XC_ROW_RCCL,
    XC_ROW_MSCCL,
    XC_ROW_MSCCLPP,
    XC_NUM_NCCL_ROWS,
    XC_ROW_ONECCL = XC_NUM_NCCL_ROWS,
    XC_ROW_HCCL,
    XC_NUM_ROWS,
};

/* All of them. */
const struct xc_vendor_row *xc_vendor_rows(void);

enum xc_found_by {
    XC_FOUND_LOADED,   /* the process had it already */
    XC_FOUND_VARIABLE, /* XCCL_CCL_LIBRARY */
    XC_FOUND_BUILT_IN, /* path set when xccl was built */
    XC_FOUND_SONAME,   /* the loader's search path */
};
const char *xc_found_by_name(enum xc_found_by found_by);

/* An opened library. */
struct xc_vendor_lib {
    void            *handle;
    char             path[XC_PATH_MAX]; /* real path of the file */
    enum xc_found_by found_by;
};

/* A symbol to look up; the address goes to `offset` of the caller's table of functions. */
struct xc_vendor_symbol {
    const char *name;
    size_t      offset;
    int         since; /* first version that has it, for the message */
    bool        required;
};

/* What to look for and where. */
struct xc_vendor_search {
    const char *name;     /* "nccl", for messages */
    const char *soname;   /* also recognises a library already loaded */
    const char *variable; /* value of XCCL_CCL_LIBRARY, or NULL */
    const char *built_in; /* path set at build time, or NULL; skipped where there is no such file */
    bool        by_soname; /* may the loader's search path decide which file it is? */
};

/*
 * Open what `search` describes, in this order: already loaded, variable, built_in, soname. A file
 * that is there but cannot be loaded ends the search: the next one would hide the fault.
 */
xcclResult_t xc_vendor_open(const struct xc_vendor_search *search, struct xc_vendor_lib *lib_p);
void         xc_vendor_close(struct xc_vendor_lib *lib);

/* Open row's library: `explicit_path` is XCCL_CCL_LIBRARY, or NULL. */
xcclResult_t xc_vendor_open_row(const struct xc_vendor_row *row, const char *explicit_path,
                                struct xc_vendor_lib *lib_p);

/* The soname written in the library; false if it has none. */
bool xc_vendor_soname(const struct xc_vendor_lib *lib, char *buf, size_t len);

/* Is a library of this soname in the process already? Loads nothing. */
bool xc_vendor_loaded(const char *soname);

/* Fill the table of functions; a required symbol that is missing is a failure that names it. */
xcclResult_t xc_vendor_resolve(const struct xc_vendor_lib *lib, const char *name,
                               const struct xc_vendor_symbol *symbols, size_t count, void *table);

/* Path of `name` in the list "nccl=/a;rccl=/b"; NULL if it has none. */
const char *xc_vendor_list_path(const char *list, const char *name, char *buf, size_t len);

/* An opened library of the NCCL family. */
struct xc_nccl_lib {
    const struct xc_vendor_row *row;
    struct xc_vendor_lib        file;
    struct xc_nccl_fns          fns;
    int                         version;
};

/*
 * Open row's library, look up its symbols and ask its version. `explicit_path` may be NULL.
 * exactly: a fork of it under the same file name is refused; else lib_p->row tells which it is.
 */
xcclResult_t xc_nccl_open(const struct xc_vendor_row *row, const char *explicit_path, bool exactly,
                          struct xc_nccl_lib *lib_p);

/* An opened oneCCL. */
#define XC_ONECCL_MIN_VERSION 20220100
struct xc_oneccl_lib {
    const struct xc_vendor_row *row;
    struct xc_vendor_lib        file;
    struct xc_oneccl_fns        fns;
    int                         version;
};

xcclResult_t xc_oneccl_open(const char *explicit_path, struct xc_oneccl_lib *lib_p);
/* Will oneCCL use its plugin for host memory, which knows no devices? */
bool xc_oneccl_on_host(void);

/* An opened HCCL. */
#define XC_HCCL_MIN_VERSION 2600
struct xc_hccl_lib {
    const struct xc_vendor_row *row;
    struct xc_vendor_lib        file;
    struct xc_hccl_fns          fns;
    int                         version;
};

xcclResult_t xc_hccl_open(const char *explicit_path, struct xc_hccl_lib *lib_p);

/* Open a row's library as xc_nccl_open() and its like do, to say what there is. */
xcclResult_t xc_vendor_probe(const struct xc_vendor_row *row, struct xc_vendor_lib *lib_p,
                             int *version_p);

/*
 * Would the vendor's library find a network other than TCP on this node: verbs, or a plugin? From
 * the environment and the loader's search path; nothing is loaded. Asked once.
 */
XC_SHARED bool xc_vendor_fabric(void);
/* The same of plugins alone, of those that the value of NCCL_NET_PLUGIN names; "": of the usual. */
bool xc_vendor_has_plugin(const char *wanted);

/* "2.28.3" from 22803 (from 2.9 on), "2.7.8" from 2708 (before), "0.10.0" from 1000 (MSCCL++). */
const char *xc_nccl_version_text(int version, char *buf, size_t len);

#endif
