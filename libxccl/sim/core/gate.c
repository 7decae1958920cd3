/* SPDX-License-Identifier: BSD-3-Clause */
/* The symbol without which the collective libraries do not open; see ccl/gate.c. */
#include "core/core.h"

/* 0 once the collective library is to be refused. */
XS_API extern int XCCL_SIM_FAIL_says_load;
int               XCCL_SIM_FAIL_says_load = 1;

__attribute__((constructor)) static void close_gate(void)
{
    if ((xs_config_error() != NULL) || xs_fault(XS_FAULT_LOAD, NULL)) {
        XCCL_SIM_FAIL_says_load = 0;
        xs_symbol_hide(&XCCL_SIM_FAIL_says_load, "XCCL_SIM_FAIL_says_load");
    }
}
