/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a program and an NVTX tool exchange (NVTX 3). The tool's library has one entry point; it is
 * handed a function that knows tables, among them one of places for the tool's own functions.
 */
#ifndef XM_OBSERVE_NVTX_ABI_H
#define XM_OBSERVE_NVTX_ABI_H

#include <stddef.h>
#include <stdint.h>

#define NVTX_ENTRY "InitializeInjectionNvtx2"

typedef void (*nvtx_function_t)(void);
typedef const void *(*nvtx_get_table_t)(uint32_t id);
typedef int (*nvtx_entry_t)(nvtx_get_table_t get_table); /* 0: the tool does not want to */

/* Tables. */
enum { NVTX_TABLE_CALLBACKS = 1, NVTX_TABLE_VERSION = 3 };
enum { NVTX_API_VERSION = 3 };

struct nvtx_callbacks {
    size_t struct_size;
    /* 1, or 0 for a module that is not known. Places by number; number 0 has none. */
    int (*get_module)(uint32_t module, nvtx_function_t ***places_p, unsigned *size_p);
};

struct nvtx_version {
    size_t   struct_size;
    uint32_t version, reserved;
    void (*set_tool_version)(uint32_t version);
};

/* Modules, with the number of their places. */
enum { NVTX_CORE = 1, NVTX_CUDA, NVTX_OPENCL, NVTX_CUDART, NVTX_CORE2, NVTX_SYNC, NVTX_MODULES };
enum {
    NVTX_CORE_SIZE = 16,
    NVTX_CUDA_SIZE = 9,
    NVTX_OPENCL_SIZE = 15,
    NVTX_CUDART_SIZE = 7,
    NVTX_CORE2_SIZE = 16,
    NVTX_SYNC_SIZE = 7,
    NVTX_MOST_PLACES = 16
};

/* Places of the functions that are called here. */
enum { NVTX_RANGE_PUSH_A = 9, NVTX_RANGE_POP = 11 }; /* CORE */
enum { NVTX_DOMAIN_RANGE_PUSH_EX = 4, NVTX_DOMAIN_RANGE_POP = 5, NVTX_DOMAIN_CREATE_A = 12 };

typedef int (*nvtx_range_push_a_t)(const char *message);
typedef int (*nvtx_range_pop_t)(void);
typedef void *(*nvtx_domain_create_a_t)(const char *name);

enum { NVTX_ATTRIBUTES_VERSION = 2, NVTX_MESSAGE_ASCII = 1 };

struct nvtx_attributes {
    uint16_t    version, size;
    uint32_t    category;
    int32_t     color_type;
    uint32_t    color;
    int32_t     payload_type, reserved;
    uint64_t    payload;
    int32_t     message_type;
    const char *message;
};
_Static_assert(sizeof(struct nvtx_attributes) == 48, "as every tool expects it");

typedef int (*nvtx_domain_range_push_ex_t)(void *domain, const struct nvtx_attributes *attributes);
typedef int (*nvtx_domain_range_pop_t)(void *domain);

#endif
