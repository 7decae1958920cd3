/* SPDX-License-Identifier: BSD-3-Clause */
#include "calls/obstacles.h"

#include <stdint.h>
#include <string.h>

/* The program may free the communicator, and other threads change its texts, before it asks. */
static __thread struct {
    const char *why; /* NULL: nothing; may be the copy */
    char        copy[sizeof(((struct xm_comm *)0)->reason)];
} obstacles[XM_NUM_PATHS];

static bool is_of(const struct xm_comm *xm, const char *text)
{
    return ((uintptr_t)text >= (uintptr_t)xm) && ((uintptr_t)text < (uintptr_t)(xm + 1));
}

void xm_obstacle_note(const struct xm_comm *xm, enum xm_path_id path, const char *why)
{
    char  *copy = obstacles[path].copy;
    size_t last = sizeof(obstacles[path].copy) - 1;

    if (is_of(xm, why)) {
        copy[last] = '\0';
        (void)memccpy(copy, why, '\0', last);
        why = copy;
    }
    obstacles[path].why = why;
}

void xm_obstacles_forget(void)
{
    for (int p = 0; p < XM_NUM_PATHS; p++) {
        obstacles[p].why = NULL;
    }
}

const char *xm_last_obstacle(const char *path)
{
    for (int p = 0; p < XM_NUM_PATHS; p++) {
        if (strcmp(path, xm_path_name((enum xm_path_id)p)) == 0) {
            return obstacles[p].why;
        }
    }
    return NULL;
}
