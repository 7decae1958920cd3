/* SPDX-License-Identifier: BSD-3-Clause */
/* Stream objects, and what describes them: MPIX_Info_set_hex, MPIX_Stream_create and _free. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "mpi/mpi.h"
#include "streams/objects.h"

/* Of a kind that MPICH never makes: its streams have no predefined ones. */
enum { FIRST = 0x7c5c0000, MOST = 1024, TEXT_BYTES = 64, INFO_BYTES = 1024 };

/* The handle of cudaStreamPerThread and of hipStreamPerThread. */
enum { PER_THREAD = 2 };

static pthread_mutex_t   lock = PTHREAD_MUTEX_INITIALIZER;
static struct xm_stream *streams[MOST];
static bool              freed[MOST]; /* the program has given its handle back */

static int raise_world(xcclResult_t res)
{
    return xm_raise(XM_HANDLE(MPI_COMM_WORLD), res, xc_last_detail());
}

struct xm_stream *xm_stream_of(int handle)
{
    struct xm_stream *found = NULL;
    int               at = handle - FIRST;

    pthread_mutex_lock(&lock);
    if ((at >= 0) && (at < MOST) && !freed[at]) {
        found = streams[at];
    }
    pthread_mutex_unlock(&lock);
    return found;
}

void xm_stream_use(struct xm_stream *stream)
{
    __atomic_add_fetch(&stream->users, 1, __ATOMIC_RELAXED);
}

void xm_stream_unuse(struct xm_stream *stream)
{
    if (__atomic_sub_fetch(&stream->users, 1, __ATOMIC_ACQ_REL) > 0) {
        return;
    }
    pthread_mutex_lock(&lock);
    for (int i = 0; i < MOST; i++) {
        if (streams[i] == stream) {
            streams[i] = NULL;
            freed[i] = false;
        }
    }
    pthread_mutex_unlock(&lock);
    free(stream);
}

/* ---- hexadecimal text: two digits a byte, in the order of memory ---- */

int xm_info_set_hex(const long *args)
{
    static const char    digits[] = "0123456789abcdef";
    MPI_Info             info = (MPI_Info)(intptr_t)args[0];
    const char          *key = (const char *)args[1];
    const unsigned char *value = (const unsigned char *)args[2];
    int                  bytes = (int)args[3];
    char                 text[INFO_BYTES];

    if ((value == NULL) || (key == NULL) || (bytes < 0) || (bytes > (INFO_BYTES - 1) / 2)) {
        return raise_world(xc_fail(xcclInvalidArgument,
                                   "MPIX_Info_set_hex: expected a value of at most %d bytes",
                                   (INFO_BYTES - 1) / 2));
    }
    for (int i = 0; i < bytes; i++) {
        text[2 * i] = digits[value[i] >> 4];
        text[2 * i + 1] = digits[value[i] & 15];
    }
    text[2 * bytes] = '\0';
    return xm_pmpi.Info_set(info, key, text);
}

static int digit_of(char c)
{
    return ((c >= '0') && (c <= '9'))   ? c - '0'
           : ((c >= 'a') && (c <= 'f')) ? c - 'a' + 10
           : ((c >= 'A') && (c <= 'F')) ? c - 'A' + 10
                                        : -1;
}

/* "[n]", as MPICH 4.3 and later write n bytes that are zero; NULL: it is not that. */
static const char *decode_zeros(const char *text, size_t *count_p)
{
    char         *end;
    unsigned long count = (text[0] == '[') ? strtoul(text + 1, &end, 10) : 0;

    if ((count == 0) || (count > INFO_BYTES) || (end[0] != ']')) {
        return NULL;
    }
    *count_p = count;
    return end + 1;
}

static bool decode(const char *text, void *value, size_t bytes)
{
    unsigned char *to = value;
    size_t         at = 0, zeros = 0;

    memset(to, 0, bytes);
    while (text[0] != '\0') {
        const char *rest = decode_zeros(text, &zeros);
        int         high = digit_of(text[0]), low = digit_of(text[1]);
        if (rest != NULL) {
            text = rest;
            at += zeros;
            continue;
        }
        if ((high < 0) || (low < 0) || (at >= bytes)) {
            return false;
        }
        to[at++] = (unsigned char)(high << 4 | low);
        text += 2;
    }
    return at == bytes;
}

static bool has(MPI_Info info, const char *key, char *text, int len)
{
    int found = 0;

    return (xm_pmpi.Info_get(info, key, len - 1, text, &found) == MPI_SUCCESS) && found;
}

/* ---- streams ---- */

static int keep(struct xm_stream *stream, int *handle_p)
{
    int at = -1;

    pthread_mutex_lock(&lock);
    for (int i = 0; (i < MOST) && (at < 0); i++) {
        if (streams[i] == NULL) {
            streams[i] = stream;
            at = i;
        }
    }
    pthread_mutex_unlock(&lock);
    if (at < 0) {
        free(stream);
        return raise_world(xc_fail(
            xcclSystemError,
            "MPIX_Stream_create: more than %d streams; free those that are done with", MOST));
    }
    *handle_p = FIRST + at;
    return MPI_SUCCESS;
}

static xcclResult_t fill(struct xm_stream *stream, const char *type, const char *value)
{
    const char *wanted = (strcmp(type, "cudaStream_t") == 0) ? "cuda" : "rocm";

    stream->dev = xc_device_active();
    if ((stream->dev == NULL) || (strcmp(stream->dev->name, wanted) != 0)) {
        return xc_fail(xcclInvalidUsage,
                       "MPIX_Stream_create: a %s, but the program has not started that runtime",
                       type);
    }
    if (!decode(value, &stream->handle, sizeof(stream->handle))) {
        return xc_fail(xcclInvalidArgument,
                       "MPIX_Stream_create: the info's \"value\" is no %s; set it by "
                       "MPIX_Info_set_hex(info, \"value\", &stream, sizeof(stream))",
                       type);
    }
    /* Threads of xccl's own would enqueue on their own one. */
    if (stream->handle == (xcclStream_t)(uintptr_t)PER_THREAD) {
        return xc_fail(xcclInvalidUsage,
                       "MPIX_Stream_create: %s names another stream in each thread; make one with "
                       "%s",
                       (wanted[0] == 'c') ? "cudaStreamPerThread" : "hipStreamPerThread",
                       (wanted[0] == 'c') ? "cudaStreamCreate" : "hipStreamCreate");
    }
    stream->ops = xc_streams_of(stream->dev);
    if (stream->ops == NULL) {
        return xcclUnsupported; /* with its detail */
    }
    xcclResult_t res = stream->ops->device(stream->handle, &stream->device);
    stream->resets = xc_device_resets(stream->dev, stream->device, true);
    return res;
}

int xm_stream_create(const long *args)
{
    MPI_Info info = (MPI_Info)(intptr_t)args[0];
    int     *handle_p = (int *)args[1];
    char     type[TEXT_BYTES] = "", value[TEXT_BYTES] = "";
    bool     described = (info != XM_HANDLE(MPI_INFO_NULL)) && has(info, "type", type, TEXT_BYTES);
    bool     device =
        described && ((strcmp(type, "cudaStream_t") == 0) || (strcmp(type, "hipStream_t") == 0));

    if (!device && (xm_mpi_functions[XM_FN_MPIX_Stream_create] != NULL)) {
        return (int)xm_mpi_forward(XM_FN_MPIX_Stream_create, 0, args);
    }
    struct xm_stream *stream = calloc(1, sizeof(*stream));
    if (stream == NULL) {
        return raise_world(xc_fail(xcclSystemError, "out of memory for a stream"));
    }
    stream->users = 1;
    stream->device = -1;
    if (device) {
        xcclResult_t res =
            has(info, "value", value, TEXT_BYTES)
                ? fill(stream, type, value)
                : xc_fail(
                      xcclInvalidArgument,
                      "MPIX_Stream_create: the info has no \"value\"; set it by MPIX_Info_set_hex(info, \"value\", &stream, sizeof(stream))");
        if (res != xcclSuccess) {
            free(stream);
            return raise_world(res);
        }
    }
    return keep(stream, handle_p);
}

int xm_stream_free(const long *args)
{
    int              *handle = (int *)args[0];
    struct xm_stream *stream = xm_stream_of(*handle);

    if (stream == NULL) {
        if (xm_mpi_functions[XM_FN_MPIX_Stream_free] != NULL) {
            return (int)xm_mpi_forward(XM_FN_MPIX_Stream_free, 0, args);
        }
        return raise_world(
            xc_fail(xcclInvalidArgument,
                    "MPIX_Stream_free: not a stream; pass what MPIX_Stream_create gave, once"));
    }
    pthread_mutex_lock(&lock);
    freed[*handle - FIRST] = true;
    pthread_mutex_unlock(&lock);
    *handle = XM_STREAM_NULL;
    xm_stream_unuse(stream);
    return MPI_SUCCESS;
}
