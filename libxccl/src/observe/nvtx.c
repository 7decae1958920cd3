/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * NVTX without its header: the tool names its library in a variable, and is handed the places for
 * its functions. The ranges are in a domain of their own, "xccl", where the tool knows domains.
 */
#include <dlfcn.h>
#include <string.h>

#include "base/environment.h"
#include "base/log.h"
#include "observe/nvtx_abi.h"
#include "observe/ranges.h"

/* The tool writes its functions here, also those that are never called. */
static nvtx_function_t  functions[NVTX_MODULES][NVTX_MOST_PLACES];
static nvtx_function_t *places[NVTX_MODULES][NVTX_MOST_PLACES + 1];

static const unsigned sizes[NVTX_MODULES] = {
    [NVTX_CORE] = NVTX_CORE_SIZE,     [NVTX_CUDA] = NVTX_CUDA_SIZE,
    [NVTX_OPENCL] = NVTX_OPENCL_SIZE, [NVTX_CUDART] = NVTX_CUDART_SIZE,
    [NVTX_CORE2] = NVTX_CORE2_SIZE,   [NVTX_SYNC] = NVTX_SYNC_SIZE,
};

static nvtx_range_push_a_t         push;
static nvtx_range_pop_t            pop;
static nvtx_domain_range_push_ex_t domain_push;
static nvtx_domain_range_pop_t     domain_pop;
static void                       *domain;

static int get_module(uint32_t module, nvtx_function_t ***places_p, unsigned *size_p)
{
    if ((module == 0) || (module >= NVTX_MODULES)) {
        return 0;
    }
    for (unsigned i = 1; i < sizes[module]; i++) { /* the rest stays NULL, as number 0 */
        places[module][i] = &functions[module][i];
    }
    if (places_p != NULL) {
        *places_p = places[module];
    }
    if (size_p != NULL) {
        *size_p = sizes[module];
    }
    return 1;
}

static void set_tool_version(uint32_t version)
{
    (void)version;
}

static const void *get_table(uint32_t id)
{
    static const struct nvtx_callbacks callbacks = {sizeof(callbacks), get_module};
    static const struct nvtx_version   version = {sizeof(version), NVTX_API_VERSION, 0,
                                                  set_tool_version};

    switch (id) {
    case NVTX_TABLE_CALLBACKS:
        return &callbacks;
    case NVTX_TABLE_VERSION:
        return &version;
    default:
        return NULL;
    }
}

/* What the tool has set; false: neither way of making ranges. */
static bool take_functions(void)
{
    nvtx_domain_create_a_t create;

    memcpy(&push, &functions[NVTX_CORE][NVTX_RANGE_PUSH_A], sizeof(push));
    memcpy(&pop, &functions[NVTX_CORE][NVTX_RANGE_POP], sizeof(pop));
    memcpy(&create, &functions[NVTX_CORE2][NVTX_DOMAIN_CREATE_A], sizeof(create));
    memcpy(&domain_push, &functions[NVTX_CORE2][NVTX_DOMAIN_RANGE_PUSH_EX], sizeof(domain_push));
    memcpy(&domain_pop, &functions[NVTX_CORE2][NVTX_DOMAIN_RANGE_POP], sizeof(domain_pop));
    if ((create != NULL) && (domain_push != NULL) && (domain_pop != NULL)) {
        domain = create("xccl");
    }
    return (domain != NULL) || ((push != NULL) && (pop != NULL));
}

bool xm_nvtx_open(void)
{
    const char  *path = xc_nvtx_library();
    nvtx_entry_t entry = NULL;

    if (path == NULL) {
        return false;
    }
    void *handle = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
    void *address = (handle != NULL) ? dlsym(handle, NVTX_ENTRY) : NULL;
    memcpy(&entry, &address, sizeof(entry));
    if (entry == NULL) {
        xc_info("no NVTX ranges: NVTX_INJECTION64_PATH=%s %s", path,
                (handle != NULL) ? "has no " NVTX_ENTRY : "cannot be loaded");
        if (handle != NULL) {
            dlclose(handle);
        }
        return false;
    }
    /* From here on the library stays, whatever it says: it may have begun threads. */
    return (entry(get_table) != 0) && take_functions();
}

void xm_nvtx_push(const char *name)
{
    if (domain == NULL) {
        push(name);
        return;
    }
    const struct nvtx_attributes attributes = {.version = NVTX_ATTRIBUTES_VERSION,
                                               .size = sizeof(attributes),
                                               .message_type = NVTX_MESSAGE_ASCII,
                                               .message = name};
    domain_push(domain, &attributes);
}

void xm_nvtx_pop(void)
{
    if (domain == NULL) {
        pop();
    } else {
        domain_pop(domain);
    }
}
