/* SPDX-License-Identifier: BSD-3-Clause */
/* What was done, for people (--report) and for programs (--plan). */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bind.h"
#include "common/json_text.h"

static void number_text(int number, char *text_p, size_t size)
{
    if (number == NO_NUMBER) {
        snprintf(text_p, size, "-");
    } else {
        snprintf(text_p, size, "%d", number);
    }
}

static const char *name_or_dash(const char *name)
{
    return ((name != NULL) && (name[0] != '\0')) ? name : "-";
}

static void host_name(char *name_p, size_t size)
{
    if (gethostname(name_p, size) != 0) {
        snprintf(name_p, size, "?");
    }
    name_p[size - 1] = '\0';
}

/* How far the rank's cores are from its GPU. */
static const char *core_distance(const struct machine *machine, const struct share *share)
{
    const struct gpu *gpu = (share->gpu != NO_NUMBER) ? &machine->gpu[share->gpu] : NULL;

    if ((gpu == NULL) || !gpu->near_known || !share->cpus_known) {
        return share->bind ? "map" : "-";
    }
    if (cpus_within(&share->cpus, &gpu->near)) {
        return "near";
    }
    for (int i = 0; i < machine->nnumas; i++) {
        if ((machine->numa[i].package != gpu->package) &&
            cpus_meet(&machine->numa[i].cpus, &share->cpus)) {
            return cpus_meet(&share->cpus, &gpu->near) ? "mixed" : "far";
        }
    }
    return "socket";
}

static void print_rank(FILE *f, const struct machine *machine, const struct numa *numa,
                       const struct share *share, int rank)
{
    char package[16], number[16], cores[CPUS_TEXT] = "?", gpu[16];

    number_text((numa != NULL) ? numa->package : NO_NUMBER, package, sizeof(package));
    number_text((numa != NULL) ? numa->number : NO_NUMBER, number, sizeof(number));
    number_text(share->gpu, gpu, sizeof(gpu));
    if (share->cpus_known) {
        cpus_text(&share->cpus, cores, sizeof(cores));
    }
    fprintf(f, "xccl-run:   %7s %4s  %-24s [%3d] --%-4s-- (%2s) --%-4s-- <%s>\n", package, number,
            cores, rank, core_distance(machine, share), gpu, name_or_dash(share->nic_distance),
            name_or_dash(share->nic));
}

static bool is_in(const struct share *share, const struct numa *numa)
{
    return share->cpus_known && cpus_within(&share->cpus, &numa->cpus);
}

/* A row for each domain and the ranks in it; ranks that are in none, or in several, come last. */
static void print_picture(FILE *f, const struct machine *machine, const struct plan *plan)
{
    bool shown[MAX_RANKS] = {false};
    char cores[CPUS_TEXT];

    fprintf(f, "xccl-run:   package NUMA  cores                    local rank      GPU      NIC\n");
    for (int i = 0; i <= machine->nnumas; i++) {
        const struct numa *numa = (i < machine->nnumas) ? &machine->numa[i] : NULL;
        bool               empty = true;

        for (int rank = 0; rank < plan->nranks; rank++) {
            const struct share *share = &plan->share[rank];
            if (shown[rank] || ((numa != NULL) && !is_in(share, numa))) {
                continue;
            }
            shown[rank] = true;
            empty = false;
            print_rank(f, machine, numa, share, rank);
        }
        if (empty && (numa != NULL)) {
            cpus_text(&numa->cpus, cores, sizeof(cores));
            fprintf(f, "xccl-run:   %7d %4d  %-24s\n", numa->package, numa->number, cores);
        }
    }
}

void report_rank(const struct options *options, const struct launch *launch,
                 const struct machine *machine, const struct plan *plan)
{
    const struct share *share = &plan->share[launch->local_rank];
    char                host[NAME_LEN], cores[CPUS_TEXT], numa[16], gpu[16], device[16], rank[16];
    char               *text = NULL;
    size_t              size = 0;
    FILE *f = open_memstream(&text, &size); /* one write: ranks do not mix their lines */

    if (f == NULL) {
        return;
    }
    host_name(host, sizeof(host));
    cpus_text(&share->cpus, cores, sizeof(cores));
    number_text(share->numa, numa, sizeof(numa));
    number_text(share->gpu, gpu, sizeof(gpu));
    number_text(share->device, device, sizeof(device));
    number_text(launch->rank, rank, sizeof(rank));
    fprintf(
        f,
        "xccl-run: host %s rank %s local %d cores %s numa %s gpu %s device %s nic %s distance %s/%s (%s)\n",
        host, rank, launch->local_rank, cores, numa, gpu, device, name_or_dash(share->nic),
        core_distance(machine, share), name_or_dash(share->nic_distance), share->how);
    if ((launch->local_rank == 0) && !plan->own_view) {
        fprintf(f, "xccl-run: node %s: %d rank%s, %d GPU%s, %s%s\n", host, plan->nranks,
                (plan->nranks == 1) ? "" : "s", machine->ngpus, (machine->ngpus == 1) ? "" : "s",
                (options->site != NULL) ? "site " : "no site, ",
                (options->site != NULL) ? options->site : topology_version());
        print_picture(f, machine, plan);
    }
    fclose(f);
    size_t written = 0;
    while (written < size) {
        ssize_t n = write(STDERR_FILENO, text + written, size - written);
        if (n <= 0) {
            break;
        }
        written += (size_t)n;
    }
    free(text);
}

static void json_number(FILE *f, const char *name, int number)
{
    if (number == NO_NUMBER) {
        fprintf(f, "\"%s\": null", name);
    } else {
        fprintf(f, "\"%s\": %d", name, number);
    }
}

static void json_gpu(FILE *f, const struct gpu *gpu, int index)
{
    char near[CPUS_TEXT];

    cpus_text(&gpu->near, near, sizeof(near));
    fprintf(f, "    {\"gpu\": %d, \"hidden\": %s, ", index, gpu->hidden ? "true" : "false");
    json_field(f, "pci", (gpu->pci[0] != '\0') ? gpu->pci : NULL);
    fputs(", ", f);
    json_field(f, "near", gpu->near_known ? near : NULL);
    fputs(", ", f);
    json_number(f, "numa", gpu->numa);
    fputs(", ", f);
    json_field(f, "nic", (gpu->nic[0] != '\0') ? gpu->nic : NULL);
    fputs(", ", f);
    json_field(f, "nic_distance", gpu->nic_distance);
    fputc('}', f);
}

static void json_share(FILE *f, const struct machine *machine, const struct share *share, int rank)
{
    char cores[CPUS_TEXT];

    cpus_text(&share->cpus, cores, sizeof(cores));
    fprintf(f, "    {\"local_rank\": %d, ", rank);
    json_number(f, "gpu", share->gpu);
    fputs(", ", f);
    json_number(f, "device", share->device);
    fprintf(f, ", \"bound\": %s, ", share->bind ? "true" : "false");
    json_field(f, "cores", share->cpus_known ? cores : NULL);
    fputs(", ", f);
    json_number(f, "numa", share->numa);
    fputs(", ", f);
    json_field(f, "nic", (share->nic[0] != '\0') ? share->nic : NULL);
    fputs(", ", f);
    json_field(f, "nic_distance", share->nic_distance);
    fputs(", ", f);
    json_field(f, "core_distance", core_distance(machine, share));
    fputs(", ", f);
    json_field(f, "how", share->how);
    fputc('}', f);
}

void report_plan(const struct options *options, const struct launch *launch,
                 const struct machine *machine, const struct visible *visible,
                 const struct plan *plan, const struct note *notes, int nnotes)
{
    static const char *const vendors[] = {"none", "nvidia", "amd"};
    char                     host[NAME_LEN];

    host_name(host, sizeof(host));
    printf("{\"schema\": \"xccl-bind/1\", ");
    json_field(stdout, "host", host);
    printf(", ");
    json_field(stdout, "hwloc", topology_version());
    printf(", ");
    json_field(stdout, "launcher", launch->launcher);
    printf(", ");
    json_field(stdout, "site", options->site);
    printf(", ");
    json_field(stdout, "vendor", vendors[machine->vendor]);
    printf(", ");
    json_field(stdout, "visible_by", visible->variable);
    printf(",\n  \"visible\": [");
    for (int i = 0; i < visible->count; i++) {
        printf("%s%d", (i > 0) ? ", " : "", visible->gpu[i]);
    }
    printf("],\n  \"gpus\": [");
    for (int i = 0; i < machine->ngpus; i++) {
        printf("%s\n", (i > 0) ? "," : "");
        json_gpu(stdout, &machine->gpu[i], i);
    }
    printf("],\n  \"ranks\": [");
    for (int rank = 0; rank < plan->nranks; rank++) {
        printf("%s\n", (rank > 0) ? "," : "");
        json_share(stdout, machine, &plan->share[rank], rank);
    }
    printf("],\n  \"notes\": [");
    for (int i = 0; i < nnotes; i++) {
        printf("%s\n    {", (i > 0) ? "," : "");
        json_field(stdout, "id", notes[i].id);
        printf(", ");
        json_field(stdout, "text", notes[i].text);
        printf("}");
    }
    printf("]}\n");
}
