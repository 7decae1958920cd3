/* SPDX-License-Identifier: BSD-3-Clause */
#include "vendor/verbs.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
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

static bool is_active(const char *port)
{
    char state[LINE], link[LINE];

    read_line(port, "state", state);
    read_line(port, "link_layer", link);
    return (strcmp(state, "4: ACTIVE") == 0) &&
           ((strcmp(link, "InfiniBand") == 0) || (strcmp(link, "Ethernet") == 0));
}

/* One of the folder's entries, by its name; wanted: the value of NCCL_IB_HCA. */
struct entry {
    const char *folder, *name, *device, *wanted;
};

/* Is it so of one of them? */
static bool any_in(const char *folder, bool (*is_so)(const struct entry *e), const char *device,
                   const char *wanted)
{
    DIR *dir = opendir(folder);
    bool found = false;

    if (dir == NULL) {
        return false;
    }
    for (const struct dirent *d = readdir(dir); (d != NULL) && !found; d = readdir(dir)) {
        const struct entry e = {folder, d->d_name, device, wanted};
        found = (d->d_name[0] != '.') && is_so(&e);
    }
    closedir(dir);
    return found;
}

/* One of the list's entries is "name" or "name:port"; from NCCL 2.30.7 on more may follow, and the
 * port may be missing. */
static bool is_named(const char *entry, bool exact, const char *device, int port)
{
    size_t      name = strcspn(entry, ":,"), ends = strcspn(entry, ",");
    const char *number = entry + name + 1;
    bool        any = (name >= ends) || (*number == '\0') || (strchr(":,", *number) != NULL);

    return (strncmp(device, entry, name) == 0) && (!exact || (device[name] == '\0')) &&
           (any || (atoi(number) == port));
}

/*
 * As the NCCL user guide describes NCCL_IB_HCA: a list of prefixes of devices' names, behind "=" of
 * whole names, and behind "^" of those to leave out. What the guide does not say, as that "^" comes
 * before "=" and a list without a name has all, is as in ncclIbInit() and matchIfList() of NCCL
 * 2.8 to 2.30.
 */
static bool is_wanted(const char *list, const char *device, int port)
{
    bool leaves_out = (*list == '^');
    list += leaves_out;
    bool exact = (*list == '=');
    list += exact;
    bool listed = false, empty = true;

    while (*list != '\0') {
        bool name = (strchr(":,", *list) == NULL);
        empty = empty && !name;
        listed = listed || (name && is_named(list, exact, device, port));
        list += strcspn(list, ",");
        list += (*list == ',');
    }
    return (listed || empty) != leaves_out;
}

static bool is_usable(const struct entry *e)
{
    char port[XC_PATH_MAX];
    int  n = snprintf(port, sizeof(port), "%s/%s", e->folder, e->name);

    return (n < (int)sizeof(port)) && is_active(port) &&
           is_wanted(e->wanted, e->device, atoi(e->name));
}

static bool has_usable_port(const struct entry *e)
{
    char ports[XC_PATH_MAX];
    int  n = snprintf(ports, sizeof(ports), "%s/%s/ports", e->folder, e->name);

    return (n < (int)sizeof(ports)) && any_in(ports, is_usable, e->name, e->wanted);
}

bool xc_verbs_usable(const char *folder, const char *wanted)
{
    return any_in(folder, has_usable_port, NULL, wanted);
}
