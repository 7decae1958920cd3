/* SPDX-License-Identifier: BSD-3-Clause */
#include "vendor/verbs.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "vendor/vendor.h"

enum { LINE = 32 };

static void read_line(const char *port, const char *name, char line[LINE])
{
    char path[XC_PATH_MAX + 16];

    snprintf(path, sizeof(path), "%s/%s", port, name);
    FILE *f = fopen(path, "re");
    if ((f == NULL) || (fgets(line, LINE, f) == NULL)) {
        line[0] = '\0';
    }
    if (f != NULL) {
        fclose(f);
    }
    line[strcspn(line, "\n")] = '\0';
}

static bool is_usable(const char *port)
{
    char state[LINE], link[LINE];

    read_line(port, "state", state);
    read_line(port, "link_layer", link);
    return (strcmp(state, "4: ACTIVE") == 0) &&
           ((strcmp(link, "InfiniBand") == 0) || (strcmp(link, "Ethernet") == 0));
}

/* Is it so of one of the folder's entries? */
static bool any_in(const char *folder, bool (*is_so)(const char *path))
{
    DIR *dir = opendir(folder);
    bool found = false;
    char path[XC_PATH_MAX];

    if (dir == NULL) {
        return false;
    }
    for (const struct dirent *e = readdir(dir); (e != NULL) && !found; e = readdir(dir)) {
        int n = snprintf(path, sizeof(path), "%s/%s", folder, e->d_name);
        found = (e->d_name[0] != '.') && (n < (int)sizeof(path)) && is_so(path);
    }
    closedir(dir);
    return found;
}

static bool has_usable_port(const char *device)
{
    char ports[XC_PATH_MAX + 8];

    snprintf(ports, sizeof(ports), "%s/ports", device);
    return any_in(ports, is_usable);
}

bool xc_verbs_usable(const char *folder)
{
    return any_in(folder, has_usable_port);
}
