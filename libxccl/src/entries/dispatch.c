/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libxccl-mpi.so itself: the MPI functions that it takes over, for any MPI.
 *
 * It knows no mpi.h. At the first call it finds the MPI library in the process, learns its family
 * from the symbols it has, opens libxccl-mpi-<family>.so beside it and hands all calls to that. So
 * one file is preloaded whatever MPI a program uses, and in a program without MPI nothing happens.
 *
 * Arguments travel as longs. In the calling conventions of the 64-bit platforms (x86-64, AArch64,
 * POWER, RISC-V) every argument of these functions, int, pointer or handle, takes one integer
 * register or one 8-byte stack slot, so forwarding the slot forwards the argument.
 */
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/launch.h"
#include "entries/entries.h"
#include "xccl/xccl.h"

_Static_assert(sizeof(long) == sizeof(void *), "arguments are forwarded as longs");

#define DISPATCH_EXPORT __attribute__((visibility("default")))

typedef void (*function_t)(void);

static const struct xm_family *family;
static void                   *mpi_handle;
static function_t              libmpi_functions[XM_NUM_FUNCTIONS];
static bool                    tool_behind; /* one of ours has a function of a tool behind it */
static bool                    ready;       /* atomic: both are filled */

/* Messages between host buffers take 100 ns in all: while no device can be in use, no look at their
 * arguments. */
static const struct link_map        *no_anchor;
static const struct link_map *const *anchor_place = &no_anchor;
static const int                     nothing = XM_WATCHED_NONE;
static const int                    *watched = &nothing;

static bool never(const long *args)
{
    (void)args;
    return false;
}

static bool (*is_plain_receive)(const long *args) = never;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static const struct xm_function_row functions[XM_NUM_FUNCTIONS] = {XM_FUNCTION_ROWS};

static function_t lookup(void *handle, const char *name)
{
    void      *address = dlsym(handle, name);
    function_t function;

    memcpy(&function, &address, sizeof(function));
    return function;
}

/* The MPI library's own. */
static function_t lookup_own(void *libmpi, enum xm_function function)
{
    const char *name = functions[function].name;
    char        extension[64];
    function_t  found = lookup(libmpi, name);

    return ((found == NULL) && xm_extension_name(function, name, extension, sizeof(extension)))
               ? lookup(libmpi, extension)
               : found;
}

/* The names of all loaded objects, taken under the loader's lock and used without it. */
struct names {
    char **list;
    size_t count;
};

static int take_name(struct dl_phdr_info *info, size_t size, void *arg)
{
    struct names *names = arg;

    (void)size;
    if ((info->dlpi_name == NULL) || (info->dlpi_name[0] == '\0')) {
        return 0;
    }
    char **list = realloc(names->list, (names->count + 1) * sizeof(*list));
    if (list == NULL) {
        return 1;
    }
    names->list = list;
    list[names->count] = strdup(info->dlpi_name);
    names->count += (list[names->count] != NULL) ? 1 : 0;
    return 0;
}

/* Each MPI library has this one, and we do not: by it the library is found. */
static const char of_mpi_alone[] = "PMPI_Initialized";

/* The object that defines what a handle finds: a plugin's finds its dependencies' names too. */
static void *open_owner(void *handle)
{
    Dl_info info;
    void   *address = dlsym(handle, of_mpi_alone);

    return ((address != NULL) && (dladdr(address, &info) != 0))
               ? dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD) /* stays loaded */
               : NULL;
}

/*
 * For libraries outside the global scope: what the object that called us is linked with. Two may be
 * there, one with MPICH's ABI and one with the standard's, as where a tool looked into the first
 * one.
 */
static void *find_of_caller(const void *caller)
{
    Dl_info info;
    void   *handle = ((caller != NULL) && (dladdr(caller, &info) != 0))
                         ? dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD)
                         : NULL;
    void   *found = NULL;

    if (handle != NULL) {
        found = open_owner(handle);
        dlclose(handle);
    }
    return found;
}

/* The loaded object that is the MPI library. */
static void *find_private(void)
{
    struct names names = {NULL, 0};
    void        *found = NULL;

    dl_iterate_phdr(take_name, &names);
    for (size_t i = 0; i < names.count; i++) {
        void *handle = (found == NULL) ? dlopen(names.list[i], RTLD_LAZY | RTLD_NOLOAD) : NULL;
        if (handle != NULL) {
            found = open_owner(handle);
            dlclose(handle);
        }
        free(names.list[i]);
    }
    free(names.list);
    return found;
}

/* The MPI library of this process: the one that its calls would bind to without us. */
static void *find_mpi(const void *caller)
{
    Dl_info info;
    void   *address = dlsym(RTLD_DEFAULT, of_mpi_alone);

    if ((address != NULL) && (dladdr(address, &info) != 0)) {
        void *handle = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
        /* NULL when MPI is linked statically into the program. */
        return (handle != NULL) ? handle : dlopen(NULL, RTLD_LAZY);
    }
    void *found = find_of_caller(caller);
    return (found != NULL) ? found : find_private();
}

/* An MPI that is linked statically has a handle by which ours are found, too: NULL then. */
static void *find_query(void *libmpi, const char *name)
{
    Dl_info own, other;
    void   *address = (libmpi != NULL) ? dlsym(libmpi, name) : NULL;
    bool    ours = (address != NULL) && (dladdr(address, &other) != 0) &&
                (dladdr((void *)&ready, &own) != 0) && (other.dli_fbase == own.dli_fbase);

    return ours ? NULL : address;
}

/*
 * MPI 5 asks this of a library at any time. The standard ABI's handles are no other family's,
 * though its library may have symbols of one; and a library with an ABI of its own says -1.
 */
static bool has_standard_abi(void *libmpi)
{
    int (*version)(int *, int *);
    void *address = dlsym(libmpi, "PMPI_Abi_get_version");
    int   major = -1, minor = -1;

    memcpy(&version, &address, sizeof(version));
    return (version != NULL) && (version(&major, &minor) == 0) && (major > 0);
}

#define STANDARD_ABI "mpiabi"

static const char *family_of(void *libmpi)
{
    if (has_standard_abi(libmpi)) {
        return STANDARD_ABI;
    }
    if (dlsym(libmpi, "ompi_mpi_comm_world") != NULL) {
        return "openmpi";
    }
    /* The ABI that MPICH shares with Cray MPICH, Intel MPI, MVAPICH and ParaStation MPI. */
    if ((dlsym(libmpi, "MPIR_F_NeedInit") != NULL) ||
        (find_query(libmpi, "MPIX_Query_cuda_support") != NULL) ||
        (dlsym(libmpi, "MPIR_Dup_fn") != NULL) || (dlsym(libmpi, "MPIR_Err_create_code") != NULL)) {
        return "mpich";
    }
    return NULL;
}

/* One process of a node is enough to say so. */
static void warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

static void warn(const char *fmt, ...)
{
    char    text[4352]; /* a path, and what is said of it */
    va_list args;

    if (!xc_first_of_node()) {
        return;
    }
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    fprintf(stderr, "xccl warning: %s\n", text);
}

/* libxccl-mpi-<family>.so in the folder xccl beside this file. */
static const struct xm_family *open_family(const char *name)
{
    Dl_info info;
    char    path[4096];

    if ((name == NULL) || (dladdr((void *)&ready, &info) == 0)) {
        return NULL;
    }
    const char *slash = strrchr(info.dli_fname, '/');
    int         folder = (slash != NULL) ? (int)(slash - info.dli_fname) + 1 : 0;
    int         n =
        snprintf(path, sizeof(path), "%.*sxccl/libxccl-mpi-%s.so", folder, info.dli_fname, name);
    if ((n < 0) || (n >= (int)sizeof(path))) {
        return NULL;
    }
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if ((handle == NULL) && (strcmp(name, STANDARD_ABI) == 0) && (access(path, F_OK) != 0)) {
        warn("calls go to MPI alone: the program uses MPI's standard ABI, and this xccl was built "
             "without it; build xccl with mpicc_abi on PATH, or compile the program with mpicc, "
             "not mpicc_abi");
        return NULL;
    }
    if (handle == NULL) {
        warn("calls go to MPI alone: %s; install xccl again, with the mpicc of this MPI on PATH",
             dlerror());
        return NULL;
    }
    const struct xm_family *found = dlsym(handle, XM_FAMILY_SYMBOL);
    if ((found == NULL) || (found->abi != XM_FAMILY_ABI)) {
        warn("calls go to MPI alone: %s is of another version of xccl; install xccl again", path);
        dlclose(handle);
        return NULL;
    }
    return found;
}

static const char *file_of(function_t function)
{
    Dl_info info;
    void   *address;

    memcpy(&address, &function, sizeof(address));
    return ((address != NULL) && (dladdr(address, &info) != 0)) ? info.dli_fname : "";
}

/* The file of another copy of this library in a part of the search order, or NULL. */
static const char *copy_in(void *part)
{
    Dl_info own, other;
    void   *address = dlsym(part, "xccl_mpi_last_path");

    return ((address != NULL) && (dladdr(address, &other) != 0) &&
            (dladdr((void *)&ready, &own) != 0) && (other.dli_fbase != own.dli_fbase))
               ? other.dli_fname
               : NULL;
}

/*
 * What a tool behind us has of each function: the next one in the search order, unless that is the
 * MPI library's own or an alias of it, which the PMPI name reaches without another look; or that of
 * a copy of us.
 */
static void find_next(function_t next[XM_NUM_FUNCTIONS], const char *copy)
{
    for (int i = 0; i < XM_NUM_FUNCTIONS; i++) {
        function_t  found = lookup(RTLD_NEXT, functions[i].name + 1);
        const char *file = file_of(found);

        if ((found == NULL) || (libmpi_functions[i] == NULL) ||
            (strcmp(file, file_of(libmpi_functions[i])) == 0) ||
            ((copy != NULL) && (strcmp(file, copy) == 0))) {
            found = NULL;
        }
        next[i] = found;
        tool_behind = tool_behind || (found != NULL);
    }
}

static void set_up_family(void *libmpi)
{
    function_t  next[XM_NUM_FUNCTIONS];
    const char *copy = copy_in(RTLD_NEXT);

    if (copy != NULL) {
        warn("%s is loaded as well, and serves nothing; take one of the two out of LD_PRELOAD",
             copy);
    }
    find_next(next, copy);
    family = open_family(family_of(libmpi));
    if ((family != NULL) && (family->open(libmpi, next) != 0)) {
        family = NULL;
    }
    if ((family != NULL) && !tool_behind && !family->observes) {
        watched = family->watched();
        is_plain_receive = family->is_plain_receive;
        anchor_place = family->anchor();
    }
}

/* Of the first call into us: an address in the object that made it. */
static __thread const void *first_caller;

static void set_up(void)
{
    void *libmpi = find_mpi(first_caller);

    mpi_handle = libmpi;
    for (int i = 0; (libmpi != NULL) && (i < XM_NUM_FUNCTIONS); i++) {
        libmpi_functions[i] = lookup_own(libmpi, (enum xm_function)i);
    }
    if ((libmpi != NULL) && (copy_in(RTLD_DEFAULT) == NULL)) { /* else that one serves */
        set_up_family(libmpi);
    }
    __atomic_store_n(&ready, true, __ATOMIC_RELEASE);
}

static inline void need_set_up(const void *from)
{
    if (__builtin_expect(!__atomic_load_n(&ready, __ATOMIC_ACQUIRE), 0)) {
        first_caller = from;
        pthread_once(&once, set_up);
    }
}

/* MPI_ERR_OTHER, but MPI_ERR_INTERN in MPICH's family; only for a function that this MPI does not
 * have. */
static long no_function(enum xm_function function)
{
    fprintf(stderr, "xccl error: no MPI library in this process has %s\n",
            functions[function].name + 1);
    return 16;
}

static long serve(enum xm_function function, int profiling, const long *args, const void *from)
{
    need_set_up(from);
    if (__builtin_expect(family != NULL, 1)) {
        return family->call(function, profiling, args);
    }
    if (libmpi_functions[function] == NULL) {
        return no_function(function);
    }
    return xm_invoke(libmpi_functions[function], functions[function].arguments, args);
}

/* In one of Open MPI's libraries for Fortran? Each of their functions has one place that calls. */
static bool is_of_fortran(enum xm_function function, const void *from)
{
    static const void *known[XM_NUM_FUNCTIONS], *other[XM_NUM_FUNCTIONS]; /* atomic: a place */
    Dl_info            info;

    if (__atomic_load_n(&known[function], __ATOMIC_RELAXED) == from) {
        return true;
    }
    if ((__atomic_load_n(&other[function], __ATOMIC_RELAXED) == from) ||
        (dladdr(from, &info) == 0) || (info.dli_fname == NULL)) {
        return false;
    }
    const char *slash = strrchr(info.dli_fname, '/');
    const char *name = (slash != NULL) ? slash + 1 : info.dli_fname;
    bool        is = (strncmp(name, "libmpi_mpifh", strlen("libmpi_mpifh")) == 0) ||
              (strncmp(name, "libmpi_usempif08", strlen("libmpi_usempif08")) == 0);
    __atomic_store_n(is ? &known[function] : &other[function], from, __ATOMIC_RELAXED);
    return is;
}

/* A call with arrays that gives a request, by its profiling name: maybe from Fortran. */
static long serve_arrays(enum xm_function function, const long *args, const void *from)
{
    long code = serve(function, 1, args, from);

    if ((code == 0) && (family != NULL) && (family->stand_in_for_fortran != NULL) &&
        is_of_fortran(function, from)) {
        family->stand_in_for_fortran((void **)args[functions[function].arguments - 1]);
    }
    return code;
}

#define L0 void
#define L1 long a
#define L2 L1, long b
#define L3 L2, long c
#define L4 L3, long d
#define L5 L4, long e
#define L6 L5, long f
#define L7 L6, long g
#define L8 L7, long h
#define L9 L8, long i
#define L10 L9, long j
#define L11 L10, long k
#define L12 L11, long l
#define L13 L12, long m
#define A0 0
#define A1 a
#define A2 A1, b
#define A3 A2, c
#define A4 A3, d
#define A5 A4, e
#define A6 A5, f
#define A7 A6, g
#define A8 A7, h
#define A9 A8, i
#define A10 A9, j
#define A11 A10, k
#define A12 A11, l
#define A13 A12, m

#define CALLER __builtin_extract_return_addr(__builtin_return_address(0))

#define DEFINE_AS(name, fn, profiling, arguments)                                                  \
    DISPATCH_EXPORT long name(L##arguments);                                                       \
    DISPATCH_EXPORT long name(L##arguments)                                                        \
    {                                                                                              \
        const long args[] = {A##arguments};                                                        \
        return serve(fn, profiling, args, CALLER);                                                 \
    }

#define DEFINE(name, arguments) DEFINE_AS(name, XM_FN_##name, 0, arguments)

/*
 * The profiling names too, because Open MPI's Fortran functions (mpif.h, mpi and mpi_f08 alike)
 * and MPICH's of mpi_f08 call PMPI_Allreduce and not MPI_Allreduce; and so does a profiling tool
 * that stands in front of us. The MPI library's own PMPI functions are reached by its handle.
 */
#define DEFINE_PROFILING(name, arguments) DEFINE_AS(P##name, XM_FN_##name, 1, arguments)

#define DEFINE_BOTH(name, arguments) DEFINE(name, arguments) DEFINE_PROFILING(name, arguments)

/* Has it arrays of counts? Folded by the compiler. */
#define HAS_ARRAYS(kinds) (__builtin_strpbrk(kinds, "NM") != NULL)

#define DEFINE_REQUEST(name, arguments, kinds)                                                     \
    DEFINE(name, arguments)                                                                        \
    DISPATCH_EXPORT long P##name(L##arguments);                                                    \
    DISPATCH_EXPORT long P##name(L##arguments)                                                     \
    {                                                                                              \
        const long args[] = {A##arguments};                                                        \
        return HAS_ARRAYS(kinds) ? serve_arrays(XM_FN_##name, args, CALLER)                        \
                                 : serve(XM_FN_##name, 1, args, CALLER);                           \
    }

/* The names that these have in Open MPI 4.1. */
#define DEFINE_EXTENSION(name, n)                                                                  \
    DEFINE_AS(MPIX_##name##_init, XM_FN_MPI_##name##_init, 0, n)                                   \
    DEFINE_AS(PMPIX_##name##_init, XM_FN_MPI_##name##_init, 1, n)

#define DEFINE_SIX(name, small, capitals, n, ni, np, kinds)                                        \
    DEFINE_BOTH(MPI_##name, n)                                                                     \
    DEFINE_BOTH(MPI_##name##_c, n)                                                                 \
    DEFINE_REQUEST(MPI_I##small, ni, kinds)                                                        \
    DEFINE_REQUEST(MPI_I##small##_c, ni, kinds)                                                    \
    DEFINE_REQUEST(MPI_##name##_init, np, kinds)                                                   \
    DEFINE_EXTENSION(name, np)                                                                     \
    DEFINE_REQUEST(MPI_##name##_init_c, np, kinds)

XM_COLLECTIVES_WITH_COUNTS(DEFINE_SIX)
DEFINE_BOTH(MPI_Barrier, 1)
DEFINE_BOTH(MPI_Ibarrier, 2)
DEFINE_BOTH(MPI_Barrier_init, 3)
DEFINE_EXTENSION(Barrier, 3)
/*
 * A receive of a message, or a probe, and from which value of watched on it is ours; folded by the
 * compiler.
 */
#define RECEIVES(form, kinds)                                                                      \
    (((form) == 'Q') ||                                                                            \
     ((__builtin_strpbrk(kinds, "rb") != NULL) && (__builtin_strpbrk(kinds, "hw") == NULL)))
#define WATCHED_FROM(form)                                                                         \
    ((((form) == 'B') || ((form) == 'Q')) ? XM_WATCHED_ALL : XM_WATCHED_NONBLOCKING)

#define DEFINE_TRANSFER(name, fn, profiling, arguments, form, kinds)                               \
    DISPATCH_EXPORT long name(L##arguments);                                                       \
    DISPATCH_EXPORT long name(L##arguments)                                                        \
    {                                                                                              \
        if (__builtin_expect(xc_anchor_is_last(anchor_place), 1) &&                                \
            (libmpi_functions[fn] != NULL) && ((form) != 'Z') &&                                   \
            (!RECEIVES(form, kinds) ||                                                             \
             (__atomic_load_n(watched, __ATOMIC_RELAXED) < (int)WATCHED_FROM(form)))) {            \
            return ((long (*)(L##arguments))libmpi_functions[fn])(A##arguments);                   \
        }                                                                                          \
        const long args[] = {A##arguments};                                                        \
        if (((fn) == XM_FN_MPI_Irecv) && xc_anchor_is_last(anchor_place) &&                        \
            is_plain_receive(args)) {                                                              \
            return ((long (*)(L##arguments))libmpi_functions[fn])(A##arguments);                   \
        }                                                                                          \
        return serve(fn, profiling, args, CALLER);                                                 \
    }
#define DEFINE_ONE(name, n, form, kinds)                                                           \
    DEFINE_TRANSFER(MPI_##name, XM_FN_MPI_##name, 0, n, form, kinds)                               \
    DEFINE_TRANSFER(PMPI_##name, XM_FN_MPI_##name, 1, n, form, kinds)
#define DEFINE_TWO(name, n, form, kinds)                                                           \
    DEFINE_ONE(name, n, form, kinds)                                                               \
    DEFINE_ONE(name##_c, n, form, kinds)

XM_TRANSFERS_WITH_COUNTS(DEFINE_TWO)
XM_TRANSFERS_WITHOUT_COUNTS(DEFINE_ONE)
XM_OTHER_FUNCTIONS(DEFINE_BOTH)
XM_PROFILING_FUNCTIONS(DEFINE_PROFILING)

#define DEFINE_MESSAGE(name, n)                                                                    \
    DEFINE_BOTH(MPIX_##name##_enqueue, n)                                                          \
    DEFINE_BOTH(MPIX_##name##_enqueue_c, n)
#define DEFINE_ENQUEUED(name, capitals, n) DEFINE_MESSAGE(name, n)
XM_STREAM_FUNCTIONS(DEFINE_BOTH)
XM_ENQUEUED_COLLECTIVES(DEFINE_ENQUEUED)
XM_ENQUEUED_MESSAGES(DEFINE_MESSAGE)

/* MPI_Comm is an int or a pointer, so a long carries it. */
DISPATCH_EXPORT int xcclCommInitMPI(void **comm_p, long mpi_comm);
DISPATCH_EXPORT int xcclCommInitMPI(void **comm_p, long mpi_comm)
{
    need_set_up(CALLER);
    if (family == NULL) {
        fprintf(stderr, "xccl error: xcclCommInitMPI: no MPI library in this process is served\n");
        return xcclUnsupported;
    }
    return family->comm_init_mpi(comm_p, mpi_comm);
}

DISPATCH_EXPORT int xcclTuneMPI(const char *rows);
DISPATCH_EXPORT int xcclTuneMPI(const char *rows)
{
    need_set_up(CALLER);
    if (family == NULL) {
        fprintf(stderr, "xccl error: xcclTuneMPI: no MPI library in this process is served\n");
        return xcclUnsupported;
    }
    return family->tune(rows);
}

/*
 * Programs ask these whether they may pass device memory, at any time. They are no functions of the
 * standard: Open MPI has the first two, MPICH the first and the last two.
 */
static int query_support(const char *runtime, const char *name, const void *from)
{
    int (*query)(void);

    need_set_up(from);
    if ((family != NULL) && family->serves(runtime)) {
        return 1;
    }
    void *address = find_query(mpi_handle, name);
    memcpy(&query, &address, sizeof(query));
    return (query != NULL) ? query() : 0;
}

#define DEFINE_QUERY(name, runtime)                                                                \
    DISPATCH_EXPORT int name(void);                                                                \
    DISPATCH_EXPORT int name(void)                                                                 \
    {                                                                                              \
        return query_support(runtime, #name, CALLER);                                              \
    }

DEFINE_QUERY(MPIX_Query_cuda_support, "cuda")
DEFINE_QUERY(MPIX_Query_rocm_support, "rocm")
DEFINE_QUERY(MPIX_Query_hip_support, "rocm")

DISPATCH_EXPORT int MPIX_GPU_query_support(int gpu_type, int *is_supported);
DISPATCH_EXPORT int MPIX_GPU_query_support(int gpu_type, int *is_supported)
{
    enum { CUDA = 0, HIP = 2 }; /* MPIX_GPU_SUPPORT_CUDA, ... */
    const char *runtime = (gpu_type == CUDA) ? "cuda" : (gpu_type == HIP) ? "rocm" : NULL;
    int (*query)(int, int *);

    need_set_up(CALLER);
    if ((runtime != NULL) && (family != NULL) && family->serves(runtime)) {
        *is_supported = 1;
        return 0;
    }
    void *address = find_query(mpi_handle, "MPIX_GPU_query_support");
    memcpy(&query, &address, sizeof(query));
    if (query != NULL) {
        return query(gpu_type, is_supported);
    }
    *is_supported = 0;
    return 0;
}

/* "mpi", "ccl", ... for the last collective of this thread; NULL in a process without MPI. */
DISPATCH_EXPORT const char *xccl_mpi_last_path(void);
DISPATCH_EXPORT const char *xccl_mpi_last_path(void)
{
    need_set_up(CALLER);
    return (family != NULL) ? family->last_path() : NULL;
}

/*
 * "fetched", "pipelined" or "mpi-staged" for this thread's last message, file access or packing on
 * memory that MPI cannot reach; "mpi" while there was none.
 */
DISPATCH_EXPORT const char *xccl_mpi_last_message_path(void);
DISPATCH_EXPORT const char *xccl_mpi_last_message_path(void)
{
    need_set_up(CALLER);
    return (family != NULL) ? family->last_message_path() : NULL;
}

/*
 * Why this thread's last collective on device memory did not take path "ccl" or "direct"; NULL:
 * that could have carried it. Valid until the thread's next collective.
 */
DISPATCH_EXPORT const char *xccl_mpi_last_obstacle(const char *path);
DISPATCH_EXPORT const char *xccl_mpi_last_obstacle(const char *path)
{
    need_set_up(CALLER);
    return (family != NULL) ? family->last_obstacle(path) : NULL;
}
