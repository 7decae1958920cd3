/* SPDX-License-Identifier: BSD-3-Clause */
#include "api/group.h"

#include "backends/backend.h"
#include "base/log.h"

static __thread int          depth;
static __thread xcclResult_t first_failure;

xcclResult_t xc_group_note(xcclResult_t rc)
{
    if ((depth > 0) && (first_failure == xcclSuccess) && (rc != xcclInProgress)) {
        first_failure = rc;
    }
    return rc;
}

xcclResult_t xcclGroupStart(void)
{
    const struct xc_backend_ops *ops;
    const struct xc_library     *lib;
    xcclResult_t                 rc = xc_backend_get(&ops, &lib);

    if (rc == xcclSuccess) {
        rc = ops->group_start();
    }
    if (rc == xcclSuccess) {
        depth++;
    }
    return rc;
}

xcclResult_t xcclGroupEnd(void)
{
    const struct xc_backend_ops *ops;
    const struct xc_library     *lib;

    if (depth == 0) {
        return xc_fail(xcclInvalidUsage,
                       "xcclGroupEnd: this thread has no group open; call xcclGroupStart first");
    }
    depth--;
    xcclResult_t rc = xc_backend_get(&ops, &lib);
    if (rc == xcclSuccess) {
        rc = ops->group_end();
    }
    xcclResult_t failure = first_failure;
    if (depth == 0) {
        first_failure = xcclSuccess;
    }
    return (failure != xcclSuccess) ? failure : rc;
}
