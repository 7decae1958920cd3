/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A stand-in for a library of the NCCL family that does nothing but write down what it was asked.
 * FAKE_VERSION is the version it says, and decides which symbols it has; FAKE_RCCL gives it RCCL's;
 * FAKE_LACKS_SEND leaves one out that every version in use has; FAKE_MSCCL marks it as that fork;
 * FAKE_MSCCLPP gives it the functions that only return an error there.
 */
#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define API __attribute__((visibility("default")))
enum { MAX_CALLS = 256, MAX_TEXT = 160 };

typedef struct {
    char internal[128];
} ncclUniqueId;

struct comm {
    int nranks, rank;
    int aborted;
};

static char            calls[MAX_CALLS][MAX_TEXT];
static int             num_calls;
static char            failing[64];
static int             failure;
static int             blocking;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

API int         fake_count(void);
API const char *fake_get(int i);
API void        fake_clear(void);
API void        fake_fail(const char *symbol, int result);
API void        fake_block(int on);
API int         fake_waits(void);

int fake_count(void)
{
    return num_calls;
}

const char *fake_get(int i)
{
    return ((i >= 0) && (i < num_calls)) ? calls[i] : "";
}

void fake_clear(void)
{
    num_calls = 0;
}

void fake_fail(const char *symbol, int result)
{
    snprintf(failing, sizeof(failing), "%s", symbol);
    failure = result;
}

void fake_block(int on)
{
    blocking = on;
}

int fake_waits(void)
{
    return __atomic_load_n(&blocking, __ATOMIC_ACQUIRE) == 2;
}

static int note(const char *symbol, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static int note(const char *symbol, const char *fmt, ...)
{
    va_list ap;

    pthread_mutex_lock(&lock);
    if (num_calls < MAX_CALLS) {
        int n = snprintf(calls[num_calls], MAX_TEXT, "%s(", symbol);
        va_start(ap, fmt);
        n += vsnprintf(calls[num_calls] + n, MAX_TEXT - (size_t)n, fmt, ap);
        va_end(ap);
        snprintf(calls[num_calls] + n, MAX_TEXT - (size_t)n, ")");
        num_calls++;
    }
    pthread_mutex_unlock(&lock);
    return (strcmp(failing, symbol) == 0) ? failure : 0;
}

API int ncclGetVersion(int *version);
int     ncclGetVersion(int *version)
{
    *version = FAKE_VERSION;
    return note("ncclGetVersion", "%s", "");
}

API const char *ncclGetErrorString(int result);
const char     *ncclGetErrorString(int result)
{
    return (result == 0) ? "no error" : "fake error";
}

API int ncclGetUniqueId(ncclUniqueId *id);
int     ncclGetUniqueId(ncclUniqueId *id)
{
    for (int i = 0; i < 128; i++) {
        id->internal[i] = (char)(i * 7 + 1);
    }
    return note("ncclGetUniqueId", "%s", "");
}

/* The id passed by value must have arrived byte by byte. */
static const char *id_state(ncclUniqueId id)
{
    for (int i = 0; i < 128; i++) {
        if (id.internal[i] != (char)(i * 7 + 1)) {
            return "damaged";
        }
    }
    return "intact";
}

static int make(const char *symbol, struct comm **comm, int nranks, int rank, int result)
{
    (void)symbol;
    if (result == 0) {
        *comm = calloc(1, sizeof(**comm));
        (*comm)->nranks = nranks;
        (*comm)->rank = rank;
    }
    return result;
}

API int ncclCommInitRank(struct comm **comm, int nranks, ncclUniqueId id, int rank);
int     ncclCommInitRank(struct comm **comm, int nranks, ncclUniqueId id, int rank)
{
    int rc = note("ncclCommInitRank", "nranks=%d,rank=%d,id=%s", nranks, rank, id_state(id));
    return make("ncclCommInitRank", comm, nranks, rank, rc);
}

API int ncclCommDestroy(struct comm *comm);
int     ncclCommDestroy(struct comm *comm)
{
    free(comm);
    return note("ncclCommDestroy", "%s", "");
}

API int ncclCommAbort(struct comm *comm);
int     ncclCommAbort(struct comm *comm)
{
    __atomic_store_n(&comm->aborted, 1, __ATOMIC_RELEASE);
    while (__atomic_load_n(&blocking, __ATOMIC_ACQUIRE) == 2) {
        struct timespec ms = {0, 1000000}; /* until the blocked call has seen it */
        nanosleep(&ms, NULL);
    }
    free(comm);
    return note("ncclCommAbort", "%s", "");
}

API int ncclCommGetAsyncError(struct comm *comm, int *error);
int     ncclCommGetAsyncError(struct comm *comm, int *error)
{
    (void)comm;
    *error = (strcmp(failing, "async") == 0) ? failure : 0;
    return note("ncclCommGetAsyncError", "%s", "");
}

API int ncclCommCount(struct comm *comm, int *count);
int     ncclCommCount(struct comm *comm, int *count)
{
    *count = comm->nranks;
    return 0;
}

API int ncclCommUserRank(struct comm *comm, int *rank);
int     ncclCommUserRank(struct comm *comm, int *rank)
{
    *rank = comm->rank;
    return 0;
}

API int ncclCommCuDevice(struct comm *comm, int *device);
int     ncclCommCuDevice(struct comm *comm, int *device)
{
    *device = 40 + comm->rank;
    return 0;
}

API int ncclAllReduce(const void *s, void *r, size_t n, int type, int op, struct comm *c, void *st);
int     ncclAllReduce(const void *s, void *r, size_t n, int type, int op, struct comm *c, void *st)
{
    (void)s;
    (void)r;
    if (__atomic_load_n(&blocking, __ATOMIC_ACQUIRE) == 1) {
        __atomic_store_n(&blocking, 2, __ATOMIC_RELEASE);
        while (!__atomic_load_n(&c->aborted, __ATOMIC_ACQUIRE)) {
            struct timespec ms = {0, 1000000};
            nanosleep(&ms, NULL);
        }
        __atomic_store_n(&blocking, 0, __ATOMIC_RELEASE);
        return 6;
    }
    return note("ncclAllReduce", "count=%zu,type=%d,op=%d,stream=%p", n, type, op, st);
}

API int ncclBroadcast(const void *s, void *r, size_t n, int type, int root, void *c, void *st);
int     ncclBroadcast(const void *s, void *r, size_t n, int type, int root, void *c, void *st)
{
    (void)c;
    (void)st;
    return note("ncclBroadcast", "send=%p,recv=%p,count=%zu,type=%d,root=%d", s, r, n, type, root);
}

API int ncclReduce(const void *s, void *r, size_t n, int type, int op, int root, void *c, void *st);
int     ncclReduce(const void *s, void *r, size_t n, int type, int op, int root, void *c, void *st)
{
    (void)s;
    (void)r;
    (void)c;
    (void)st;
    return note("ncclReduce", "count=%zu,type=%d,op=%d,root=%d", n, type, op, root);
}

API int ncclReduceScatter(const void *s, void *r, size_t n, int type, int op, void *c, void *st);
int     ncclReduceScatter(const void *s, void *r, size_t n, int type, int op, void *c, void *st)
{
    (void)s;
    (void)r;
    (void)c;
    (void)st;
    return note("ncclReduceScatter", "count=%zu,type=%d,op=%d", n, type, op);
}

API int ncclAllGather(const void *s, void *r, size_t n, int type, void *c, void *st);
int     ncclAllGather(const void *s, void *r, size_t n, int type, void *c, void *st)
{
    (void)s;
    (void)r;
    (void)c;
    (void)st;
    return note("ncclAllGather", "count=%zu,type=%d", n, type);
}

#ifndef FAKE_LACKS_SEND
API int ncclSend(const void *s, size_t n, int type, int peer, void *c, void *st);
int     ncclSend(const void *s, size_t n, int type, int peer, void *c, void *st)
{
    (void)c;
    (void)st;
    return note("ncclSend", "%p,count=%zu,type=%d,peer=%d", s, n, type, peer);
}
#endif

API int ncclRecv(void *r, size_t n, int type, int peer, void *c, void *st);
int     ncclRecv(void *r, size_t n, int type, int peer, void *c, void *st)
{
    (void)c;
    (void)st;
    return note("ncclRecv", "%p,count=%zu,type=%d,peer=%d", r, n, type, peer);
}

API int ncclGroupStart(void);
int     ncclGroupStart(void)
{
    return note("ncclGroupStart", "%s", "");
}

API int ncclGroupEnd(void);
int     ncclGroupEnd(void)
{
    return note("ncclGroupEnd", "%s", "");
}

#if FAKE_VERSION >= 21100
API int ncclRedOpCreatePreMulSum(int *op, void *scalar, int type, int residence, void *c);
int     ncclRedOpCreatePreMulSum(int *op, void *scalar, int type, int residence, void *c)
{
    (void)scalar;
    (void)c;
    *op = 1000;
    return note("ncclRedOpCreatePreMulSum", "type=%d,residence=%d", type, residence);
}

API int ncclRedOpDestroy(int op, void *c);
int     ncclRedOpDestroy(int op, void *c)
{
    (void)c;
    return note("ncclRedOpDestroy", "op=%d", op);
}
#endif

#if FAKE_VERSION >= 21300
API const char *ncclGetLastError(void *c);
const char     *ncclGetLastError(void *c)
{
    (void)c;
    return (failure != 0) ? "the fake was told to fail" : "";
}
#endif

#if FAKE_VERSION >= 21400
struct config {
    size_t      size;
    unsigned    magic, version;
    int         blocking, cga, min_ctas, max_ctas;
    const char *net;
    int         split_share;
};

API int ncclCommInitRankConfig(struct comm **comm, int nranks, ncclUniqueId id, int rank,
                               struct config *c);
int     ncclCommInitRankConfig(struct comm **comm, int nranks, ncclUniqueId id, int rank,
                               struct config *c)
{
    int rc = note("ncclCommInitRankConfig",
                  "nranks=%d,rank=%d,id=%s,size=%zu,magic=%x,version=%u,"
                  "blocking=%d",
                  nranks, rank, id_state(id), c->size, c->magic, c->version, c->blocking);
    return make("ncclCommInitRankConfig", comm, nranks, rank, rc);
}

API int ncclCommFinalize(void *c);
int     ncclCommFinalize(void *c)
{
    (void)c;
    return note("ncclCommFinalize", "%s", "");
}
#endif

#if FAKE_VERSION >= 21800
API int ncclCommSplit(struct comm *c, int color, int key, struct comm **newcomm, void *config);
int     ncclCommSplit(struct comm *c, int color, int key, struct comm **newcomm, void *config)
{
    int rc = note("ncclCommSplit", "color=%d,key=%d,config=%s", color, key,
                  (config != NULL) ? "given" : "none");
    *newcomm = NULL;
    return (color < 0) ? rc : make("ncclCommSplit", newcomm, c->nranks, c->rank, rc);
}
#endif

#if FAKE_VERSION >= 21900
API int ncclMemAlloc(void **ptr, size_t size);
int     ncclMemAlloc(void **ptr, size_t size)
{
    *ptr = malloc(size);
    return note("ncclMemAlloc", "%zu", size);
}

API int ncclMemFree(void *ptr);
int     ncclMemFree(void *ptr)
{
    free(ptr);
    return note("ncclMemFree", "%s", "");
}
#endif

#if FAKE_VERSION >= 22700
API int ncclCommWindowRegister(struct comm *comm, void *buff, size_t size, void **win, int flags);
int     ncclCommWindowRegister(struct comm *comm, void *buff, size_t size, void **win, int flags)
{
    (void)comm;
    *win = buff;
    return note("ncclCommWindowRegister", "%zu,flags=%d", size, flags);
}

API int ncclCommWindowDeregister(struct comm *comm, void *win);
int     ncclCommWindowDeregister(struct comm *comm, void *win)
{
    (void)comm;
    return note("ncclCommWindowDeregister", "%p", win);
}
#endif

#ifdef FAKE_MSCCL
API int mscclLoadAlgo(const char *path, int *handle, int rank);
int     mscclLoadAlgo(const char *path, int *handle, int rank)
{
    (void)handle;
    return note("mscclLoadAlgo", "%s,%d", path, rank);
}
#endif

#if defined(FAKE_RCCL) || defined(FAKE_MSCCLPP)
#define ALLTOALL ncclAllToAll
#define ALLTOALL_NAME "ncclAllToAll"
#else
#define ALLTOALL ncclAlltoAll
#define ALLTOALL_NAME "ncclAlltoAll"
#endif

#if defined(FAKE_RCCL) || defined(FAKE_MSCCLPP) || (FAKE_VERSION >= 22800)
API int ALLTOALL(const void *s, void *r, size_t n, int type, void *c, void *st);
int     ALLTOALL(const void *s, void *r, size_t n, int type, void *c, void *st)
{
    (void)s;
    (void)r;
    (void)c;
    (void)st;
    return note(ALLTOALL_NAME, "count=%zu,type=%d", n, type);
}

API int ncclGather(const void *s, void *r, size_t n, int type, int root, void *c, void *st);
int     ncclGather(const void *s, void *r, size_t n, int type, int root, void *c, void *st)
{
    (void)s;
    (void)r;
    (void)c;
    (void)st;
    return note("ncclGather", "count=%zu,type=%d,root=%d", n, type, root);
}

API int ncclScatter(const void *s, void *r, size_t n, int type, int root, void *c, void *st);
int     ncclScatter(const void *s, void *r, size_t n, int type, int root, void *c, void *st)
{
    (void)s;
    (void)r;
    (void)c;
    (void)st;
    return note("ncclScatter", "count=%zu,type=%d,root=%d", n, type, root);
}
#endif

#ifdef FAKE_RCCL
API int ncclAllToAllv(const void *s, const size_t sc[], const size_t sd[], void *r,
                      const size_t rc[], const size_t rd[], int type, struct comm *c, void *st);
int ncclAllToAllv(const void *s, const size_t sc[], const size_t sd[], void *r, const size_t rc[],
                  const size_t rd[], int type, struct comm *c, void *st)
{
    int last = c->nranks - 1;

    (void)s;
    (void)r;
    (void)st;
    return note("ncclAllToAllv", "%zu@%zu,%zu@%zu,type=%d", sc[last], sd[last], rc[last], rd[last],
                type);
}
#endif
