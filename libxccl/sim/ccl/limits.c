/* SPDX-License-Identifier: BSD-3-Clause */
/* What a collective library cannot do although NCCL can, and how it says so. */
#include <dlfcn.h>
#include <stdlib.h>

#include "ccl/ccl.h"

/* MSCCL++ hands to NCCL what it has no algorithm for, if it was told where NCCL is. */
static bool has_nccl(void)
{
    static int  known; /* atomic: 1 yes, 2 no */
    int         answer = __atomic_load_n(&known, __ATOMIC_ACQUIRE);
    const char *path = getenv("MSCCLPP_NCCL_LIB_PATH");

    if (answer == 0) {
        void *nccl =
            ((path != NULL) && (path[0] != '\0')) ? dlopen(path, RTLD_LAZY | RTLD_LOCAL) : NULL;
        answer = ((nccl != NULL) && (dlsym(nccl, "ncclAllReduce") != NULL)) ? 1 : 2;
        __atomic_store_n(&known, answer, __ATOMIC_RELEASE);
    }
    return answer == 1;
}

static bool mscclpp_has_type(int type)
{
    return (type == XS_UINT8) || (type == XS_INT32) || (type == XS_UINT32) ||
           (type == XS_FLOAT16) || (type == XS_FLOAT32) || (type == XS_BFLOAT16);
}

/* Which of its collectives look at the type before NCCL is asked. */
static enum xs_result check_mscclpp(const struct xs_task *task)
{
    const char *name = xs_coll_name(task->coll);
    bool        own = (task->coll == XS_ALLREDUCE) || (task->coll == XS_ALLGATHER);
    bool        converts = own || (task->coll == XS_BROADCAST) || (task->coll == XS_REDUCE_SCATTER);

    if (task->comm->nranks == 1) {
        return XS_SUCCESS; /* a copy */
    }
    if (converts && !mscclpp_has_type(task->type)) {
        /* There an exception leaves a function of C, which ends the process. */
        xs_log(XS_LOG_WARN, "%s : Unsupported ncclDataType_t: %d", name, task->type);
        abort();
    }
    if (!own && !has_nccl()) {
        return xs_problem(XS_INTERNAL_ERROR, "%s is currently unavailable", name);
    }
    if ((task->coll == XS_ALLREDUCE) && (task->op != XS_SUM) && (task->op != XS_MIN)) {
        return xs_problem(XS_INVALID_USAGE, "%s : no kernel for reduction operation %d", name,
                          task->op);
    }
    if (own && (xs_config()->nodes > 1) && !has_nccl()) {
        return xs_problem(XS_INVALID_USAGE, "No FallBack implementation for %s", name);
    }
    return XS_SUCCESS;
}

enum xs_result xs_check_limits(const struct xs_task *task)
{
    return (xs_config()->library == XS_MSCCLPP) ? check_mscclpp(task) : XS_SUCCESS;
}
