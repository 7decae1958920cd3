/* SPDX-License-Identifier: BSD-3-Clause */
/* What the ranks agree by ends at a page that is none, as long as there are mappings to spare. */
#include "check.h"
#include "comms/guarded.h"
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MANY = 40000 };

static int pipe_ends[2];

/* What the kernel says that copies from there; the process itself, and AddressSanitizer, would end.
 */
static bool is_readable(const char *at)
{
    char taken;

    if (syscall(SYS_write, pipe_ends[1], at, 1) != 1) {
        CHECK(errno == EFAULT, "%s", strerror(errno));
        return false;
    }
    CHECK(read(pipe_ends[0], &taken, 1) == 1, "%s", strerror(errno));
    return true;
}

static void check_memory(char *memory, size_t bytes)
{
    CHECK(memory != NULL, "%zu bytes", bytes);
    if (memory != NULL) {
        CHECK((uintptr_t)memory % 16 == 0, "%p", (void *)memory);
        for (size_t i = 0; i < bytes; i++) {
            CHECK(memory[i] == 0, "byte %zu of %zu", i, bytes);
        }
        memset(memory, 0x5a, bytes);
    }
}

static void test_ends_at_a_page_that_is_none(void)
{
    static const size_t sizes[] = {1, 16, 24, 4064, 4096, 100000};

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        char *memory = xm_guarded_alloc(sizes[i]);

        check_memory(memory, sizes[i]);
        CHECK(is_readable(memory + sizes[i] - 1), "the last of %zu bytes", sizes[i]);
        CHECK(!is_readable(memory + (sizes[i] + 15) / 16 * 16), "behind %zu bytes", sizes[i]);
        xm_guarded_free(memory);
    }
    xm_guarded_free(NULL);
}

/* Of all, as many are guarded as leave the process mappings for other things. */
static void test_does_not_use_up_mappings(void)
{
    static char *memory[MANY];
    int          n_guarded = 0;

    for (int i = 0; i < MANY; i++) {
        memory[i] = xm_guarded_alloc(32);
        check_memory(memory[i], 32);
    }
    for (int i = 0; i < MANY; i++) {
        n_guarded += is_readable(memory[i] + 32) ? 0 : 1;
    }
    CHECK((n_guarded >= 1000) && (n_guarded <= 10000), "%d of %d are guarded", n_guarded, MANY);
    for (int i = 0; i < MANY; i++) {
        CHECK(memory[i][31] == 0x5a, "the last byte of %d", i);
        xm_guarded_free(memory[i]);
    }
    char *again = xm_guarded_alloc(32);
    CHECK(!is_readable(again + 32), "those that were freed make room for others");
    xm_guarded_free(again);
}

/* Whoever watches munmap() may keep something of each. */
static void test_keeps_some_mapped(void)
{
    char *memory = xm_guarded_alloc(32), *others[100];

    memset(memory, 0x5a, 32);
    xm_guarded_free(memory);
    CHECK(is_readable(memory), "it was unmapped");
    for (int i = 0; i < 100; i++) { /* more than are kept */
        others[i] = xm_guarded_alloc(4000);
        check_memory(others[i], 4000);
        CHECK(!is_readable(others[i] + 4000), "behind 4000 bytes, %d", i);
    }
    for (int i = 0; i < 100; i++) {
        xm_guarded_free(others[i]);
    }
    memory = xm_guarded_alloc(4 << 12);
    xm_guarded_free(memory);
    CHECK(!is_readable(memory), "of more than a page nothing is kept");
}

int main(void)
{
    CHECK(pipe(pipe_ends) == 0, "%s", strerror(errno));
    test_ends_at_a_page_that_is_none();
    test_does_not_use_up_mappings();
    test_keeps_some_mapped();
    return xt_done("guarded");
}
