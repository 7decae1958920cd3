/* SPDX-License-Identifier: BSD-3-Clause */
#include "mpi/mpi.h"

#include <ctype.h>
#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/launch.h"
#include "base/log.h"
#include "base/params.h"

struct xm_pmpi    xm_pmpi;
struct xm_handles xm_handles;

static void    *mpi_library;
static uint32_t spawned;

xm_function_t        xm_mpi_functions[XM_NUM_FUNCTIONS];
static xm_function_t next_functions[XM_NUM_FUNCTIONS];

/* Calls of this thread that are inside a tool behind us, and the last one's place on the stack: an
 * error handler may have left it by longjmp(). */
static __thread int         forwarded;
static __thread const void *forwarded_frame;

struct function {
    const char *name;
    size_t      offset;
};

static const struct function needed[] = {
#define XM_ROW(name) {"PMPI_" #name, offsetof(struct xm_pmpi, name)},
    XM_PMPI(XM_ROW)
#undef XM_ROW
};

static const struct xm_function_row functions[XM_NUM_FUNCTIONS] = {XM_FUNCTION_ROWS};

const char *xm_mpi_function_name(enum xm_function function)
{
    return functions[function].name + 1;
}

int xm_mpi_arguments(enum xm_function function)
{
    return functions[function].arguments;
}

void *xm_mpi_symbol(const char *name)
{
    return dlsym(mpi_library, name);
}

void *xm_mpi_variable(const char *name)
{
    /* An executable may hold a copy of the variable, which then is the one that all use, the MPI
     * library too; only the global scope knows it. */
    void *address = dlsym(RTLD_DEFAULT, name);

    return (address != NULL) ? address : dlsym(mpi_library, name);
}

static void fill(void *field, const char *name)
{
    void *address = xm_mpi_symbol(name);

    memcpy(field, &address, sizeof(address));
}

#if XM_STANDARD_ABI
/* Versions with one first number understand each other; handles and statuses of others may differ.
 */
static xcclResult_t check_abi(void)
{
    int (*version)(int *, int *) = NULL;
    int major = -1, minor = -1;

    fill(&version, "PMPI_Abi_get_version");
    if ((version == NULL) || (version(&major, &minor) != MPI_SUCCESS) ||
        (major != MPI_ABI_VERSION)) {
        return xc_fail(
            xcclUnsupported,
            "the MPI library has version %d.%d of MPI's standard ABI, and xccl was built "
            "with %d.%d; build it with the mpicc_abi of that library",
            major, minor, MPI_ABI_VERSION, MPI_ABI_SUBVERSION);
    }
    return xcclSuccess;
}
#else
static xcclResult_t check_abi(void)
{
    return xcclSuccess; /* the family was known by what only its ABI has */
}
#endif

xcclResult_t xm_mpi_open(void *libmpi, void (*const next[XM_NUM_FUNCTIONS])(void))
{
    mpi_library = libmpi;
    xcclResult_t res = check_abi();
    if (res != xcclSuccess) {
        return res;
    }
    for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++) {
        if (xm_mpi_symbol(needed[i].name) == NULL) {
            return xc_fail(xcclUnsupported,
                           "the MPI library lacks %s; xccl needs one of MPI-3.0 or later",
                           needed[i].name);
        }
        fill((char *)&xm_pmpi + needed[i].offset, needed[i].name);
    }
    for (int i = 0; i < XM_NUM_FUNCTIONS; i++) {
        char extension[64];
        fill(&xm_mpi_functions[i], functions[i].name);
        if ((xm_mpi_functions[i] == NULL) &&
            xm_extension_name((enum xm_function)i, functions[i].name, extension,
                              sizeof(extension))) {
            fill(&xm_mpi_functions[i], extension);
        }
        next_functions[i] = next[i];
    }
#if XM_OPENMPI
#define XM_SET(type, name, variable) xm_handles.h_##name = (type)xm_mpi_variable(#variable);
#else
#define XM_SET(type, name, variable) xm_handles.h_##name = name;
#endif
    XM_HANDLES(XM_SET)
#undef XM_SET
    return xcclSuccess;
}

bool xm_mpi_is_forwarded(void)
{
    if ((forwarded > 0) && ((uintptr_t)__builtin_frame_address(0) >= (uintptr_t)forwarded_frame)) {
        forwarded = 0;
    }
    return forwarded > 0;
}

long xm_mpi_forward(enum xm_function function, int profiling, const long *args)
{
    xm_function_t next = next_functions[function];

    if (__builtin_expect((next == NULL) || profiling, 1)) {
        return xm_invoke(xm_mpi_functions[function], functions[function].arguments, args);
    }
    /* The tool goes on to PMPI_..., which is ours too: that call must not be served again. */
    int         before = forwarded;
    const void *frame = forwarded_frame;
    forwarded = before + 1;
    forwarded_frame = __builtin_frame_address(0);
    long res = xm_invoke(next, functions[function].arguments, args);
    forwarded = before;
    forwarded_frame = frame;
    return res;
}

long xm_mpi_go_on(enum xm_function function, const long *args)
{
    int before = forwarded;

    forwarded = 0;
    long res = xm_invoke(xm_mpi_functions[function], functions[function].arguments, args);
    forwarded = before;
    return res;
}

void xm_mpi_ask_spawned(void)
{
    MPI_Comm parent = XM_HANDLE(MPI_COMM_NULL);

    if ((xm_pmpi.Comm_get_parent(&parent) == MPI_SUCCESS) && (parent != XM_HANDLE(MPI_COMM_NULL))) {
        spawned = xc_world_number();
    }
}

uint32_t xm_mpi_spawned(void)
{
    return spawned;
}

bool xm_mpi_has_world(void)
{
    int initialized = 0, finalized = 0;

    return (xm_pmpi.Initialized(&initialized) == MPI_SUCCESS) && initialized &&
           (xm_pmpi.Finalized(&finalized) == MPI_SUCCESS) && !finalized;
}

bool xm_mpi_make_self(MPI_Comm *comm_p)
{
    MPI_Group group;

    *comm_p = XM_HANDLE(MPI_COMM_NULL);
    if (!xm_mpi_has_world() ||
        (xm_pmpi.Comm_group(XM_HANDLE(MPI_COMM_SELF), &group) != MPI_SUCCESS)) {
        return false;
    }
    /* Not a duplicate: that would call the program's copy callbacks. */
    bool made = (xm_pmpi.Comm_create(XM_HANDLE(MPI_COMM_SELF), group, comm_p) == MPI_SUCCESS);
    if (made) {
        xm_pmpi.Comm_set_errhandler(*comm_p, XM_HANDLE(MPI_ERRORS_RETURN));
    }
    xm_pmpi.Group_free(&group);
    return made;
}

/* Not libxccl-mpi.so's, which answers for us: one finds that beside an MPI that is linked
 * statically. */
static void *query_symbol(const char *name)
{
    Dl_info dispatch, found;
    void   *ours = dlsym(RTLD_DEFAULT, "xccl_mpi_last_path"), *address = xm_mpi_symbol(name);

    return ((address != NULL) && (ours != NULL) && (dladdr(ours, &dispatch) != 0) &&
            (dladdr(address, &found) != 0) && (dispatch.dli_fbase == found.dli_fbase))
               ? NULL
               : address;
}

/* In MPICH 3.4 MPIX_Query_cuda_support() ends the process by a wrong assertion. It only asks this
 * one, which can go when nobody uses MPICH 3.4 any longer. */
static bool ask_mpich(const char *runtime, bool *answer_p)
{
    enum { CUDA = 0 }; /* MPIX_GPU_SUPPORT_CUDA; for others MPICH 3.4 fails */
    int (*query)(int, int *);
    void *address = query_symbol("MPIX_GPU_query_support");
    int   yes = 0;

    if ((address == NULL) || (strcmp(runtime, "cuda") != 0)) {
        return false;
    }
    memcpy(&query, &address, sizeof(query));
    *answer_p = (query(CUDA, &yes) == 0) && (yes != 0);
    return true;
}

/* MPI's own answer; XC_AUTO: it gives none. */
static int ask_gpu_aware(const char *runtime)
{
    bool answer;

    if (ask_mpich(runtime, &answer)) {
        return answer ? XC_YES : XC_NO;
    }
    /* Open MPI and MPICH spell the question the same, except for AMD. */
    const char *const cuda[] = {"MPIX_Query_cuda_support", NULL};
    const char *const rocm[] = {"MPIX_Query_rocm_support", "MPIX_Query_hip_support", NULL};
    const char *const none[] = {NULL}; /* of Gaudi no MPI tells */

    for (const char *const *name = (strcmp(runtime, "cuda") == 0)   ? cuda
                                   : (strcmp(runtime, "rocm") == 0) ? rocm
                                                                    : none;
         *name != NULL; name++) {
        int (*query)(void);
        void *address = query_symbol(*name);
        memcpy(&query, &address, sizeof(query));
        if (query != NULL) {
            return (query() == 1) ? XC_YES : XC_NO;
        }
    }
    return XC_AUTO;
}

bool xm_mpi_denies_gpu_aware(const char *runtime)
{
    return ask_gpu_aware(runtime) == XC_NO;
}

/* Asked once: the answer does not change, and dlsym() is slow. */
bool xm_mpi_gpu_aware(const char *runtime)
{
    static int known[3]; /* atomic; 0: not asked yet, 1: no, 2: yes */
    int        forced = xc_params()->mpi_gpu_aware;
    int       *answer = &known[(strcmp(runtime, "cuda") == 0) + 2 * (strcmp(runtime, "rocm") == 0)];

    if (forced != XC_AUTO) {
        return forced == XC_YES;
    }
    if (__atomic_load_n(answer, __ATOMIC_RELAXED) == 0) {
        __atomic_store_n(answer, (ask_gpu_aware(runtime) == XC_YES) ? 2 : 1, __ATOMIC_RELAXED);
    }
    return __atomic_load_n(answer, __ATOMIC_RELAXED) == 2;
}

bool xm_mpi_is_openmpi(void)
{
#if XM_STANDARD_ABI
    static int known; /* atomic; 0: not asked yet, 1: no, 2: yes */
    char       text[MPI_MAX_LIBRARY_VERSION_STRING + 1] = "";
    int        n = 0;

    if (__atomic_load_n(&known, __ATOMIC_RELAXED) == 0) {
        bool yes = (xm_pmpi.Get_library_version(text, &n) == MPI_SUCCESS) &&
                   (strncmp(text, "Open MPI", strlen("Open MPI")) == 0);
        __atomic_store_n(&known, yes ? 2 : 1, __ATOMIC_RELAXED);
    }
    return __atomic_load_n(&known, __ATOMIC_RELAXED) == 2;
#else
    return XM_OPENMPI;
#endif
}

/* Each stretch of blanks becomes one; none at the ends. */
static void squeeze(char *text)
{
    char *to = text;

    for (const char *p = text; *p != '\0'; p++) {
        if (!isspace((unsigned char)*p)) {
            *to++ = *p;
        } else if ((to > text) && (to[-1] != ' ')) {
            *to++ = ' ';
        }
    }
    if ((to > text) && (to[-1] == ' ')) {
        to--;
    }
    *to = '\0';
}

/* "MPICH Version:  4.0.2", "MPI VERSION : CRAY MPICH version 8.1", "Open MPI v4.1.4, package: ..."
 */
static void shorten_version(char *text, char *buf, size_t len)
{
    static const char word[] = " version";

    text[strcspn(text, "\n,")] = '\0';
    char *value = strchr(text, ':');
    if (value == NULL) {
        squeeze(text);
        snprintf(buf, len, "%s", text);
        return;
    }
    *value++ = '\0';
    squeeze(text);
    squeeze(value);
    size_t n = strlen(text), w = sizeof(word) - 1;
    if ((n >= w) && (strcasecmp(text + n - w, word) == 0)) {
        text[n - w] = '\0';
    }
    if (strcmp(text, "MPI") == 0) {
        snprintf(buf, len, "%s", value);
    } else {
        snprintf(buf, len, "%s %s", text, value);
    }
}

void xm_mpi_name(char *buf, size_t len)
{
    char text[MPI_MAX_LIBRARY_VERSION_STRING + 1] = "";
    int  n = 0;

    if ((xm_pmpi.Get_library_version(text, &n) != MPI_SUCCESS) || (text[0] == '\0')) {
        snprintf(buf, len, "%s",
                 XM_STANDARD_ABI ? "an MPI"
                 : XM_OPENMPI    ? "an Open MPI"
                                 : "an MPICH");
        return;
    }
    shorten_version(text, buf, len);
}
