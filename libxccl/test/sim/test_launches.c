/* SPDX-License-Identifier: BSD-3-Clause */
/* Kernels launched with attributes. */
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "driver_abi.h"
#include "kernels/kernels.h"
#include "ranks.h"

static CUstream stream;

/* In a process that has not used the device: threads of the simulation do not live through fork. */
static void *start(const char *kernel)
{
    const struct xk_image *image =
        dlsym(dlopen("libxccl-direct-cuda.so", RTLD_NOW), XK_IMAGE_SYMBOL);
    void     *module, *function;
    CUcontext ctx;

    CHECK(image != NULL);
    CHECK_EQ(cuInit(0), CUDA_SUCCESS);
    CHECK_EQ(cuDevicePrimaryCtxRetain(&ctx, 0), CUDA_SUCCESS);
    CHECK_EQ(cuCtxSetCurrent(ctx), CUDA_SUCCESS);
    CHECK_EQ(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    CHECK_EQ(cuModuleLoadData(&module, image->local), CUDA_SUCCESS);
    CHECK_EQ(cuModuleGetFunction(&function, module, kernel), CUDA_SUCCESS);
    return function;
}

/* Launch a copy of a word, which does not wait for what its stream has before it. */
static void copy_word(struct launch_attribute *attribute)
{
    void                *function = start("xk_batch"), *host;
    struct xk_batch      copies = {{{.bytes = 4, .value = 1, .blocks = 1}}};
    struct xk_copy      *copy = &copies.copy[0];
    void                *list[] = {&copies};
    CUdeviceptr          device;
    volatile uint32_t   *words;
    struct launch_config config = {.grid = {1, 1, 1},
                                   .block = {1, 1, 1},
                                   .stream = stream,
                                   .attributes = attribute,
                                   .count = 1};

    CHECK_EQ(cuMemAlloc_v2(&device, 64), CUDA_SUCCESS);
    CHECK_EQ(cuMemsetD8_v2(device, 0, 64), CUDA_SUCCESS);
    CHECK_EQ(cuMemHostAlloc(&host, 64, 0), CUDA_SUCCESS);
    words = host;
    copy->from = (uint64_t)(uintptr_t)host;
    copy->to = (uint64_t)(uintptr_t)host + 4;
    copy->finished = (uint32_t *)device;
    copy->done = (uint32_t *)host + 2;
    words[0] = 17;
    words[1] = 0;
    CHECK_EQ(cuLaunchKernelEx(&config, function, list, NULL), CUDA_SUCCESS);
    CHECK_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
    CHECK_EQ(words[1], 17);
}

/* Its signal, and what it wrote to stderr. */
static int end_of_early_copy(char *said, size_t bytes)
{
    struct launch_attribute early = {ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, {.number = 1}};
    int                     ends[2], status = 0;
    ssize_t                 got;

    CHECK_EQ(pipe(ends), 0);
    pid_t pid = fork();
    if (pid == 0) {
        signal(SIGABRT, SIG_DFL);
        dup2(ends[1], STDERR_FILENO);
        copy_word(&early);
        _exit(0);
    }
    close(ends[1]);
    got = read(ends[0], said, bytes - 1);
    said[(got > 0) ? got : 0] = '\0';
    close(ends[0]);
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void early(const struct world *world)
{
    struct launch_attribute off = {ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, {.number = 0}};
    char                    said[200];

    (void)world;
    CHECK_EQ(end_of_early_copy(said, sizeof(said)), SIGABRT);
    CHECK(strstr(said, "kernel xk_batch was launched early and did not wait") != NULL);
    copy_word(&off);
}

static void refused(const struct world *world)
{
    struct launch_attribute other = {ATTRIBUTE_COOPERATIVE, {.number = 1}};
    struct launch_config    config = {
           .grid = {1, 1, 1}, .block = {1, 1, 1}, .attributes = &other, .count = 1};
    struct xk_batch copies = {0};
    void           *function = start("xk_batch"), *list[] = {&copies};
    int             version = 0;

    (void)world;
    CHECK_EQ(cuFuncGetAttribute(&version, CU_FUNC_ATTRIBUTE_PTX_VERSION, function), CUDA_SUCCESS);
    CHECK_EQ(version, 90);
    CHECK_EQ(cuFuncGetAttribute(NULL, CU_FUNC_ATTRIBUTE_PTX_VERSION, function),
             CUDA_ERROR_INVALID_VALUE);
    CHECK_EQ(cuFuncGetAttribute(&version, CU_FUNC_ATTRIBUTE_NUM_REGS, function),
             CUDA_ERROR_NOT_SUPPORTED);
    CHECK_EQ(cuLaunchKernelEx(&config, function, list, NULL), CUDA_ERROR_NOT_SUPPORTED);
    config.attributes = NULL;
    CHECK_EQ(cuLaunchKernelEx(&config, function, list, NULL), CUDA_ERROR_INVALID_VALUE);
    config.count = 0;
    config.grid[2] = 2;
    CHECK_EQ(cuLaunchKernelEx(&config, function, list, NULL), CUDA_ERROR_INVALID_VALUE);
    CHECK_EQ(cuLaunchKernelEx(NULL, function, list, NULL), CUDA_ERROR_INVALID_VALUE);
}

int main(int argc, char **argv)
{
    const struct test_case cases[] = {
        {"early", early, 1, "cuda:1", NULL, NULL, -1},
        {"refused", refused, 1, "cuda:1", NULL, NULL, -1},
    };

    return run_cases(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
