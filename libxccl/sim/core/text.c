/* SPDX-License-Identifier: BSD-3-Clause */
/* Texts of the errors that both runtimes number alike. */
#include "core/core.h"

static const struct {
    int         error;
    const char *text;
} texts[] = {
    {XS_OK, "no error"},
    {XS_INVALID_VALUE, "invalid argument"},
    {XS_OUT_OF_MEMORY, "out of memory"},
    {XS_NOT_INITIALIZED, "initialization error"},
    {XS_NO_DEVICE, "no device was detected"},
    {XS_INVALID_DEVICE, "invalid device ordinal"},
    {XS_INVALID_CONTEXT, "invalid device context"},
    {XS_MAP_FAILED, "mapping of buffer object failed"},
    {XS_ALREADY_MAPPED, "resource already mapped"},
    {XS_NO_BINARY_FOR_GPU, "no kernel image is available for execution on the device"},
    {XS_OPERATING_SYSTEM, "OS call failed or operation not supported on this OS"},
    {XS_INVALID_HANDLE, "invalid resource handle"},
    {XS_NOT_FOUND, "named symbol not found"},
    {XS_NOT_READY, "device not ready"},
    {XS_ILLEGAL_ADDRESS, "an illegal memory access was encountered"},
    {XS_PEER_ACCESS_ALREADY_ENABLED, "peer access is already enabled"},
    {XS_PEER_ACCESS_NOT_ENABLED, "peer access has not been enabled"},
    {XS_CONTEXT_IS_DESTROYED, "context is destroyed"},
    {XS_HOST_ALREADY_REGISTERED, "part or all of the requested memory range is already mapped"},
    {XS_HOST_NOT_REGISTERED, "pointer does not correspond to a registered memory region"},
    {XS_NOT_SUPPORTED, "operation not supported"},
    {XS_SYSTEM_NOT_READY, "system not yet initialized"},
    {XS_CAPTURE_UNSUPPORTED, "operation not permitted when stream is capturing"},
    {XS_CAPTURE_INVALIDATED, "operation failed due to a previous error during capture"},
    {XS_CAPTURE_UNMATCHED, "the capture was not initiated in this stream"},
    {XS_CAPTURE_ISOLATION, "dependency created on uncaptured work in another stream"},
    {XS_CAPTURE_IMPLICIT,
     "operation would make the legacy stream depend on a capturing blocking stream"},
    {XS_CAPTURED_EVENT, "operation not permitted on an event last recorded in a capturing stream"},
    {XS_CAPTURE_WRONG_THREAD,
     "attempt to terminate a thread-local capture sequence from another thread"},
};

const char *xs_error_text(int error)
{
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        if (texts[i].error == error) {
            return texts[i].text;
        }
    }
    return NULL;
}
