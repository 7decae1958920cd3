/* SPDX-License-Identifier: BSD-3-Clause */
#include "comms/variables.h"

#include <stddef.h>

#include "base/hash.h"
#include "base/params.h"

const char *xm_variable_name(int i)
{
    static const char *const names[XM_NUM_VARIABLES] = {
        "XCCL_ROUTE",  "XCCL_CCL",           "XCCL_TUNE",       "XCCL_CHECK",
        "XCCL_MEMORY", "XCCL_SCRATCH",       "XCCL_CCL_NATIVE", "XCCL_COMM_CREATE",
        "XCCL_DIRECT", "XCCL_DIRECT_COPIES", "XCCL_LAUNCH"};

    return names[i];
}

void xm_variables_fill(struct xm_variables *mine)
{
    const struct xc_params *p = xc_params();
    const uint64_t          values[XM_NUM_VARIABLES] = {
        (uint64_t)p->route,         (uint64_t)p->ccl,         xc_hash_text(XC_HASH_BEGIN, p->tune),
        (uint64_t)p->check,         (uint64_t)p->memory,      (uint64_t)p->scratch,
        (uint64_t)p->ccl_native,    (uint64_t)p->comm_create, (uint64_t)p->direct,
        (uint64_t)p->direct_copies, (uint64_t)p->launch};

    for (int i = 0; i < XM_NUM_VARIABLES; i++) {
        mine->values[i] = values[i];
    }
}

const char *xm_variables_differ(const struct xm_variables *a, const struct xm_variables *b)
{
    for (int i = 0; i < XM_NUM_VARIABLES; i++) {
        if (a->values[i] != b->values[i]) {
            return xm_variable_name(i);
        }
    }
    return NULL;
}
