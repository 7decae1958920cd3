/* SPDX-License-Identifier: BSD-3-Clause */
#include "device/device.h"

#include <link.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/log.h"
#include "device/anchor.h"
#include "device/runtimes.h"
#include "device/symbols.h"

static const struct xc_device_ops *const all_ops[] = {&xc_cuda_ops, &xc_hip_ops, &xc_hpu_ops};

enum { NUM_RUNTIMES = sizeof(all_ops) / sizeof(all_ops[0]) };

/* Ask all runtimes. */
static const struct xc_device_ops *find_active(void)
{
    for (int i = 0; i < NUM_RUNTIMES; i++) {
        if (all_ops[i]->active()) {
            return all_ops[i];
        }
    }
    return NULL;
}

static bool               loaded;  /* atomic: a runtime is */
static unsigned long long none_at; /* atomic: where no anchor is to be had, what was loaded then */

/* Something was loaded: a runtime? If so, that is not asked again. */
static const struct xc_device_ops *look_again(void)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

    /* Not by waiting: this may be a constructor's thread, and the other need the loader. */
    if (pthread_mutex_trylock(&lock) != 0) {
        return find_active();
    }
    /* First: what is loaded from now on is behind it. */
    const struct link_map *map =
        __atomic_load_n(&loaded, __ATOMIC_RELAXED) ? NULL : xc_anchor_drop();
    unsigned long long          generation = xc_symbols_generation();
    const struct xc_device_ops *found = find_active();
    if ((found != NULL) || xc_cuda_loaded() || xc_hip_loaded() || xc_hpu_loaded()) {
        xc_anchor_put(NULL);
        __atomic_store_n(&loaded, true, __ATOMIC_RELEASE);
    } else {
        xc_anchor_put(map);
        __atomic_store_n(&none_at, (map == NULL) ? generation : 0, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&lock);
    return found;
}

const struct xc_device_ops *xc_device_active(void)
{
    /* Once initialised it stays so, and CUDA is asked first: nothing else takes its place. */
    if (xc_cuda_initialised()) {
        return &xc_cuda_ops;
    }
    /* The process without any device library is the one whose calls must cost nothing: one look at
     * what was loaded since answers for all runtimes. */
    if (xc_anchor_is_last(xc_anchor_place())) {
        return NULL;
    }
    if (__atomic_load_n(&loaded, __ATOMIC_ACQUIRE)) {
        return find_active();
    }
    unsigned long long none = __atomic_load_n(&none_at, __ATOMIC_ACQUIRE);
    return ((none != 0) && (none == xc_symbols_generation())) ? NULL : look_again();
}

const struct xc_device_ops *xc_device_by_name(const char *name)
{
    for (int i = 0; i < NUM_RUNTIMES; i++) {
        if (strcmp(all_ops[i]->name, name) == 0) {
            return all_ops[i];
        }
    }
    return NULL;
}

xcclResult_t xc_device_start(const char *name, const struct xc_device_ops **ops_p)
{
    xcclResult_t res;

    if (strcmp(name, "cuda") == 0) {
        res = xc_cuda_start();
    } else if (strcmp(name, "rocm") == 0) {
        res = xc_hip_start();
    } else if (strcmp(name, "hpu") == 0) {
        res = xc_hpu_start();
    } else if (strcmp(name, "auto") == 0) {
        if (xc_cuda_start() == xcclSuccess) {
            *ops_p = &xc_cuda_ops;
            return xcclSuccess;
        }
        char cuda_detail[512];
        snprintf(cuda_detail, sizeof(cuda_detail), "%s", xc_last_detail());
        res = xc_hip_start();
        if (res != xcclSuccess) {
            res = xc_fail(res, "no device: %s; %s", cuda_detail, xc_last_detail());
        } else {
            name = "rocm";
        }
    } else {
        return xc_fail(xcclInvalidArgument,
                       "no device runtime is called '%s'; use cuda, rocm, hpu or auto", name);
    }
    if (res == xcclSuccess) {
        *ops_p = xc_device_by_name(name);
    }
    return res;
}

struct xc_mem_info xc_mem_query(const void *ptr)
{
    struct xc_mem_info info = {.kind = XC_MEM_HOST, .device = -1};

    if (ptr == NULL) {
        return info;
    }
    const struct xc_device_ops *ops = xc_device_active();
    return (ops != NULL) ? ops->mem_query(ptr) : info;
}

/* The program's own memory: never a device's, whatever was allocated since. */
static struct {
    uintptr_t image_low, image_high; /* writable part of the executable */
    uintptr_t heap_low, heap_high;   /* to the break when it was last asked for (atomic) */
} program;

static pthread_once_t program_once = PTHREAD_ONCE_INIT;

static int read_image(struct dl_phdr_info *info, size_t size, void *arg)
{
    (void)size;
    (void)arg;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *ph = &info->dlpi_phdr[i];
        if ((ph->p_type == PT_LOAD) && ((ph->p_flags & PF_W) != 0)) {
            program.image_low = info->dlpi_addr + ph->p_vaddr;
            program.image_high = program.image_low + ph->p_memsz;
        }
    }
    return 1; /* the executable comes first */
}

static void read_program(void)
{
    dl_iterate_phdr(read_image, NULL);
    /* Field 47 of stat is where the heap began. Behind the name, which may hold anything. */
    char  text[2048];
    FILE *f = fopen("/proc/self/stat", "re");
    program.heap_low = UINTPTR_MAX;
    program.heap_high = 0;
    if (f == NULL) {
        return;
    }
    size_t n = fread(text, 1, sizeof(text) - 1, f);
    fclose(f);
    text[n] = '\0';
    char *p = strrchr(text, ')');
    for (int field = 2; (p != NULL) && (field < 47); field++) {
        p = strchr(p + 1, ' ');
    }
    unsigned long start_brk = 0;
    if ((p != NULL) && (sscanf(p, "%lu", &start_brk) == 1) && (start_brk != 0)) {
        program.heap_low = start_brk;
        program.heap_high = (uintptr_t)syscall(SYS_brk, 0);
    }
}

struct range {
    uintptr_t low, high;
};
static __thread struct range stack; /* {0, 0}: not read yet */

static void read_stack(void)
{
    pthread_attr_t attr;
    void          *low;
    size_t         size;

    pthread_once(&program_once, read_program);
    stack.high = 1; /* known, and empty unless the rest succeeds */
    if (pthread_getattr_np(pthread_self(), &attr) != 0) {
        return;
    }
    if (pthread_attr_getstack(&attr, &low, &size) == 0) {
        stack.low = (uintptr_t)low;
        stack.high = stack.low + size;
    }
    pthread_attr_destroy(&attr);
}

/*
 * Only from this frame upwards: below it, the room that an unlimited stack may grow into is also
 * room for mappings, a device's among them. A thread that runs on a stack of another making
 * (fibers) gets no answer here.
 */
static bool in_stack(uintptr_t p)
{
    static const uintptr_t most = (uintptr_t)1 << 30;
    uintptr_t              here = (uintptr_t)__builtin_frame_address(0);

    return (p >= here) && (p < stack.high) && (here >= stack.low) && (stack.high - here < most);
}

/*
 * The break is asked for only when an address lies a little above what was the heap: the heap may
 * have grown. Where it has shrunk since, a device could at most be given addresses in the middle
 * of the heap's own room, which no kernel does. Not by sbrk(): UCX hooks that, at 400 ns a call.
 */
static bool in_heap(uintptr_t p)
{
    static const uintptr_t near = (uintptr_t)1 << 30;
    uintptr_t              high = __atomic_load_n(&program.heap_high, __ATOMIC_RELAXED);

    if ((p < program.heap_low) || (p >= high + near)) {
        return false;
    }
    if (p < high) {
        return true;
    }
    high = (uintptr_t)syscall(SYS_brk, 0);
    __atomic_store_n(&program.heap_high, high, __ATOMIC_RELAXED);
    return p < high;
}

bool xc_mem_surely_host(const void *ptr)
{
    uintptr_t p = (uintptr_t)ptr;

    if (stack.high == 0) {
        read_stack();
    }
    return in_stack(p) || in_heap(p) || (p == 0) ||
           ((p >= program.image_low) && (p < program.image_high));
}

const char *xc_crash_hint(int error)
{
    /* an illegal address, a time-out, an assertion, a stack error, an illegal instruction, a
     * misaligned address, address space or program counter, and a failure without a name */
    static const int crashes[] = {700, 702, 710, 714, 715, 716, 717, 718, 719};

    for (size_t i = 0; i < sizeof(crashes) / sizeof(crashes[0]); i++) {
        if (error == crashes[i]) {
            return "; a kernel has crashed before this call, most likely the program's own: "
                   "compute-sanitizer finds it";
        }
    }
    return "";
}
