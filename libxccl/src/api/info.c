/* SPDX-License-Identifier: BSD-3-Clause */
/* Versions, names and texts. */
#include <stdio.h>
#include <string.h>

#include "api/comm.h"
#include "backends/backend.h"
#include "base/log.h"

static xcclResult_t null_output(const char *call, const char *name)
{
    return xc_fail(xcclInvalidArgument, "%s: %s is NULL; pass the address of a variable", call,
                   name);
}

xcclResult_t xcclGetVersion(int *version_p)
{
    if (version_p == NULL) {
        return null_output("xcclGetVersion", "version_p");
    }
    *version_p = XCCL_VERSION_CODE;
    return xcclSuccess;
}

xcclResult_t xcclGetBackend(const char **name_p, int *version_p)
{
    const struct xc_backend_ops *ops;
    const struct xc_library     *lib;

    if ((name_p == NULL) || (version_p == NULL)) {
        return null_output("xcclGetBackend", (name_p == NULL) ? "name_p" : "version_p");
    }
    xcclResult_t rc = xc_backend_get(&ops, &lib);
    if (rc == xcclSuccess) {
        *name_p = lib->name;
        *version_p = lib->version;
    }
    return rc;
}

static const struct {
    xcclResult_t result;
    const char  *text;
} texts[] = {
    {xcclSuccess, "success"},
    {xcclUnhandledCudaError, "the device runtime failed"},
    {xcclSystemError, "the operating system failed"},
    {xcclInternalError, "internal error"},
    {xcclInvalidArgument, "invalid argument"},
    {xcclInvalidUsage, "invalid usage"},
    {xcclRemoteError, "another rank failed or its link broke"},
    {xcclInProgress, "in progress"},
    {xcclTimeout, "timed out"},
    {xcclUnsupported, "not supported by the library in use"},
    {xcclLibraryNotFound, "no usable vendor library"},
    {xcclVersionMismatch, "ranks loaded different libraries or versions"},
};

const char *xcclGetErrorString(xcclResult_t result)
{
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        if (texts[i].result == result) {
            return texts[i].text;
        }
    }
    return "unknown result code";
}

const char *xcclGetLastError(xcclComm_t comm)
{
    static __thread char buf[2048];
    const char          *detail = xc_last_detail();

    if (!xc_comm_is_usual(comm)) {
        return detail;
    }
    const char *vendor = comm->ops->last_error();
    if ((vendor[0] == '\0') || (strstr(detail, vendor) != NULL)) {
        return detail;
    }
    snprintf(buf, sizeof(buf), "%s%s%s: %s", detail, (detail[0] != '\0') ? " | " : "",
             comm->lib->name, vendor);
    return buf;
}
