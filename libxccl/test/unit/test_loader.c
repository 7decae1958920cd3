/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which library is taken, and what is said when none can be. Each case runs in a process of its
 * own, with its own environment: a process chooses once.
 */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backends/backend.h"
#include "base/log.h"
#include "check.h"
#include "vendor/vendor.h"

/* Paths are relative to the folder of stand-ins. NULL: not set. */
struct scenario {
    const char  *what;
    const char  *ccl;         /* XCCL_CCL */
    const char  *variable;    /* XCCL_CCL_LIBRARY */
    const char  *search_path; /* LD_LIBRARY_PATH */
    const char  *preopened;   /* loaded by "the program" before */
    const char  *nccl;        /* MSCCLPP_NCCL_LIB_PATH */
    xcclResult_t result;
    const char  *name, *path, *found_by; /* on success */
    const char  *says[4];                /* on failure, parts of the detail */
};

static const struct scenario scenarios[] = {
    {.what = "soname",
     .search_path = "nccl-2.32",
     .name = "nccl",
     .path = "nccl-2.32/libnccl.so.2",
     .found_by = "soname"},
    {.what = "variable before soname",
     .variable = "nccl-2.23/libnccl.so.2",
     .search_path = "nccl-2.32",
     .name = "nccl",
     .path = "nccl-2.23/libnccl.so.2",
     .found_by = "XCCL_CCL_LIBRARY"},
    {.what = "loaded before variable",
     .variable = "nccl-2.23/libnccl.so.2",
     .search_path = "nccl-2.7",
     .preopened = "nccl-2.32/libnccl.so.2",
     .name = "nccl",
     .path = "nccl-2.32/libnccl.so.2",
     .found_by = "already loaded"},
    {.what = "loaded RCCL before NCCL by soname",
     .search_path = "nccl-2.32",
     .preopened = "rccl/librccl.so.1",
     .name = "rccl",
     .path = "rccl/librccl.so.1",
     .found_by = "already loaded"},
    {.what = "RCCL where there is no NCCL",
     .search_path = "rccl",
     .name = "rccl",
     .path = "rccl/librccl.so.1",
     .found_by = "soname"},
    {.what = "RCCL by its file's name",
     .variable = "rccl/librccl.so.1",
     .search_path = "nccl-2.32",
     .name = "rccl",
     .path = "rccl/librccl.so.1",
     .found_by = "XCCL_CCL_LIBRARY"},
    {.what = "RCCL on demand",
     .ccl = "rccl",
     .search_path = "nccl-2.32:rccl",
     .name = "rccl",
     .path = "rccl/librccl.so.1",
     .found_by = "soname"},
    {.what = "oldest supported",
     .ccl = "nccl",
     .search_path = "nccl-2.7",
     .name = "nccl",
     .path = "nccl-2.7/libnccl.so.2",
     .found_by = "soname"},
    {.what = "MSCCL by path",
     .ccl = "msccl",
     .variable = "msccl/libnccl.so.2",
     .search_path = "nccl-2.32",
     .name = "msccl",
     .path = "msccl/libnccl.so.2",
     .found_by = "XCCL_CCL_LIBRARY"},
    {.what = "MSCCL by soname",
     .ccl = "msccl",
     .search_path = "msccl",
     .name = "msccl",
     .path = "msccl/libnccl.so.2",
     .found_by = "soname"},
    {.what = "MSCCL in NCCL's place",
     .search_path = "msccl",
     .name = "msccl",
     .path = "msccl/libnccl.so.2",
     .found_by = "soname"},
    {.what = "MSCCL that is NCCL",
     .ccl = "msccl",
     .search_path = "nccl-2.32",
     .result = xcclLibraryNotFound,
     .says = {"msccl: ", "nccl-2.32/libnccl.so.2", "is nccl, not msccl", "XCCL_CCL=nccl"}},
    {.what = "NCCL that is MSCCL",
     .ccl = "nccl",
     .search_path = "msccl",
     .result = xcclLibraryNotFound,
     .says = {"msccl/libnccl.so.2", "is msccl, not nccl", "XCCL_CCL=msccl"}},
    {.what = "MSCCL++ on demand",
     .ccl = "mscclpp",
     .search_path = "nccl-2.32:mscclpp",
     .nccl = "nccl-2.32/libnccl.so.2",
     .name = "mscclpp",
     .path = "mscclpp/libmscclpp_nccl.so.0",
     .found_by = "soname"},
    {.what = "MSCCL++ by its file",
     .variable = "mscclpp/libmscclpp_nccl.so.0",
     .search_path = "nccl-2.32",
     .nccl = "nccl-2.32/libnccl.so.2",
     .name = "mscclpp",
     .path = "mscclpp/libmscclpp_nccl.so.0",
     .found_by = "XCCL_CCL_LIBRARY"},
    {.what = "MSCCL++ without NCCL",
     .ccl = "mscclpp",
     .search_path = "mscclpp",
     .result = xcclLibraryNotFound,
     .says = {"mscclpp: MSCCLPP_NCCL_LIB_PATH is not set", "libnccl.so.2"}},
    {.what = "MSCCL++ that is NCCL",
     .ccl = "mscclpp",
     .variable = "nccl-2.32/libnccl.so.2",
     .nccl = "nccl-2.32/libnccl.so.2",
     .result = xcclLibraryNotFound,
     .says = {"is nccl, not mscclpp"}},
    {.what = "none anywhere",
     .search_path = "empty",
     .result = xcclLibraryNotFound,
     .says = {"libnccl.so.2", "librccl.so.1", "XCCL_CCL_LIBRARY", "LD_LIBRARY_PATH"}},
    {.what = "none allowed",
     .ccl = "none",
     .search_path = "nccl-2.32",
     .result = xcclLibraryNotFound,
     .says = {"XCCL_CCL=none"}},
    {.what = "missing file",
     .variable = "empty/libnccl.so.2",
     .search_path = "nccl-2.32",
     .result = xcclLibraryNotFound,
     .says = {"empty/libnccl.so.2", "XCCL_CCL_LIBRARY"}},
    {.what = "a folder",
     .variable = "nccl-2.32",
     .search_path = "nccl-2.32",
     .result = xcclLibraryNotFound,
     .says = {"is a folder", "nccl-2.32/libnccl.so.2", "XCCL_CCL_LIBRARY"}},
    {.what = "pipe",
     .variable = "fifo",
     .result = xcclLibraryNotFound,
     .says = {"/fifo (from XCCL_CCL_LIBRARY) is a pipe or a device", "libnccl.so.2"}},
    {.what = "corrupt file",
     .variable = "corrupt/libnccl.so.2",
     .search_path = "nccl-2.32",
     .result = xcclLibraryNotFound,
     .says = {"corrupt/libnccl.so.2", "XCCL_CCL_LIBRARY", "invalid ELF header"}},
    {.what = "corrupt file by soname",
     .ccl = "nccl",
     .search_path = "corrupt",
     .result = xcclLibraryNotFound,
     .says = {"corrupt/libnccl.so.2", "invalid ELF header"}},
    {.what = "corrupt NCCL, good RCCL",
     .search_path = "corrupt:rccl",
     .name = "rccl",
     .path = "rccl/librccl.so.1",
     .found_by = "soname"},
    {.what = "missing symbol",
     .variable = "nccl-nosend/libnccl.so.2",
     .result = xcclLibraryNotFound,
     .says = {"nccl-nosend/libnccl.so.2", "no symbol ncclSend", "2.7", "XCCL_CCL_LIBRARY"}},
    {.what = "missing symbol by soname",
     .ccl = "nccl",
     .search_path = "nccl-nosend",
     .result = xcclLibraryNotFound,
     .says = {"nccl-nosend/libnccl.so.2", "ncclSend", "soname"}},
    {.what = "too old",
     .variable = "nccl-2.4/libnccl.so.2",
     .result = xcclLibraryNotFound,
     .says = {"nccl-2.4/libnccl.so.2", "2408", "2.7"}},
    {.what = "NCCL's name on RCCL",
     .ccl = "nccl",
     .variable = "rccl/librccl.so.1",
     .result = xcclLibraryNotFound,
     .says = {"rccl/librccl.so.1", "XCCL_CCL=rccl"}},
    {.what = "mistyped variable",
     .ccl = "nccll",
     .search_path = "nccl-2.32",
     .result = xcclInvalidUsage,
     .says = {"XCCL_CCL=nccll", "auto|nccl|rccl|msccl|mscclpp|oneccl|hccl|none"}},
};
enum { NUM_SCENARIOS = sizeof(scenarios) / sizeof(scenarios[0]) };

/* ---- in the child ---- */

static void *ask(void *arg)
{
    const struct xc_backend_ops *ops = NULL;
    const struct xc_library     *lib = NULL;

    *(const void **)arg = (xc_backend_get(&ops, &lib) == xcclSuccess) ? (const void *)lib : NULL;
    return NULL;
}

/* The first call comes from many threads at once; all get the same answer. */
static void test_threads(const struct xc_library *lib)
{
    enum { NUM_THREADS = 8 };
    pthread_t   threads[NUM_THREADS];
    const void *answers[NUM_THREADS];

    for (int i = 0; i < NUM_THREADS; i++) {
        pthread_create(&threads[i], NULL, ask, &answers[i]);
    }
    for (int i = 0; i < NUM_THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    for (int i = 0; i < NUM_THREADS; i++) {
        CHECK(answers[i] == answers[0], "thread %d", i);
        CHECK((lib == NULL) || (answers[i] == (const void *)lib), "thread %d", i);
    }
}

static int child(const struct scenario *s, const char *fakes)
{
    const struct xc_backend_ops *ops = NULL;
    const struct xc_library     *lib = NULL;
    char                         want[PATH_MAX];

    if (s->preopened != NULL) {
        snprintf(want, sizeof(want), "%s/%s", fakes, s->preopened);
        CHECK(dlopen(want, RTLD_NOW | RTLD_LOCAL) != NULL, "%s", dlerror());
    }
    test_threads(NULL);
    xcclResult_t rc = xc_backend_get(&ops, &lib);
    CHECK(rc == s->result, "result %d instead of %d: %s", rc, s->result, xc_last_detail());
    if ((rc == xcclSuccess) && (s->name != NULL)) {
        snprintf(want, sizeof(want), "%s/%s", fakes, s->path);
        CHECK(strcmp(lib->name, s->name) == 0, "%s", lib->name);
        CHECK(strcmp(ops->name, s->name) == 0, "%s", ops->name);
        CHECK(strcmp(lib->path, want) == 0, "%s instead of %s", lib->path, want);
        CHECK(strcmp(lib->found_by, s->found_by) == 0, "%s", lib->found_by);
        CHECK(lib->id_bytes == 128, "%zu", lib->id_bytes);
        CHECK(strcmp(lib->device, (strcmp(s->name, "rccl") == 0) ? "rocm" : "cuda") == 0, "%s",
              lib->device);
        test_threads(lib);
    }
    for (int i = 0; (i < 4) && (s->says[i] != NULL); i++) {
        CHECK_HAS(xc_last_detail(), s->says[i]);
    }
    /* Nothing that was refused stays in the process. */
    if (rc != xcclSuccess) {
        CHECK((s->preopened != NULL) || !xc_vendor_loaded("libnccl.so.2"), "left loaded");
    }
    return (xt_failed == 0) ? 0 : 1;
}

/* ---- in the parent ---- */

static void set_path(const char *name, const char *list, const char *fakes)
{
    char value[PATH_MAX] = "";
    char copy[256];

    if (list == NULL) {
        unsetenv(name);
        return;
    }
    snprintf(copy, sizeof(copy), "%s", list);
    for (char *save, *item = strtok_r(copy, ":", &save); item != NULL;
         item = strtok_r(NULL, ":", &save)) {
        size_t len = strlen(value);
        snprintf(value + len, sizeof(value) - len, "%s%s/%s", (len > 0) ? ":" : "", fakes, item);
    }
    setenv(name, value, 1);
}

static void run(int index, const char *self, const char *fakes)
{
    const struct scenario *s = &scenarios[index];
    char                   number[16];
    int                    status = -1;

    snprintf(number, sizeof(number), "%d", index);
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        set_path("XCCL_CCL_LIBRARY", s->variable, fakes);
        set_path("LD_LIBRARY_PATH", s->search_path, fakes);
        set_path("MSCCLPP_NCCL_LIB_PATH", s->nccl, fakes);
        if (s->ccl != NULL) {
            setenv("XCCL_CCL", s->ccl, 1);
        } else {
            unsetenv("XCCL_CCL");
        }
        execl(self, self, fakes, number, (char *)NULL);
        _exit(127);
    }
    waitpid(pid, &status, 0);
    CHECK(status == 0, "case \"%s\" ended with status %#x", s->what, status);
}

/* The path that was built in, which a test cannot set: asked of the layer below. */
static void test_built_in(const char *fakes)
{
    char                    path[PATH_MAX + 64];
    struct xc_vendor_lib    lib;
    struct xc_vendor_search search = {
        .name = "nccl", .soname = "libnccl.so.2", .built_in = path, .by_soname = false};

    snprintf(path, sizeof(path), "%s/nccl-2.23/libnccl.so.2", fakes);
    CHECK(xc_vendor_open(&search, &lib) == xcclSuccess, "%s", xc_last_detail());
    CHECK(strcmp(lib.path, path) == 0, "%s", lib.path);
    CHECK(lib.found_by == XC_FOUND_BUILT_IN, "%d", lib.found_by);
    char soname[64];
    CHECK(xc_vendor_soname(&lib, soname, sizeof(soname)), "has a soname");
    CHECK(strcmp(soname, "libnccl.so.2") == 0, "%s", soname);
    CHECK(xc_vendor_loaded("libnccl.so.2"), "it is open");
    xc_vendor_close(&lib);
    CHECK(!xc_vendor_loaded("libnccl.so.2"), "it is closed");

    snprintf(path, sizeof(path), "%s/empty/libnccl.so.2", fakes);
    CHECK(xc_vendor_open(&search, &lib) == xcclLibraryNotFound, "there is no such file");
    CHECK_HAS(xc_last_detail(), "empty/libnccl.so.2 (built-in path)");
    snprintf(path, sizeof(path), "%s/corrupt/libnccl.so.2", fakes);
    search.by_soname = true;
    CHECK(xc_vendor_open(&search, &lib) == xcclLibraryNotFound, "it is there, and bad: no further");
    CHECK_HAS(xc_last_detail(), "corrupt/libnccl.so.2");
    CHECK_HAS(xc_last_detail(), "invalid ELF header");
}

static void test_list(void)
{
    char        buf[64];
    const char *list = "nccl=/a/b;rccl=/c;x=";

    const char *path = xc_vendor_list_path(list, "nccl", buf, sizeof(buf));
    CHECK((path != NULL) && (strcmp(path, "/a/b") == 0), "nccl");
    path = xc_vendor_list_path(list, "rccl", buf, sizeof(buf));
    CHECK((path != NULL) && (strcmp(path, "/c") == 0), "rccl");
    CHECK(xc_vendor_list_path(list, "x", buf, sizeof(buf)) == NULL, "empty");
    CHECK(xc_vendor_list_path(list, "msccl", buf, sizeof(buf)) == NULL, "not there");
    CHECK(xc_vendor_list_path(list, "ccl", buf, sizeof(buf)) == NULL, "the end of a name");
    CHECK(xc_vendor_list_path("", "nccl", buf, sizeof(buf)) == NULL, "empty list");
}

int main(int argc, char **argv)
{
    if (argc == 3) {
        return child(&scenarios[atoi(argv[2])], argv[1]);
    }
    if (argc != 2) {
        fprintf(stderr, "usage: %s <folder of stand-ins>\n", argv[0]);
        return 2;
    }
    char fakes[PATH_MAX];
    if (realpath(argv[1], fakes) == NULL) {
        perror(argv[1]);
        return 2;
    }
    test_list();
    char fifo[PATH_MAX + 8];
    snprintf(fifo, sizeof(fifo), "%s/fifo", fakes);
    CHECK((mkfifo(fifo, 0600) == 0) || (errno == EEXIST), "%s: %s", fifo, strerror(errno));
    for (int i = 0; i < NUM_SCENARIOS; i++) {
        run(i, argv[0], fakes);
    }
    test_built_in(fakes);
    printf("%d cases of finding a library\n", NUM_SCENARIOS);
    return xt_done("loader");
}
