/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The NIC next to each GPU of a site whose map leaves that open, by the kernel's paths of the two
 * devices. On such a site nothing else is asked of the machine, and hwloc would read all of it.
 */
#include <dirent.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "bind.h"

enum { MAX_NICS = 64 };

struct nic {
    char name[NAME_LEN];
    char path[PATH_MAX]; /* /sys/devices/pci0000:00/... */
    int  numa;
};

static int numa_of(const char *folder)
{
    char  file[PATH_MAX + 16];
    int   numa = NO_NUMBER;
    FILE *f;

    snprintf(file, sizeof(file), "%s/numa_node", folder);
    f = fopen(file, "r");
    if (f != NULL) {
        if (fscanf(f, "%d", &numa) != 1) {
            numa = NO_NUMBER;
        }
        fclose(f);
    }
    return numa;
}

static int by_name(const void *a, const void *b)
{
    return strverscmp(((const struct nic *)a)->name, ((const struct nic *)b)->name);
}

static int list_nics(const char *root, struct nic nics_p[MAX_NICS])
{
    char           folder[PATH_MAX];
    struct dirent *entry;
    int            count = 0;

    snprintf(folder, sizeof(folder), "%s/sys/class/infiniband", root);
    DIR *dir = opendir(folder);
    while ((dir != NULL) && (count < MAX_NICS) && ((entry = readdir(dir)) != NULL)) {
        char link[PATH_MAX + 300];
        snprintf(link, sizeof(link), "%s/%s/device", folder, entry->d_name);
        if ((entry->d_name[0] != '.') && (realpath(link, nics_p[count].path) != NULL)) {
            snprintf(nics_p[count].name, sizeof(nics_p[count].name), "%.63s", entry->d_name);
            nics_p[count].numa = numa_of(nics_p[count].path);
            count++;
        }
    }
    if (dir != NULL) {
        closedir(dir);
    }
    qsort(nics_p, (size_t)count, sizeof(nics_p[0]), by_name);
    return count;
}

/* Folders that both paths begin with, from the PCI host bridge on; 0: not even that. */
static int common_folders(const char *a, const char *b)
{
    const char *host = strstr(a, "/pci");
    int         folders = 0;

    for (size_t i = 0; (a[i] != '\0') && (a[i] == b[i]); i++) {
        folders += ((a[i + 1] == '/') && (b[i + 1] == '/') && (a + i > host)) ? 1 : 0;
    }
    return (host != NULL) ? folders : 0;
}

/* The larger, the closer; the name is NCCL's. */
static int closeness(const char *path, int numa, const struct nic *nic, const char **name_p)
{
    int folders = common_folders(path, nic->path);

    if (folders > 0) {
        *name_p = (folders > 2) ? "PIX" : ((folders > 1) ? "PXB" : "PHB");
        return 1 + folders;
    }
    *name_p = ((numa >= 0) && (numa == nic->numa)) ? "NODE" : "SYS";
    return ((numa >= 0) && (numa == nic->numa)) ? 1 : 0;
}

void nics_read(const char *root, struct machine *machine_p)
{
    static struct nic nics[MAX_NICS];
    int               used[MAX_NICS] = {0};
    int               count = list_nics(root, nics);

    for (int i = 0; (count > 0) && (i < machine_p->ngpus); i++) {
        struct gpu *gpu = &machine_p->gpu[i];
        char        link[PATH_MAX], path[PATH_MAX];
        const char *name = NULL;
        int         best = NO_NUMBER, best_close = -1;

        snprintf(link, sizeof(link), "%s/sys/bus/pci/devices/%s", root, gpu->pci);
        if ((gpu->pci[0] == '\0') || (realpath(link, path) == NULL)) {
            continue;
        }
        int numa = numa_of(path);
        for (int n = 0; n < count; n++) { /* among equals the one that fewer GPUs have */
            const char *how;
            int         close = closeness(path, numa, &nics[n], &how);
            if ((close > best_close) || ((close == best_close) && (used[n] < used[best]))) {
                best = n;
                best_close = close;
                name = how;
            }
        }
        used[best]++;
        snprintf(gpu->nic, sizeof(gpu->nic), "%s", nics[best].name);
        gpu->nic_distance = name;
    }
}
