/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The GPUs in the order in which their driver numbers them, and which of them this task may open.
 *
 * hwloc does not tell either; where each GPU lies is hwloc's (topology_hwloc.c).
 */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bind.h"

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Names in a folder, sorted; the number of them. Each is to be freed. */
static int list_folder(const char *folder, char *names[], int max)
{
    DIR           *dir = opendir(folder);
    struct dirent *entry;
    int            count = 0;

    if (dir == NULL) {
        return 0;
    }
    while ((count < max) && ((entry = readdir(dir)) != NULL)) {
        if (entry->d_name[0] != '.') {
            names[count] = strdup(entry->d_name);
            count += (names[count] != NULL) ? 1 : 0;
        }
    }
    closedir(dir);
    qsort(names, (size_t)count, sizeof(names[0]), by_name);
    return count;
}

/* The text behind "key" at the start of a line of file, without blanks around it. */
static bool find_value(const char *file, const char *key, char *value_p, size_t size)
{
    FILE *f = fopen(file, "r");
    char  line[256];
    bool  found = false;

    while (!found && (f != NULL) && (fgets(line, sizeof(line), f) != NULL)) {
        if (strncmp(line, key, strlen(key)) == 0) {
            char *value = line + strlen(key);
            value += strspn(value, ": \t");
            value[strcspn(value, "\n")] = '\0';
            snprintf(value_p, size, "%s", value);
            found = true;
        }
    }
    if (f != NULL) {
        fclose(f);
    }
    return found;
}

/* A device cgroup forbids the open already here; a container lacks the file. */
static bool may_open(const char *root, const char *format, int number)
{
    char name[64], path[512];

    snprintf(name, sizeof(name), format, number);
    snprintf(path, sizeof(path), "%s%s", root, name);
    return access(path, R_OK | W_OK) == 0;
}

/* CUDA numbers equal GPUs by their PCI address, which is the name of the folder. */
static void read_nvidia(const char *root, struct machine *machine)
{
    char  folder[256], file[600], value[NAME_LEN];
    char *names[MAX_GPUS];

    snprintf(folder, sizeof(folder), "%s/proc/driver/nvidia/gpus", root);
    int count = list_folder(folder, names, MAX_GPUS);
    for (int i = 0; i < count; i++) {
        struct gpu *gpu = &machine->gpu[i];

        snprintf(gpu->pci, sizeof(gpu->pci), "%.23s", names[i]);
        snprintf(file, sizeof(file), "%s/%s/information", folder, names[i]);
        if (find_value(file, "GPU UUID", value, sizeof(value))) {
            memcpy(gpu->uuid, value, sizeof(gpu->uuid));
        }
        int minor = find_value(file, "Device Minor", value, sizeof(value)) ? atoi(value) : i;
        gpu->hidden = !may_open(root, "/dev/nvidia%d", minor);
        free(names[i]);
    }
    machine->ngpus = count;
    machine->vendor = (count > 0) ? VENDOR_NVIDIA : machine->vendor;
}

/* ROCm numbers GPUs in the order of KFD's nodes; processors are among them, without SIMDs. */
static void read_amd(const char *root, struct machine *machine)
{
    char folder[256], file[600], value[NAME_LEN];

    snprintf(folder, sizeof(folder), "%s/sys/class/kfd/kfd/topology/nodes", root);
    for (int node = 0; machine->ngpus < MAX_GPUS; node++) {
        snprintf(file, sizeof(file), "%s/%d/properties", folder, node);
        if (!find_value(file, "simd_count ", value, sizeof(value))) {
            /* Where a cgroup hides a GPU, its node stays, but cannot be read. */
            if (access(file, F_OK) != 0) {
                return;
            }
            continue;
        }
        if (atoi(value) == 0) {
            continue;
        }
        struct gpu   *gpu = &machine->gpu[machine->ngpus++];
        unsigned long place = 0, domain = 0;
        if (find_value(file, "location_id ", value, sizeof(value))) {
            place = strtoul(value, NULL, 10);
        }
        if (find_value(file, "domain ", value, sizeof(value))) {
            domain = strtoul(value, NULL, 10);
        }
        snprintf(gpu->pci, sizeof(gpu->pci), "%04lx:%02lx:%02lx.%lx", domain & 0xffffffffUL,
                 (place >> 8) & 0xff, (place >> 3) & 0x1f, place & 7);
        if (find_value(file, "drm_render_minor ", value, sizeof(value))) {
            gpu->hidden = !may_open(root, "/dev/dri/renderD%d", atoi(value));
        }
        machine->vendor = VENDOR_AMD;
    }
}

void devices_read(const char *root, struct machine *machine_p)
{
    const char *sim = getenv("XCCL_SIM");

    memset(machine_p, 0, sizeof(*machine_p));
    for (int i = 0; i < MAX_GPUS; i++) {
        machine_p->gpu[i].numa = NO_NUMBER;
        machine_p->gpu[i].package = NO_NUMBER;
    }
    if (sim != NULL) { /* xccl-run and the simulation have checked the value */
        const char *colon = strchr(sim, ':');
        int         count = (colon != NULL) ? atoi(colon + 1) : 0;
        machine_p->simulated = true;
        machine_p->vendor = (strncmp(sim, "rocm", 4) == 0) ? VENDOR_AMD : VENDOR_NVIDIA;
        machine_p->ngpus = (count < 0) ? 0 : ((count > MAX_GPUS) ? MAX_GPUS : count);
        return;
    }
    read_nvidia(root, machine_p);
    if (machine_p->ngpus == 0) {
        read_amd(root, machine_p);
    }
}
