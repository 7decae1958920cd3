/* SPDX-License-Identifier: BSD-3-Clause */
/* The XCCL_SIM* variables, and the rank that the launcher gave this process. */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/core.h"

#define DEFAULT_MEMORY ((uint64_t)16 << 30)

/* What XCCL_SIM may begin with. */
static const struct {
    const char     *name;
    enum xs_flavour flavour;
    enum xs_library library;
    int             version; /* that the library reports */
} flavours[] = {
    {"cuda", XS_CUDA, XS_NCCL, 22803},
    {"rocm", XS_ROCM, XS_RCCL, 22203},
    {"msccl", XS_CUDA, XS_MSCCL, 22304},
    {"mscclpp", XS_CUDA, XS_MSCCLPP, 900},
    {"hpu", XS_HPU, XS_HCCL, 2604},
    {"oneccl", XS_HOST, XS_ONECCL, 20220100}, /* devices: what its ranks are dealt to */
};
#define FLAVOURS "cuda:N, rocm:N, msccl:N, mscclpp:N, oneccl:N or hpu:N"

static struct xs_config config = {.size = 1,
                                  .nodes = 1,
                                  .proc = "/proc",
                                  .memory = DEFAULT_MEMORY,
                                  .hip_major = 6,
                                  .uuid = true,
                                  .destroy_waits = true,
                                  .connect_blocks = true};
static char             error[512];
static pthread_once_t   once = PTHREAD_ONCE_INIT;

extern char **environ;

/* A whole number in [low, high] that ends at *end_p, or false. */
static bool parse_number(const char *text, const char **end_p, long low, long high, long *value_p)
{
    char *end;

    if (!isdigit((unsigned char)text[0])) {
        return false;
    }
    errno = 0;
    long value = strtol(text, &end, 10);
    if ((errno != 0) || (value < low) || (value > high)) {
        return false;
    }
    *value_p = value;
    *end_p = end;
    return true;
}

static void complain(const char *name, const char *value, const char *allowed)
{
    if (error[0] == '\0') {
        snprintf(error, sizeof(error), "%s=%.200s is wrong: use %s", name, value, allowed);
    }
}

static void read_flavour(void)
{
    const char *text = getenv("XCCL_SIM");
    const char *rest = NULL;
    long        count = 0;

    if ((text == NULL) || (text[0] == '\0')) {
        return;
    }
    size_t length = strcspn(text, ":");
    for (size_t i = 0; (i < sizeof(flavours) / sizeof(flavours[0])) && (text[length] != '\0');
         i++) {
        if ((strlen(flavours[i].name) == length) &&
            (strncmp(text, flavours[i].name, length) == 0)) {
            config.flavour = flavours[i].flavour;
            config.library = flavours[i].library;
            config.ccl_version = flavours[i].version;
            rest = text + length + 1;
        }
    }
    if ((rest == NULL) || !parse_number(rest, &rest, 1, XS_MAX_DEVICES, &count) ||
        (*rest != '\0')) {
        complain("XCCL_SIM", text, FLAVOURS ", N devices from 1 to 64");
        config.flavour = XS_NONE;
        return;
    }
    config.devices = (int)count;
    for (int i = 0; i < config.devices; i++) {
        config.physical[i] = i;
    }
}

/* As the vendors do it: the list ends at the first entry that is no device. */
static void apply_visible(const char *name)
{
    const char *text = getenv(name);
    int         kept[XS_MAX_DEVICES];
    int         count = 0;
    long        index;

    if (text == NULL) {
        return;
    }
    while ((count < XS_MAX_DEVICES) && parse_number(text, &text, 0, config.devices - 1, &index)) {
        kept[count++] = config.physical[index];
        if (*text != ',') {
            break;
        }
        text++;
    }
    memcpy(config.physical, kept, sizeof(kept[0]) * (size_t)count);
    config.devices = count;
}

static void read_visible(void)
{
    if (config.flavour == XS_CUDA) {
        apply_visible("CUDA_VISIBLE_DEVICES");
    } else if (config.flavour == XS_ROCM) {
        apply_visible("ROCR_VISIBLE_DEVICES");
        apply_visible("HIP_VISIBLE_DEVICES");
    }
}

/* The first variable of names that is set and a number. */
static bool first_number(const char *const *names, long *value_p)
{
    for (size_t i = 0; names[i] != NULL; i++) {
        const char *text = getenv(names[i]);
        const char *end;

        if ((text != NULL) && parse_number(text, &end, 0, INT_MAX, value_p) && (*end == '\0')) {
            return true;
        }
    }
    return false;
}

static void read_rank(void)
{
    static const char *const ranks[] = {"XCCL_SIM_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK",
                                        "PMI_RANK",      "SLURM_PROCID",         NULL};
    static const char *const sizes[] = {"XCCL_SIM_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE",
                                        "SLURM_NTASKS", NULL};
    long                     value;

    if (first_number(ranks, &value)) {
        config.rank = (int)value;
    }
    config.size = config.rank + 1;
    if (first_number(sizes, &value) && (value > config.rank)) {
        config.size = (int)value;
    }
}

static void read_number(const char *name, long low, long high, const char *allowed, int *value_p)
{
    const char *text = getenv(name);
    const char *end;
    long        value;

    if (text == NULL) {
        return;
    }
    if (!parse_number(text, &end, low, high, &value) || (*end != '\0')) {
        complain(name, text, allowed);
        return;
    }
    *value_p = (int)value;
}

/* One of two words. */
static void read_choice(const char *name, const char *no, const char *yes, bool *value_p)
{
    const char *text = getenv(name);
    char        allowed[32];

    if (text == NULL) {
        return;
    }
    if ((strcmp(text, no) != 0) && (strcmp(text, yes) != 0)) {
        snprintf(allowed, sizeof(allowed), "%s or %s", yes, no);
        complain(name, text, allowed);
        return;
    }
    *value_p = (strcmp(text, yes) == 0);
}

/* MPS is CUDA's. */
static void read_mps(void)
{
    const char *folder = getenv("XCCL_SIM_MPS");
    struct stat s;

    if (folder == NULL) {
        return;
    }
    if ((stat(folder, &s) != 0) || !S_ISDIR(s.st_mode)) {
        complain("XCCL_SIM_MPS", folder, "a folder that all processes share");
    } else if (config.flavour != XS_ROCM) {
        config.mps = folder;
    }
}

/* What users set to find a kernel that fails. */
static bool launches_block(void)
{
    const char *name = (config.flavour == XS_CUDA)   ? "CUDA_LAUNCH_BLOCKING"
                       : (config.flavour == XS_ROCM) ? "AMD_SERIALIZE_KERNEL"
                                                     : NULL;
    const char *value = (name != NULL) ? getenv(name) : NULL;

    return (value != NULL) && (value[0] != '\0') && (strcmp(value, "0") != 0);
}

/* How strict the simulation is; see docs/develop/simulation.md. */
static void read_strictness(void)
{
    const char *queues = getenv("CUDA_DEVICE_MAX_CONNECTIONS");

    config.launch_blocks = launches_block();
    config.serial = (config.flavour == XS_CUDA) && (queues != NULL) && (strcmp(queues, "1") == 0);
    read_choice("XCCL_SIM_SERIAL", "0", "1", &config.serial);
    read_choice("XCCL_SIM_ALLOC", "free", "wait", &config.alloc_waits);
    read_choice("XCCL_SIM_FREE", "alone", "admit", &config.free_admits);
    read_choice("XCCL_SIM_EARLY", "0", "1", &config.early);
    read_choice("XCCL_SIM_GDRCOPY", "0", "1", &config.gdrcopy);
    read_choice("XCCL_SIM_UUID", "0", "1", &config.uuid);
    read_choice("XCCL_SIM_MANAGED", "concurrent", "exclusive", &config.exclusive);
    read_mps();
    read_choice("XCCL_SIM_DESTROY", "free", "wait", &config.destroy_waits);
    read_choice("XCCL_SIM_ABORT", "silent", "told", &config.abort_told);
    config.abort_ms = 5000;
    read_number("XCCL_SIM_ABORT_MS", 0, 60000, "milliseconds from 0 to 60000", &config.abort_ms);
    read_choice("XCCL_SIM_CONNECT", "eager", "block", &config.connect_blocks);
    read_number("XCCL_SIM_CONNECT_MS", 0, 60000, "milliseconds from 0 to 60000",
                &config.connect_ms);
    read_number("XCCL_SIM_DESTROY_MS", 0, 60000, "milliseconds from 0 to 60000",
                &config.destroy_ms);
    read_number("XCCL_SIM_NUMBERS", 4, INT_MAX, "a number of operations from 4", &config.numbers);
    read_number("XCCL_SIM_LAUNCH_US", 0, 1000000, "microseconds from 0 to 1000000",
                &config.launch_us);
}

static void read_memory(void)
{
    const char *text = getenv("XCCL_SIM_MEMORY");
    const char *end;
    long        value;
    int         shift = 0;

    if (text == NULL) {
        return;
    }
    bool good = parse_number(text, &end, 1, 1L << 40, &value);
    if (good && (*end != '\0')) {
        const char *unit = strchr("kmg", *end);

        good = (unit != NULL) && (end[1] == '\0');
        shift = !good ? 0 : (*unit == 'k') ? 10 : (*unit == 'm') ? 20 : 30;
    }
    if (!good || (value > (LONG_MAX >> 22 >> shift))) {
        complain("XCCL_SIM_MEMORY", text, "bytes of one device, with k, m or g: 16g");
        return;
    }
    config.memory = (uint64_t)value << shift;
}

/* "22703" for all, or rows "22703@1" for some ranks; the last row that fits wins. */
static void read_version(void)
{
    const char *text = getenv("XCCL_SIM_VERSION");
    const char *p = text;
    long        value;
    long        rank;

    while ((p != NULL) && (*p != '\0')) {
        bool applies = true;

        if (!parse_number(p, &p, 100, 99999999, &value)) {
            p = NULL;
            break;
        }
        if (*p == '@') {
            if (!parse_number(p + 1, &p, 0, INT_MAX, &rank)) {
                p = NULL;
                break;
            }
            applies = (rank == config.rank);
        }
        if (applies) {
            config.ccl_version = (int)value;
        }
        if ((*p == ',') && (p[1] != '\0')) {
            p++;
        } else if (*p != '\0') {
            p = NULL;
        }
    }
    if ((text != NULL) && (p == NULL)) {
        complain("XCCL_SIM_VERSION", text, "a version code such as 22703, or 22703@1 for rank 1");
    }
}

/* A mistyped name would silently simulate something else. */
static void check_names(void)
{
    static const char *const known[] = {"XCCL_SIM",
                                        "XCCL_SIM_NODES",
                                        "XCCL_SIM_FAIL",
                                        "XCCL_SIM_LOG",
                                        "XCCL_SIM_MEMORY",
                                        "XCCL_SIM_VERSION",
                                        "XCCL_SIM_RANK",
                                        "XCCL_SIM_SIZE",
                                        "XCCL_SIM_HIP",
                                        "XCCL_SIM_DESTROY",
                                        "XCCL_SIM_CONNECT",
                                        "XCCL_SIM_CONNECT_MS",
                                        "XCCL_SIM_LAUNCH_US",
                                        "XCCL_SIM_SERIAL",
                                        "XCCL_SIM_ALLOC",
                                        "XCCL_SIM_FREE",
                                        "XCCL_SIM_EARLY",
                                        "XCCL_SIM_NUMBERS",
                                        "XCCL_SIM_GDRCOPY",
                                        "XCCL_SIM_PROC",
                                        "XCCL_SIM_MPS",
                                        "XCCL_SIM_ABORT",
                                        "XCCL_SIM_ABORT_MS",
                                        "XCCL_SIM_UUID",
                                        "XCCL_SIM_DESTROY_MS",
                                        "XCCL_SIM_MANAGED"};

    for (char **entry = environ; (entry != NULL) && (*entry != NULL); entry++) {
        size_t length = strcspn(*entry, "=");
        bool   good = false;

        if (strncmp(*entry, "XCCL_SIM", 8) != 0) {
            continue;
        }
        for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
            good = good || ((strlen(known[i]) == length) && !strncmp(*entry, known[i], length));
        }
        if (!good && (error[0] == '\0')) {
            snprintf(error, sizeof(error),
                     "%.*s is no variable of the simulation: XCCL_SIM and XCCL_SIM_NODES, _FAIL, "
                     "_LOG, _MEMORY, _VERSION, _HIP, _RANK, _SIZE, _DESTROY, _CONNECT, "
                     "_CONNECT_MS, _LAUNCH_US, _SERIAL, _ALLOC, _EARLY, _NUMBERS, _GDRCOPY, "
                     "_PROC, _MPS, _UUID are",
                     (int)length, *entry);
        }
    }
}

/* Ranks that see each other only there are on nodes of their own, one for each PID namespace. */
static void read_proc(void)
{
    const char *text = getenv("XCCL_SIM_PROC");
    struct stat ours;
    char        self[PATH_MAX];

    if (text == NULL) {
        return;
    }
    snprintf(self, sizeof(self), "%s/self", text);
    if ((access(self, F_OK) != 0) || (stat("/proc/self/ns/pid", &ours) != 0)) {
        complain("XCCL_SIM_PROC", text, "a folder like /proc, with the processes of all ranks");
        return;
    }
    config.proc = text;
    config.node = (int)(ours.st_ino & INT_MAX);
}

static void check_log(void)
{
    const char *text = getenv("XCCL_SIM_LOG");

    if ((text != NULL) && (strcmp(text, "none") != 0) && (strcmp(text, "warn") != 0) &&
        (strcmp(text, "info") != 0)) {
        complain("XCCL_SIM_LOG", text, "none, warn or info");
    }
}

static void load(void)
{
    check_names();
    check_log();
    read_flavour();
    read_visible();
    read_rank();
    read_number("XCCL_SIM_NODES", 1, 1 << 20, "a number of pretend nodes", &config.nodes);
    read_number("XCCL_SIM_HIP", 5, 7, "the ROCm release 5, 6 or 7", &config.hip_major);
    read_strictness();
    read_memory();
    read_version();
    if (config.ccl_version == 0) {
        config.ccl_version = flavours[0].version;
    }
    config.node = (int)((long)config.rank * config.nodes / config.size);
    read_proc();

    const char *wrong = xs_fault_setup(getenv("XCCL_SIM_FAIL"), config.rank);
    if ((wrong != NULL) && (error[0] == '\0')) {
        snprintf(error, sizeof(error), "%s", wrong);
    }
    if (error[0] != '\0') {
        fprintf(stderr, "xccl simulation: %s; no device is offered\n", error);
        config.devices = 0;
    }
}

const struct xs_config *xs_config(void)
{
    pthread_once(&once, load);
    return &config;
}

const char *xs_config_error(void)
{
    pthread_once(&once, load);
    return (error[0] == '\0') ? NULL : error;
}
