/* SPDX-License-Identifier: BSD-3-Clause */
/* What is known to be host memory by its address: the stack in use, the heap, the program's data.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "check.h"
#include "device/device.h"

static int zero[4];
static int set[4] = {1, 2, 3, 4};

static void test_thread_memory(void)
{
    /* Not a variable's: AddressSanitizer of GCC 13 and later keeps those elsewhere. */
    char *here = __builtin_frame_address(0);
    char *mapped = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    CHECK(xc_mem_surely_host(here), "the stack");
    CHECK(xc_mem_surely_host(&here[63]), "its other end");
    /* Far below this frame lies no memory of the stack's, whatever it may become. */
    CHECK(!xc_mem_surely_host((void *)((uintptr_t)here - (1 << 16))), "below the stack");
    CHECK(!xc_mem_surely_host(mapped), "a mapping, which a device might have made");
    CHECK(!xc_mem_surely_host(mapped + (1 << 20) - 1), "its end");
    munmap(mapped, 1 << 20);
}

static void *in_thread(void *arg)
{
    (void)arg;
    test_thread_memory();
    return NULL;
}

/* Must see through an allocator that is not the C library's, such as a sanitizer's. */
static void test_heap(void)
{
    char *old_break = sbrk(4096);

    CHECK(old_break != (char *)-1, "sbrk");
    CHECK(xc_mem_surely_host(old_break), "the heap as it has grown since");
    CHECK(xc_mem_surely_host(old_break + 4095), "its last byte");
    CHECK(!xc_mem_surely_host((char *)sbrk(0) + 4096), "above the heap");
    CHECK(sbrk(64 << 20) != (void *)-1, "sbrk");
    CHECK(xc_mem_surely_host((char *)sbrk(0) - 1), "the heap grown a lot");
}

/* Under an unlimited stack the room below it is anybody's: run again so. */
static int again(char **argv)
{
    struct rlimit unlimited = {RLIM_INFINITY, RLIM_INFINITY};

    if (setrlimit(RLIMIT_STACK, &unlimited) != 0) {
        printf("the stack's limit cannot be lifted here: not tried without\n");
        return 0;
    }
    execl(argv[0], argv[0], "unlimited", (char *)NULL);
    return 1;
}

int main(int argc, char **argv)
{
    pthread_t thread;
    bool      unlimited = (argc > 1) && (strcmp(argv[1], "unlimited") == 0);

    CHECK(xc_mem_surely_host(NULL), "NULL");
    CHECK(xc_mem_surely_host(zero) && xc_mem_surely_host(set), "the program's data");
    CHECK(!xc_mem_surely_host((void *)UINTPTR_MAX), "the last address");
    test_thread_memory();
    CHECK(pthread_create(&thread, NULL, in_thread, NULL) == 0, "a thread");
    pthread_join(thread, NULL);
    test_heap();
    int status = xt_done(unlimited ? "addresses, unlimited stack" : "addresses");
    return ((status != 0) || unlimited) ? status : again(argv);
}
