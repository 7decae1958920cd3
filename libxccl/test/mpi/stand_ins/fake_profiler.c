/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A stand-in for a profiler, with the interface of a real one: FAKE_NVTX makes it an NVTX tool's
 * library, else it is roctx. It writes a line for each range to FAKE_PROFILER_LOG, "%p" being the
 * process: "> name" and "< depth". FAKE_NVTX_MODE=core: only the functions without domains;
 * refuse: the tool does not want to.
 *
 * What is declared here is what NVIDIA and AMD publish, in their words, not what xccl has.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FAKE_EXPORT __attribute__((visibility("default")))

static __thread int    depth;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static FILE           *out;

static void say(const char *what, const char *text)
{
    pthread_mutex_lock(&lock);
    if (out == NULL) {
        char        path[4096];
        const char *base = getenv("FAKE_PROFILER_LOG");
        snprintf(path, sizeof(path), "%s.%d", (base != NULL) ? base : "/dev/null", (int)getpid());
        out = fopen(path, "ae");
        if (out == NULL) {
            abort();
        }
        setvbuf(out, NULL, _IOLBF, 0);
    }
    fprintf(out, "%s %s\n", what, text);
    pthread_mutex_unlock(&lock);
}

static int opened(const char *name)
{
    say(">", name);
    return depth++;
}

static int closed(void)
{
    char text[16];

    snprintf(text, sizeof(text), "%d", --depth);
    say((depth < 0) ? "UNDERFLOW" : "<", text);
    return depth;
}

#ifdef FAKE_NVTX

typedef void (*NvtxFunctionPointer)(void);
typedef NvtxFunctionPointer **NvtxFunctionTable;
typedef const void *(*NvtxGetExportTableFunc_t)(uint32_t exportTableId);

typedef struct NvtxExportTableCallbacks {
    size_t struct_size;
    int (*GetModuleFunctionTable)(int module, NvtxFunctionTable *out_table, unsigned int *out_size);
} NvtxExportTableCallbacks;

typedef struct NvtxExportTableVersionInfo {
    size_t   struct_size;
    uint32_t version;
    uint32_t reserved0;
    void (*SetInjectionNvtxVersion)(uint32_t version);
} NvtxExportTableVersionInfo;

typedef struct nvtxEventAttributes_v2 {
    uint16_t version;
    uint16_t size;
    uint32_t category;
    int32_t  colorType;
    uint32_t color;
    int32_t  payloadType;
    int32_t  reserved0;
    union {
        uint64_t ullValue;
        double   dValue;
    } payload;
    int32_t messageType;
    union {
        const char    *ascii;
        const wchar_t *unicode;
    } message;
} nvtxEventAttributes_t;

enum { ETID_CALLBACKS = 1, ETID_VERSIONINFO = 3, MODULE_CORE = 1, MODULE_CORE2 = 5 };
enum { CORE_RangePushA = 9, CORE_RangePop = 11, CORE_SIZE = 16 };
enum { CORE2_DomainRangePushEx = 4, CORE2_DomainRangePop = 5, CORE2_DomainCreateA = 12 };
enum { CORE2_SIZE = 16, MESSAGE_TYPE_ASCII = 1 };

static char our_domain[64];

static void *domain_create(const char *name)
{
    snprintf(our_domain, sizeof(our_domain), "%s", name);
    say("domain", name);
    return our_domain;
}

static int domain_push(void *domain, const nvtxEventAttributes_t *attributes)
{
    if ((domain != our_domain) || (attributes->version != 2) ||
        (attributes->size != sizeof(*attributes)) ||
        (attributes->messageType != MESSAGE_TYPE_ASCII)) {
        say("WRONG", "attributes");
        return -1;
    }
    return opened(attributes->message.ascii);
}

static int domain_pop(void *domain)
{
    if (domain != our_domain) {
        say("WRONG", "domain");
    }
    return closed();
}

static void set(NvtxFunctionTable table, int id, void *function)
{
    memcpy(table[id], &function, sizeof(function));
}

FAKE_EXPORT int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t getExportTable);
FAKE_EXPORT int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t getExportTable)
{
    const char                       *mode = getenv("FAKE_NVTX_MODE");
    const NvtxExportTableCallbacks   *callbacks = getExportTable(ETID_CALLBACKS);
    const NvtxExportTableVersionInfo *version = getExportTable(ETID_VERSIONINFO);
    NvtxFunctionTable                 table = NULL;
    unsigned int                      size = 0;

    if ((callbacks == NULL) || (callbacks->struct_size < sizeof(*callbacks)) || (version == NULL) ||
        (version->struct_size < sizeof(*version)) || (version->version < 2) ||
        (getExportTable(77) != NULL)) {
        say("WRONG", "export tables");
        return 0;
    }
    version->SetInjectionNvtxVersion(3);
    if ((mode != NULL) && (strcmp(mode, "refuse") == 0)) {
        say("refused", "");
        return 0;
    }
    if (callbacks->GetModuleFunctionTable(99, &table, &size) != 0) {
        say("WRONG", "module 99");
    }
    /* As tools do: every module that there is, and every function of it. */
    for (int module = 1; module <= 6; module++) {
        if ((callbacks->GetModuleFunctionTable(module, &table, &size) != 1) || (table[0] != NULL) ||
            (table[size] != NULL)) {
            say("WRONG", "module");
        }
        for (unsigned i = 1; i < size; i++) {
            set(table, (int)i, NULL);
        }
    }
    callbacks->GetModuleFunctionTable(MODULE_CORE, &table, &size);
    if (size != CORE_SIZE) {
        say("WRONG", "size of CORE");
    }
    set(table, CORE_RangePushA, (void *)opened);
    set(table, CORE_RangePop, (void *)closed);
    if ((mode == NULL) || (strcmp(mode, "core") != 0)) {
        callbacks->GetModuleFunctionTable(MODULE_CORE2, &table, &size);
        set(table, CORE2_DomainCreateA, (void *)domain_create);
        set(table, CORE2_DomainRangePushEx, (void *)domain_push);
        set(table, CORE2_DomainRangePop, (void *)domain_pop);
    }
    return 1;
}

#else

FAKE_EXPORT int roctxRangePushA(const char *message);
FAKE_EXPORT int roctxRangePop(void);

FAKE_EXPORT int roctxRangePushA(const char *message)
{
    return opened(message);
}

FAKE_EXPORT int roctxRangePop(void)
{
    return closed();
}

#endif
