/* SPDX-License-Identifier: BSD-3-Clause */
/* Read a site's ranks.map: one line a local rank, "rank gpu numa cores siblings nic". */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bind.h"

static bool is_auto(const char *field)
{
    return (strcmp(field, "auto") == 0) || (strcmp(field, "-") == 0);
}

/* A number, or NO_NUMBER for auto; false if it is neither. */
static bool parse_number(const char *field, int *value_p)
{
    char *end;

    if (is_auto(field)) {
        *value_p = NO_NUMBER;
        return true;
    }
    long value = strtol(field, &end, 10);
    if ((end == field) || (*end != '\0') || (value < 0) || (value >= CPUS_MAX)) {
        return false;
    }
    *value_p = (int)value;
    return true;
}

static bool parse_cores(const char *cores, const char *siblings, struct map_row *row_p)
{
    struct cpus more;

    row_p->cores_known = !is_auto(cores);
    if (!row_p->cores_known) {
        return true;
    }
    if (!cpus_parse_list(cores, &row_p->cores)) {
        return false;
    }
    if (is_auto(siblings)) {
        return true;
    }
    if (!cpus_parse_list(siblings, &more)) {
        return false;
    }
    cpus_or(&row_p->cores, &more, &row_p->cores);
    return true;
}

static bool parse_row(const char *line, int expected, struct map_row *row_p)
{
    char field[6][NAME_LEN], more[2];
    int  rank;

    if (sscanf(line, "%63s %63s %63s %63s %63s %63s %1s", field[0], field[1], field[2], field[3],
               field[4], field[5], more) != 6) {
        return false;
    }
    if (!parse_number(field[0], &rank) || (rank != expected) ||
        !parse_number(field[1], &row_p->gpu) || !parse_number(field[2], &row_p->numa) ||
        !parse_cores(field[3], field[4], row_p) || (row_p->gpu < 0) || (row_p->gpu >= MAX_GPUS)) {
        return false;
    }
    snprintf(row_p->nic, sizeof(row_p->nic), "%s", is_auto(field[5]) ? "" : field[5]);
    return true;
}

bool site_map_read(const char *file, struct site_map *map_p)
{
    FILE *f = fopen(file, "r");
    char  line[1024];
    int   number = 0;
    bool  good = true;

    memset(map_p, 0, sizeof(*map_p));
    if (f == NULL) {
        fprintf(stderr, "xccl-bind: cannot read the map '%s': %s\n", file, strerror(errno));
        return false;
    }
    errno = 0;
    while (good && (fgets(line, sizeof(line), f) != NULL)) {
        number++;
        if ((line[0] == '#') || (line[strspn(line, " \t\n")] == '\0')) {
            continue;
        }
        good = (map_p->rows < MAX_GPUS) && parse_row(line, map_p->rows, &map_p->row[map_p->rows]);
        if (good) {
            map_p->row[map_p->rows++].line = number;
        }
    }
    int why = ferror(f) ? errno : 0; /* of a folder, for example */
    fclose(f);
    if (why != 0) {
        fprintf(stderr, "xccl-bind: cannot read the map '%s': %s\n", file, strerror(why));
        return false;
    }
    if (number == 0) { /* of a site without rows the map has comments */
        fprintf(stderr,
                "xccl-bind: the map '%s' is empty: expected a line for each local rank, "
                "'rank gpu numa cores siblings nic'\n",
                file);
        return false;
    }
    if (!good) {
        fprintf(
            stderr,
            "xccl-bind: %s, line %d: expected rank gpu numa cores siblings nic, as '0 0 3 18-23 66-71 "
            "mlx5_0', with ranks from 0 in order (cores as 0-7,16; auto where the machine is to be "
            "asked)\n",
            file, number);
    }
    return good;
}

static void warn(const char *file, const struct map_row *row, const char *what, const char *which)
{
    fprintf(stderr, "xccl-run: warning: %s, line %d: this node has no %s %s\n", file, row->line,
            what, which);
}

/* Of this machine hwloc may tell only what the job was given. */
static bool has_numa(const struct machine *machine, int number)
{
    char folder[64];

    if (machine->known && !machine->this_system) {
        for (int i = 0; i < machine->nnumas; i++) {
            if (machine->numa[i].number == number) {
                return true;
            }
        }
        return machine->nnumas == 0;
    }
    snprintf(folder, sizeof(folder), "/sys/devices/system/node/node%d", number);
    return (access(folder, F_OK) == 0) || (access("/sys/devices/system/node/node0", F_OK) != 0);
}

/* A port of InfiniBand and RoCE, or a network interface, as Slingshot's. Where the node has neither
 * InfiniBand nor GPUs, as a login node, the map is not meant for it. */
static bool has_nic(const char *root, const struct machine *machine, const char *nic)
{
    static const char *const classes[] = {"infiniband", "net"};
    char                     path[PATH_MAX];

    snprintf(path, sizeof(path), "%s/sys/class/infiniband", root);
    if ((machine->known && !machine->this_system) ||
        ((machine->ngpus == 0) && (access(path, F_OK) != 0))) {
        return true;
    }
    for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++) {
        snprintf(path, sizeof(path), "%s/sys/class/%s/%s", root, classes[i], nic);
        if (access(path, F_OK) == 0) {
            return true;
        }
    }
    return false;
}

bool machine_has_cpu(const struct machine *machine, int cpu)
{
    if (machine->known && !machine->this_system) {
        return cpus_has(&machine->all, cpu);
    }
    return cpu < sysconf(_SC_NPROCESSORS_CONF);
}

static void warn_of_row(const char *file, const struct map_row *row, const char *root,
                        const struct machine *machine)
{
    struct cpus beyond;
    char        which[64];

    if ((machine->ngpus > 0) && (row->gpu >= machine->ngpus)) {
        snprintf(which, sizeof(which), "%d; it has 0 to %d", row->gpu, machine->ngpus - 1);
        warn(file, row, "GPU", which);
    }
    if ((row->numa != NO_NUMBER) && !has_numa(machine, row->numa)) {
        snprintf(which, sizeof(which), "%d", row->numa);
        warn(file, row, "NUMA domain", which);
    }
    cpus_clear(&beyond);
    for (int cpu = 0; row->cores_known && (cpu < CPUS_MAX); cpu++) {
        if (cpus_has(&row->cores, cpu) && !machine_has_cpu(machine, cpu)) {
            cpus_add(&beyond, cpu);
        }
    }
    if (cpus_count(&beyond) > 0) {
        cpus_text(&beyond, which, sizeof(which));
        warn(file, row, "core", which);
    }
    if ((row->nic[0] != '\0') && !has_nic(root, machine, row->nic)) {
        warn(file, row, "NIC", row->nic);
    }
}

void site_map_warn(const char *file, const struct site_map *map, const char *root,
                   const struct machine *machine)
{
    for (int row = 0; !machine->simulated && (row < map->rows); row++) {
        warn_of_row(file, &map->row[row], root, machine);
    }
}
