/* SPDX-License-Identifier: BSD-3-Clause */
/* Texts of the errors that both runtimes number alike. */
#include "core/core.h"

const char *xs_error_text(int error)
{
    switch (error) {
    case XS_OK:
        return "no error";
    case XS_INVALID_VALUE:
        return "invalid argument";
    case XS_OUT_OF_MEMORY:
        return "out of memory";
    case XS_NOT_INITIALIZED:
        return "initialization error";
    case XS_NO_DEVICE:
        return "no device was detected";
    case XS_INVALID_DEVICE:
        return "invalid device ordinal";
    case XS_INVALID_CONTEXT:
        return "invalid device context";
    case XS_MAP_FAILED:
        return "mapping of buffer object failed";
    case XS_ALREADY_MAPPED:
        return "resource already mapped";
    case XS_NO_BINARY_FOR_GPU:
        return "no kernel image is available for execution on the device";
    case XS_OPERATING_SYSTEM:
        return "OS call failed or operation not supported on this OS";
    case XS_INVALID_HANDLE:
        return "invalid resource handle";
    case XS_NOT_FOUND:
        return "named symbol not found";
    case XS_NOT_READY:
        return "device not ready";
    case XS_PEER_ACCESS_ALREADY_ENABLED:
        return "peer access is already enabled";
    case XS_PEER_ACCESS_NOT_ENABLED:
        return "peer access has not been enabled";
    case XS_CONTEXT_IS_DESTROYED:
        return "context is destroyed";
    case XS_HOST_ALREADY_REGISTERED:
        return "part or all of the requested memory range is already mapped";
    case XS_HOST_NOT_REGISTERED:
        return "pointer does not correspond to a registered memory region";
    case XS_NOT_SUPPORTED:
        return "operation not supported";
    case XS_SYSTEM_NOT_READY:
        return "system not yet initialized";
    case XS_CAPTURE_UNSUPPORTED:
        return "operation not permitted when stream is capturing";
    case XS_CAPTURE_INVALIDATED:
        return "operation failed due to a previous error during capture";
    case XS_CAPTURE_UNMATCHED:
        return "the capture was not initiated in this stream";
    case XS_CAPTURE_ISOLATION:
        return "dependency created on uncaptured work in another stream";
    case XS_CAPTURE_IMPLICIT:
        return "operation would make the legacy stream depend on a capturing blocking stream";
    case XS_CAPTURED_EVENT:
        return "operation not permitted on an event last recorded in a capturing stream";
    case XS_CAPTURE_WRONG_THREAD:
        return "attempt to terminate a thread-local capture sequence from another thread";
    default:
        return 0;
    }
}
