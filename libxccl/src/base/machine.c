/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/machine.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/hash.h"

/* By its boot id; sandboxes may have none, then the machine is known by its name. */
uint64_t xc_machine_number(void)
{
    char    text[256] = "";
    int     fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t n = -1;

    if (fd >= 0) {
        n = read(fd, text, sizeof(text) - 1);
        close(fd);
    }
    if (n > 0) {
        text[n] = '\0';
    } else if (gethostname(text, sizeof(text) - 1) != 0) {
        text[0] = '\0';
    }
    return xc_hash_text(XC_HASH_BEGIN, text);
}
