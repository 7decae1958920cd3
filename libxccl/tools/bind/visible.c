/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which GPUs a program would see, and the one variable that changes it.
 *
 * NVIDIA reads CUDA_VISIBLE_DEVICES. ROCm filters by ROCR_VISIBLE_DEVICES first, and what is left
 * is numbered anew and filtered by HIP_VISIBLE_DEVICES (or CUDA_VISIBLE_DEVICES): two of them that
 * mean the same GPU leave none. So only the first is ever set here, and the others are removed.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "bind.h"

static const char *main_variable(enum vendor vendor)
{
    return (vendor == VENDOR_AMD) ? "ROCR_VISIBLE_DEVICES" : "CUDA_VISIBLE_DEVICES";
}

/* The GPUs that may be opened are the ones that are numbered. */
static int list_open(const struct machine *machine, int list_p[])
{
    int count = 0;

    for (int i = 0; i < machine->ngpus; i++) {
        if (!machine->gpu[i].hidden) {
            list_p[count++] = i;
        }
    }
    return count;
}

/* Position in list of the GPU that an entry of len characters names; NO_NUMBER if none. */
static int find_entry(const struct machine *machine, const int list[], int count, const char *entry,
                      size_t len)
{
    char *end;
    long  number = strtol(entry, &end, 10);

    if (end == entry + len) {
        return ((number >= 0) && (number < count)) ? (int)number : NO_NUMBER;
    }
    for (int i = 0; i < count; i++) {
        if (strncmp(machine->gpu[list[i]].uuid, entry, len) == 0) {
            return i;
        }
    }
    return NO_NUMBER;
}

/* Keep of the visible GPUs those that the variable names; it ends at the first that is none. */
static void filter(const struct machine *machine, const char *text, struct visible *visible)
{
    int kept[MAX_GPUS];
    int count = 0;

    for (const char *p = text; (*p != '\0') && (count < MAX_GPUS);) {
        size_t len = strcspn(p, ",");
        if (strncmp(p, "MIG-", 4) == 0) {
            visible->opaque = true;
            kept[count++] = 0;
        } else {
            int at = find_entry(machine, visible->gpu, visible->count, p, len);
            if ((at == NO_NUMBER) || (len == 0)) {
                break;
            }
            kept[count++] = visible->gpu[at];
        }
        p += len + ((p[len] == ',') ? 1 : 0);
    }
    memcpy(visible->gpu, kept, sizeof(kept[0]) * (size_t)count);
    visible->count = count;
}

/* What HIP keeps of what ROCr has left: it counts in that. */
static void filter_again(const char *text, struct visible *visible)
{
    int kept[MAX_GPUS];
    int count = 0;

    for (const char *p = text; (*p >= '0') && (*p <= '9') && (count < MAX_GPUS);) {
        char *end;
        long  number = strtol(p, &end, 10);
        if (number >= visible->count) {
            break;
        }
        kept[count++] = visible->gpu[number];
        p = (*end == ',') ? end + 1 : end;
    }
    memcpy(visible->gpu, kept, sizeof(kept[0]) * (size_t)count);
    visible->count = count;
}

/* Numbers in a list like "0,2-3"; how many there are. */
static int parse_numbers(const char *list, int numbers_p[])
{
    int count = 0;

    for (const char *p = list; (p != NULL) && (*p >= '0') && (*p <= '9');) {
        char *end;
        long  low = strtol(p, &end, 10), high = low;
        if (*end == '-') {
            high = strtol(end + 1, &end, 10);
        }
        high = (high < INT_MAX) ? high : INT_MAX - 1; /* so that the loop below cannot overflow */
        for (long number = low; (number <= high) && (count < MAX_GPUS); number++) {
            numbers_p[count++] = (int)number;
        }
        p = (*end == ',') ? end + 1 : NULL;
    }
    return count;
}

/*
 * The GPUs of this step on this node, by Slurm. Where each task is bound to a GPU, its list holds
 * that one alone; which are the others is known only if the step has all of the node's.
 */
static void read_job(const struct machine *machine, struct visible *visible)
{
    const char *list = getenv("SLURM_STEP_GPUS"), *number = getenv("SLURM_GPUS_ON_NODE");
    int named = parse_numbers((list != NULL) ? list : getenv("SLURM_JOB_GPUS"), visible->job);
    int count = (number != NULL) ? atoi(number) : named;

    visible->njob = ((count > 0) && (count <= MAX_GPUS)) ? count : 0;
    for (int i = 0; (visible->njob != named) && (i < visible->njob); i++) {
        visible->job[i] = (visible->njob == machine->ngpus) ? i : NO_NUMBER;
    }
}

void visible_read(const struct machine *machine, struct visible *visible_p)
{
    const char *first = main_variable(machine->vendor), *text = getenv(first);

    memset(visible_p, 0, sizeof(*visible_p));
    visible_p->count = list_open(machine, visible_p->gpu);
    if (text != NULL) {
        visible_p->variable = first;
        filter(machine, text, visible_p);
    }
    if (machine->vendor == VENDOR_AMD) {
        const char *second = (getenv("HIP_VISIBLE_DEVICES") != NULL) ? "HIP_VISIBLE_DEVICES"
                                                                     : "CUDA_VISIBLE_DEVICES";
        const char *more = getenv(second);
        if ((more != NULL) && (text == NULL)) {
            visible_p->variable = second;
            filter(machine, more, visible_p);
        } else if (more != NULL) {
            /* Slurm sets all of them; where that takes nothing away, it does no harm. */
            struct visible both = *visible_p;
            filter_again(more, &both);
            visible_p->foreign =
                (both.count != visible_p->count) ||
                (memcmp(both.gpu, visible_p->gpu, sizeof(both.gpu[0]) * (size_t)both.count) != 0);
        }
    }
    read_job(machine, visible_p);
}

bool visible_per_task(const struct visible *visible)
{
    return (visible->count > 0) && (visible->count < visible->njob);
}

bool visible_locked(const struct machine *machine, const struct visible *visible)
{
    int open[MAX_GPUS];
    int count = list_open(machine, open);

    return (count < visible->njob) && (count < machine->ngpus);
}

static void set_list(const char *name, const int numbers[], int count, const char *why,
                     bool explain)
{
    char   text[MAX_GPUS * 4] = "";
    size_t used = 0;

    for (int i = 0; i < count; i++) {
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%d", (i > 0) ? "," : "",
                                 numbers[i]);
    }
    setenv(name, text, 1);
    if (explain) {
        explain_line(name, text, why);
    }
}

static void drop(const char *name, bool explain)
{
    if (getenv(name) != NULL) {
        unsetenv(name);
        if (explain) {
            explain_line(name, "(removed)",
                         "ROCR_VISIBLE_DEVICES filters before it: both together can leave no GPU");
        }
    }
}

/* The number that the variable takes for a GPU: among those that may be opened. */
static int number_of(const struct machine *machine, int gpu)
{
    int open[MAX_GPUS];
    int count = list_open(machine, open);

    for (int i = 0; i < count; i++) {
        if (open[i] == gpu) {
            return i;
        }
    }
    return NO_NUMBER;
}

/*
 * The list that the program is to get: what --gpu-bind took off it is given back where the task may
 * open it all the same. True if that changes anything.
 */
static bool widen(const struct machine *machine, const struct visible *visible, int list_p[],
                  int *count_p)
{
    memcpy(list_p, visible->gpu, sizeof(visible->gpu));
    *count_p = visible->count;
    if (!visible_per_task(visible) || visible_locked(machine, visible)) {
        return false;
    }
    for (int i = 0; i < visible->njob; i++) {
        if ((visible->job[i] < 0) || (visible->job[i] >= machine->ngpus)) {
            return false;
        }
    }
    memcpy(list_p, visible->job, sizeof(visible->job));
    *count_p = visible->njob;
    return true;
}

int visible_device(const struct machine *machine, const struct visible *visible, int gpu,
                   enum gpus_mode mode)
{
    int list[MAX_GPUS], count;

    if (mode != GPUS_ALL) {
        return 0;
    }
    widen(machine, visible, list, &count);
    for (int i = 0; i < count; i++) {
        if (list[i] == gpu) {
            return i;
        }
    }
    return 0;
}

static const char *const reasons[] = {
    [GPUS_ALL] = "Slurm showed each task its own GPU only; peers must be visible for direct access",
    [GPUS_FIRST] = "--gpus first: the rank's own GPU is device 0, peers follow",
    [GPUS_ONLY] = "--gpus only: nothing but the rank's own GPU",
};

void visible_apply(const struct machine *machine, const struct visible *visible, int gpu,
                   enum gpus_mode mode, bool explain)
{
    const char *name = main_variable(machine->vendor);
    int         all[MAX_GPUS], list[MAX_GPUS + 1]; /* the rank's own need not be among all */
    int         total, count = 0;
    bool        widened = widen(machine, visible, all, &total);
    bool        set = widened || (mode != GPUS_ALL);

    if (visible->opaque || (machine->ngpus == 0) || (gpu == NO_NUMBER)) {
        return;
    }
    if (mode != GPUS_ALL) {
        list[count++] = number_of(machine, gpu);
    }
    for (int i = 0; (mode != GPUS_ONLY) && (i < total); i++) {
        if ((mode == GPUS_ALL) || (all[i] != gpu)) {
            list[count++] = number_of(machine, all[i]);
        }
    }
    if (set) {
        set_list(name, list, count, reasons[mode], explain);
    }
    if ((machine->vendor == VENDOR_AMD) && (set || visible->foreign)) {
        drop("HIP_VISIBLE_DEVICES", explain);
        drop("CUDA_VISIBLE_DEVICES", explain);
    }
}
