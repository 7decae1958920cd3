/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How the collective libraries fail to open. They refer to the symbol below, which the core hides
 * when XCCL_SIM_FAIL asks for it or when a variable is wrong: the dynamic linker then refuses the
 * library, and the symbol's name is the text that dlerror() gives. That works where the driver, and
 * with it the core, was loaded before; else the library hides all of its own names.
 */
#include "ccl/api.h"

extern int XCCL_SIM_FAIL_says_load;

static const char *const required[] = {
    "ncclGetVersion", "ncclGetUniqueId", "ncclCommInitRank", "ncclCommDestroy", "ncclAllReduce",
    "ncclSend",       "ncclRecv",        "ncclGroupStart",   "ncclGroupEnd",
};

void xs_api_setup(const struct xs_since *rows, size_t count)
{
    const char *name;

    if (XCCL_SIM_FAIL_says_load == 0) {
        for (size_t i = 0; i < sizeof(required) / sizeof(required[0]); i++) {
            xs_symbol_hide((const void *)ncclGetVersion, required[i]);
        }
    }
    for (size_t i = 0; i < count; i++) {
        if (xs_config()->ccl_version < rows[i].version) {
            xs_symbol_hide((const void *)ncclGetVersion, rows[i].name);
        }
    }
    for (size_t i = 0; (name = xs_fault_symbol(i)) != NULL; i++) {
        if (!xs_symbol_hide((const void *)ncclGetVersion, name)) {
            xs_log(XS_LOG_WARN, "XCCL_SIM_FAIL: there is no symbol %s to hide", name);
        }
    }
}
