/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory that the tests work on, and the device of this rank. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/params.h"
#include "measure/measure.h"

/* What libxccl's device layer has no call for, as only these tools need it. */
static const struct {
    const char *runtime, *library;
} libraries[] = {
    {"cuda", "libcuda.so.1"},
    {"rocm", "libamdhip64.so"},
    {"rocm", "libamdhip64.so.6"},
    {"rocm", "libamdhip64.so.7"},
};

/* A call of the device's library, by its name on either runtime. NULL: it is not loaded, or has
 * none. */
static void *call_of(const struct perf_run *run, const char *cuda, const char *rocm)
{
    bool  is_cuda = strcmp(run->dev->name, "cuda") == 0;
    void *address = NULL;

    for (size_t i = 0; (address == NULL) && (i < sizeof(libraries) / sizeof(libraries[0])); i++) {
        if (strcmp(libraries[i].runtime, run->dev->name) != 0) {
            continue;
        }
        void *lib = dlopen(libraries[i].library, RTLD_LAZY | RTLD_NOLOAD);
        if (lib != NULL) {
            address = dlsym(lib, is_cuda ? cuda : rocm);
            dlclose(lib); /* the device layer keeps it loaded */
        }
    }
    return address;
}

/* Value of XCCL_LOCAL_DEVICE, or NULL. */
static const char *wanted_device(void)
{
    size_t                     count;
    const struct xc_param_row *rows = xc_param_rows(&count);

    for (size_t i = 0; i < count; i++) {
        bool from_env;
        if (strcmp(rows[i].name, "XCCL_LOCAL_DEVICE") == 0) {
            const char *value = xc_param_value(i, &from_env);
            return (from_env && (value[0] != '\0')) ? value : NULL;
        }
    }
    return NULL;
}

static bool choose_device(struct perf_run *run)
{
    int         count = 0;
    const char *wanted = wanted_device();

    if (run->dev->count(&count) != xcclSuccess) {
        fprintf(stderr, "%s: rank %d: %s\n", run->tool, run->rank, xc_last_detail());
        return false;
    }
    if (wanted != NULL) {
        char *end;
        long  n = strtol(wanted, &end, 10);
        if ((*end != '\0') || (n < 0) || (n >= count)) {
            fprintf(stderr,
                    "%s: rank %d: XCCL_LOCAL_DEVICE=%s is none of this host's devices "
                    "0 to %d\n",
                    run->tool, run->rank, wanted, count - 1);
            return false;
        }
        run->device = (int)n;
        return true;
    }
    run->device = run->local_rank % count;
    if ((run->local_size > count) && (run->local_rank == 0)) {
        fprintf(stderr,
                "%s: warning: %d ranks share %d device(s) on this host, round robin; "
                "vendor libraries refuse that\n",
                run->tool, run->local_size, count);
    }
    return true;
}

/* Does this rank speak for all that have a device? */
static bool speaks_for_devices(const struct perf_run *run)
{
    return run->rank == ((run->opt.memory[0] != PERF_HOST) ? 0 : run->nranks / 2);
}

/* What runtime the ranks use that have a device: the same on all, also on those that have none. */
static void share_runtime(struct perf_run *run)
{
    int mine = (run->dev != NULL) ? 1 + (strcmp(run->dev->name, "rocm") == 0) : 0, all = 0;

    PMPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MAX, run->comm);
    run->runtime = (all == 0) ? NULL : ((all == 1) ? "cuda" : "rocm");
}

/* Adds the variable that may hide devices, with its value, to the end of a text. */
static void add_visible(char *text, size_t len)
{
    static const char *const names[] = {"CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES",
                                        "HIP_VISIBLE_DEVICES"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const char *value = getenv(names[i]);
        if (value != NULL) {
            size_t used = strlen(text);
            snprintf(text + used, len - used, " (%s='%s' hides the devices that it does not name)",
                     names[i], value);
        }
    }
}

/* What to do where no device is found, for a user who may have simulated others. */
static void add_remedy(char *text, size_t len)
{
    const char *sim = getenv("XCCL_SIM");

    if ((sim != NULL) && ((strncmp(sim, "hpu:", 4) == 0) || (strncmp(sim, "oneccl:", 7) == 0))) {
        snprintf(
            text, len,
            "%s simulates none; this tool measures on CUDA and ROCm: simulate cuda, rocm, msccl or mscclpp",
            sim);
    } else {
        snprintf(text, len, "run it on a node with GPUs, or simulate some: xccl-run --sim cuda:4");
    }
}

static bool start(struct perf_run *run)
{
    void *saved;

    run->scratch = malloc(PERF_CHUNK_BYTES);
    if (run->scratch == NULL) {
        fprintf(stderr, "%s: out of memory on rank %d\n", run->tool, run->rank);
        return false;
    }
    if (run->memory == PERF_HOST) {
        run->bounce = malloc(PERF_CHUNK_BYTES);
        return run->bounce != NULL;
    }
    if (xc_device_start(run->opt.device, &run->dev) != xcclSuccess) {
        run->dev = NULL;
        if ((run->local_rank == 0) || speaks_for_devices(run)) { /* the same on all of a host */
            char hidden[512] = "", remedy[256];
            add_visible(hidden, sizeof(hidden));
            add_remedy(remedy, sizeof(remedy));
            fprintf(stderr, "%s: rank %d: %s%s; %s\n", run->tool, run->rank, xc_last_detail(),
                    hidden, remedy);
        }
        return false;
    }
    if (!choose_device(run)) {
        return false;
    }
    if ((run->dev->enter(run->device, &saved) != xcclSuccess) ||
        (run->dev->stream_create(&run->stream) != xcclSuccess) ||
        (run->dev->host_alloc(&run->bounce, PERF_CHUNK_BYTES) != xcclSuccess)) {
        fprintf(stderr, "%s: rank %d, device %d: %s\n", run->tool, run->rank, run->device,
                xc_last_detail());
        return false;
    }
    return true;
}

bool perf_memory_start(struct perf_run *run)
{
    bool ok = start(run);

    share_runtime(run);
    return ok;
}

void perf_memory_stop(struct perf_run *run)
{
    free(run->scratch);
    if (run->dev == NULL) {
        free(run->bounce);
    } else {
        if (run->bounce != NULL) {
            (void)run->dev->host_free(run->bounce);
        }
        if (run->stream != NULL) {
            (void)run->dev->stream_destroy(run->stream);
        }
    }
}

static bool alloc_managed(const struct perf_run *run, void **ptr_p, size_t bytes)
{
    enum { ATTACH_GLOBAL = 1 };
    int (*alloc)(void **, size_t, unsigned) =
        (int (*)(void **, size_t, unsigned))call_of(run, "cuMemAllocManaged", "hipMallocManaged");

    if ((alloc != NULL) && (alloc(ptr_p, bytes, ATTACH_GLOBAL) == 0)) {
        return true;
    }
    fprintf(stderr, "%s: rank %d: no %zu bytes of managed memory on %s: %s\n", run->tool, run->rank,
            bytes, run->dev->name,
            (alloc != NULL) ? "the call fails" : "its library has no such call");
    return false;
}

/* How many ranks of this host have this rank's device. */
static int ranks_on_device(const struct perf_run *run)
{
    enum { LEN = 32 };
    MPI_Comm host;
    int      size, count = 0;
    char     mine[LEN] = "";

    PMPI_Comm_split_type(run->comm, MPI_COMM_TYPE_SHARED, run->rank, MPI_INFO_NULL, &host);
    PMPI_Comm_size(host, &size);
    /* Not by its number: ranks may each see one device alone. */
    (void)run->dev->bus_id_of(run->device, mine, sizeof(mine));
    char *all = calloc((size_t)size, LEN);
    if (perf_agree(run, all != NULL)) {
        PMPI_Allgather(mine, LEN, MPI_CHAR, all, LEN, MPI_CHAR, host);
        for (int i = 0; i < size; i++) {
            count += (strncmp(mine, all + (size_t)i * LEN, LEN) == 0);
        }
    } else {
        count = size;
    }
    free(all);
    PMPI_Comm_free(&host);
    return count;
}

size_t perf_memory_room(const struct perf_run *run)
{
    enum { PERCENT = 40 };
    int      ranks = ranks_on_device(run);
    size_t   unused, total = 0;
    uint64_t mine = UINT64_MAX, least = UINT64_MAX;
    int (*info)(size_t *, size_t *) =
        (int (*)(size_t *, size_t *))call_of(run, "cuMemGetInfo_v2", "hipMemGetInfo");

    /* Of all that there is, not of what is free: a run that goes on later has the same sizes. */
    if ((info != NULL) && (info(&unused, &total) == 0) && (total > 0)) {
        mine = (uint64_t)total / 100 * PERCENT / (uint64_t)ranks;
    }
    PMPI_Allreduce(&mine, &least, 1, MPI_UINT64_T, MPI_MIN, run->all);
    return (size_t)least;
}

void *perf_memory_alloc(const struct perf_run *run, size_t bytes)
{
    void *ptr = NULL;

    if (run->memory == PERF_HOST) {
        if (posix_memalign(&ptr, 4096, bytes) != 0) {
            fprintf(stderr, "%s: rank %d: no %zu bytes of host memory\n", run->tool, run->rank,
                    bytes);
            return NULL;
        }
        return ptr;
    }
    if (run->memory == PERF_MANAGED) {
        return alloc_managed(run, &ptr, bytes) ? ptr : NULL;
    }
    if (run->dev->mem_alloc(&ptr, bytes) != xcclSuccess) {
        fprintf(stderr, "%s: rank %d: no %zu bytes on device %d: %s\n", run->tool, run->rank, bytes,
                run->device, xc_last_detail());
        return NULL;
    }
    return ptr;
}

void perf_memory_free(const struct perf_run *run, void *ptr)
{
    if (run->memory == PERF_HOST) {
        free(ptr);
    } else if (ptr != NULL) {
        (void)run->dev->mem_free(ptr);
    }
}

static bool device_done(const struct perf_run *run, xcclResult_t res, const char *what)
{
    if (res == xcclSuccess) {
        res = run->dev->stream_sync(run->stream);
    }
    if (res != xcclSuccess) {
        fprintf(stderr, "%s: rank %d: cannot %s device memory: %s\n", run->tool, run->rank, what,
                xc_last_detail());
    }
    return res == xcclSuccess;
}

static bool copy(const struct perf_run *run, void *dst, const void *src, size_t bytes,
                 const char *what)
{
    if (run->dev == NULL) {
        memcpy(dst, src, bytes);
        return true;
    }
    return device_done(run, run->dev->copy_async(dst, src, bytes, run->stream), what);
}

bool perf_memory_write(const struct perf_run *run, void *dst, const void *src, size_t bytes)
{
    return copy(run, dst, src, bytes, "write");
}

bool perf_memory_read(const struct perf_run *run, void *dst, const void *src, size_t bytes)
{
    return copy(run, dst, src, bytes, "read");
}

bool perf_memory_set(const struct perf_run *run, void *dst, int byte, size_t bytes)
{
    if (bytes == 0) {
        return true;
    }
    if (run->dev == NULL) {
        memset(dst, byte, bytes);
        return true;
    }
    return device_done(run, run->dev->set_async(dst, byte, bytes, run->stream), "set");
}

/* MPI's own word on whether it takes pointers of this runtime. */
static bool mpi_takes_device_memory(const char *runtime)
{
    static const struct {
        const char *runtime, *symbol;
    } queries[] = {
        {"cuda", "MPIX_Query_cuda_support"},
        {"rocm", "MPIX_Query_rocm_support"},
        {"rocm", "MPIX_Query_hip_support"},
    };
    /* MPICH 3.4 ends the process when it is asked by the first of them. */
    int (*mpich)(int, int *) = (int (*)(int, int *))dlsym(RTLD_DEFAULT, "MPIX_GPU_query_support");

    if ((mpich != NULL) && (strcmp(runtime, "cuda") == 0)) {
        int yes = 0;
        return (mpich(0, &yes) == 0) && (yes != 0); /* 0: MPIX_GPU_SUPPORT_CUDA */
    }
    for (size_t i = 0; i < sizeof(queries) / sizeof(queries[0]); i++) {
        if (strcmp(queries[i].runtime, runtime) == 0) {
            int (*query)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, queries[i].symbol);
            if ((query != NULL) && (query() == 1)) {
                return true;
            }
        }
    }
    return false;
}

static bool interposer_is_loaded(void)
{
    return dlsym(RTLD_DEFAULT, "xccl_mpi_last_path") != NULL;
}

/* How this rank's last message went, as one of `paths`; -1: it says nothing of it. */
static int last_message_path(const char *const *paths, int count)
{
    const char *(*last)(void) =
        (const char *(*)(void))dlsym(RTLD_DEFAULT, "xccl_mpi_last_message_path");
    const char *path = (last != NULL) ? last() : NULL;

    for (int i = 0; (path != NULL) && (i < count); i++) {
        if (strcmp(path, paths[i]) == 0) {
            return i;
        }
    }
    return -1;
}

const char *perf_memory_path(const struct perf_run *run, size_t bytes)
{
    static const char *const paths[] = {"mpi", "mpi-staged", "fetched", "pipelined"};
    enum { PATHS = sizeof(paths) / sizeof(paths[0]) };
    int         mine[PATHS] = {0}, all[PATHS] = {0};
    const char *last = perf_path_last(), *found = "host";

    if ((strcmp(last, "no interposer") == 0) || (strcmp(last, "none") == 0)) {
        return last; /* nothing stands between the program and MPI, or it does not serve this MPI */
    }
    int path = last_message_path(paths, PATHS);
    if ((run->dev != NULL) && (path >= 0)) {
        mine[((run->memory == PERF_DEVICE) && (bytes > 0)) ? path : 0] = 1;
    }
    PMPI_Allreduce(mine, all, PATHS, MPI_INT, MPI_MAX, run->comm);
    for (int i = 0, kinds = 0; i < PATHS; i++) {
        kinds += all[i];
        found = all[i] ? ((kinds > 1) ? "mixed" : paths[i]) : found;
    }
    return found;
}

bool perf_memory_allowed(const struct perf_run *run)
{
    if ((run->dev == NULL) || (run->memory == PERF_MANAGED) || run->opt.force || run->opt.vendor ||
        interposer_is_loaded() || mpi_takes_device_memory(run->dev->name)) {
        return true;
    }
    if (speaks_for_devices(run)) {
        fprintf(stderr,
                "%s: this MPI does not say that it takes %s device memory, and xccl's "
                "interposer is not loaded; put xccl-run in front, use --mem host, or --force\n",
                run->tool, run->dev->name);
    }
    return false;
}
