/* SPDX-License-Identifier: BSD-3-Clause */
/* Stream objects: what a program writes into an info is read again, or refused; handles come anew.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "mpi/mpi.h"
#include "streams/objects.h"

enum { VALUE_BYTES = 511, MOST = 1024 };

static char       type[64], value[2 * VALUE_BYTES + 64]; /* the info's */
static int        errors;
struct xm_pmpi    xm_pmpi;
struct xm_handles xm_handles;
xm_function_t     xm_mpi_functions[XM_NUM_FUNCTIONS];

long xm_mpi_forward(enum xm_function function, int profiling, const long *args)
{
    (void)function;
    (void)profiling;
    (void)args;
    return MPI_ERR_INTERN;
}

int xm_raise(MPI_Comm comm, xcclResult_t res, const char *text)
{
    (void)comm;
    (void)text;
    errors++;
    return (res != xcclSuccess) ? MPI_ERR_OTHER : MPI_SUCCESS;
}

static xcclResult_t device_of(xcclStream_t stream, int *device_p)
{
    *device_p = (stream != NULL) ? 3 : 0;
    return xcclSuccess;
}

static const struct xc_device_ops dev = {.name = "cuda"};
static const struct xc_stream_ops ops = {.device = device_of};

const struct xc_device_ops *xc_device_active(void)
{
    return &dev;
}

const struct xc_stream_ops *xc_streams_of(const struct xc_device_ops *of)
{
    return (of == &dev) ? &ops : NULL;
}

static int info_set(MPI_Info info, const char *key, const char *text)
{
    (void)info;
    snprintf((strcmp(key, "type") == 0) ? type : value, sizeof(value), "%s", text);
    return MPI_SUCCESS;
}

static int info_get(MPI_Info info, const char *key, int length, char *text, int *flag)
{
    const char *found = (strcmp(key, "type") == 0) ? type : value;

    (void)info;
    *flag = (found[0] != '\0');
    snprintf(text, (size_t)length + 1, "%s", found);
    return MPI_SUCCESS;
}

static int set_hex(const void *bytes, int count)
{
    const long args[] = {0, (long)"value", (long)bytes, count};

    return xm_info_set_hex(args);
}

/* An info that is not MPI_INFO_NULL. */
static int create(int *handle_p)
{
    const long args[] = {1, (long)handle_p};

    return xm_stream_create(args);
}

static int destroy(int *handle)
{
    const long args[] = {(long)handle};

    return xm_stream_free(args);
}

static void test_hexadecimal(void)
{
    unsigned char bytes[VALUE_BYTES] = {0x00, 0x1f, 0xa0, 0xff};

    CHECK((set_hex(bytes, 4) == MPI_SUCCESS) && (strcmp(value, "001fa0ff") == 0), "%s", value);
    CHECK((set_hex(bytes, 0) == MPI_SUCCESS) && (value[0] == '\0'), "no bytes");
    CHECK(set_hex(bytes, VALUE_BYTES) == MPI_SUCCESS, "as many as an info has room for");
    CHECK(strlen(value) == 2 * (size_t)VALUE_BYTES, "%zu digits", strlen(value));
    CHECK(set_hex(bytes, VALUE_BYTES + 1) != MPI_SUCCESS, "one more");
    CHECK(set_hex(bytes, -1) != MPI_SUCCESS, "less than none");
    CHECK(set_hex(bytes, INT_MAX / 2 + 300) != MPI_SUCCESS, "so many that twice that is negative");
    CHECK(set_hex(NULL, 4) != MPI_SUCCESS, "nothing");
}

static void read_as(const char *text, uint64_t wanted, bool good)
{
    int               handle = XM_STREAM_NULL;
    struct xm_stream *stream;

    snprintf(value, sizeof(value), "%s", text);
    CHECK((create(&handle) == MPI_SUCCESS) == good, "\"%s\"", text);
    stream = xm_stream_of(handle);
    CHECK((stream != NULL) == good, "\"%s\": a handle", text);
    if (stream != NULL) {
        CHECK((uint64_t)(uintptr_t)stream->handle == wanted, "\"%s\" is %p", text,
              (void *)stream->handle);
        CHECK(stream->device == ((wanted != 0) ? 3 : 0), "on device %d", stream->device);
        CHECK(destroy(&handle) == MPI_SUCCESS, "freed");
    }
}

/* Eight bytes, the first one lowest; MPICH 4.3 writes zeros by their number. */
static void test_values(void)
{
    snprintf(type, sizeof(type), "cudaStream_t");
    read_as("0102030405060708", 0x0807060504030201u, true);
    read_as("ABcdef0000000000", 0xefcdabu, true);
    read_as("[8]", 0, true);
    read_as("0102[4]0304", 0x0403000000000201u, true);
    read_as("01[2][5]", 1, true);
    read_as("01020304050607", 0, false);
    read_as("010203040506070809", 0, false);
    read_as("0102030405060708[1]", 0, false);
    read_as("[7]", 0, false);
    read_as("[9]", 0, false);
    read_as("[8", 0, false);
    read_as("[-8]", 0, false);
    read_as("[18446744073709551608]0102030405060708", 0, false);
    read_as("0102030405060708[18446744073709551615]09", 0, false);
    read_as("0102030405060g08", 0, false);
    read_as("0", 0, false);
    snprintf(type, sizeof(type), "hipStream_t");
    read_as("0102030405060708", 0, false);
}

static void test_handles(void)
{
    static int        handles[MOST + 1];
    struct xm_stream *held;
    int               same;

    snprintf(type, sizeof(type), "cudaStream_t");
    snprintf(value, sizeof(value), "0102030405060708");
    for (int i = 0; i < MOST; i++) {
        CHECK(create(&handles[i]) == MPI_SUCCESS, "stream %d", i);
    }
    CHECK(create(&handles[MOST]) != MPI_SUCCESS, "one too many");
    held = xm_stream_of(handles[7]);
    xm_stream_use(held);
    same = handles[7];
    CHECK((destroy(&handles[7]) == MPI_SUCCESS) && (handles[7] == XM_STREAM_NULL), "freed");
    CHECK(xm_stream_of(same) == NULL, "its handle means nothing");
    CHECK(destroy(&same) != MPI_SUCCESS, "freed twice");
    CHECK(create(&handles[7]) != MPI_SUCCESS, "but a communicator has it");
    xm_stream_unuse(held);
    CHECK((create(&handles[7]) == MPI_SUCCESS) && (xm_stream_of(handles[7]) != NULL), "no more");
    CHECK(xm_stream_of(XM_STREAM_NULL) == NULL, "null is no stream of ours");
    for (int i = 0; i < MOST; i++) {
        CHECK(destroy(&handles[i]) == MPI_SUCCESS, "stream %d", i);
    }
}

int main(void)
{
    xm_pmpi.Info_set = info_set;
    xm_pmpi.Info_get = info_get;
    test_hexadecimal();
    test_values();
    test_handles();
    CHECK(errors > 0, "errors go to the program");
    return xt_done("stream objects");
}
