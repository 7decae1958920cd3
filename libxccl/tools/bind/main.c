/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "bind.h"
#include "common/options.h"
#include "common/output.h"

enum { STATUS_USAGE = 2 };

void fail(int status, const char *format, ...)
{
    va_list args;

    fputs("xccl-bind: ", stderr);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    exit(status);
}

void explain_line(const char *name, const char *value, const char *why)
{
    fprintf(stderr, "xccl-run: %s=%s\n          %s\n", name, value, why);
}

static void usage(void)
{
    puts(
        "Usage: xccl-bind [options] [--] command [arguments]\n"
        "       xccl-bind --plan [options] [--] [command]\n\n"
        "Gives this rank its GPU, cores, memory and NIC, then becomes the command. xccl-run starts it.\n\n"
        "  --bind auto|site|hwloc|none  where the cores of a GPU are known from (auto: site's map, else hwloc)\n"
        "  --gpus all|first|only        GPUs the program sees: all, its own first, nothing but its own\n"
        "  --map FILE                   a site's ranks.map; --site NAME: its name, for messages\n"
        "  --topology FILE|TEXT         hwloc's XML, or a synthetic topology, instead of this machine\n"
        "  --report                     say on stderr what the rank got, and draw the node\n"
        "  --explain                    say on stderr each thing that is set, and why\n"
        "  --preload VALUE              LD_PRELOAD of the command\n"
        "  --plan                       print the plan for every rank of the node as JSON; start nothing: a\n"
        "                               command is only looked at, for the plan's notes\n"
        "  --local-rank N, --local-size N, --mask LIST   instead of the launcher's (with --plan)\n"
        "  --root FOLDER                look up /dev, /proc and /sys there\n"
        "  -h, --help, -V, --version\n"
        "\n"
        "Exit status: the command's own; 1 if the rank cannot be told or bound, 2 for wrong use,\n"
        "126 or 127 when the command cannot be run or found.");
}

/* Index of text in names, which ends with NULL; a message and the end if it is none. */
static int choice(const char *option, const char *text, const char *const names[])
{
    char known[128] = "";

    for (int i = 0; names[i] != NULL; i++) {
        if (strcmp(text, names[i]) == 0) {
            return i;
        }
        snprintf(known + strlen(known), sizeof(known) - strlen(known), "%s%s", (i > 0) ? ", " : "",
                 names[i]);
    }
    const char *best = options_nearest(text, names);
    fail(STATUS_USAGE, "%s: unknown value '%s'; known: %s%s%s%s", option, text, known,
         (best != NULL) ? "; did you mean '" : "", (best != NULL) ? best : "",
         (best != NULL) ? "'?" : "");
}

static int count_of(const char *option, const char *text, int low)
{
    long value = 0;

    if (!options_integer(text, low, MAX_RANKS, &value)) {
        fail(STATUS_USAGE, "%s: invalid value '%s': expected an integer from %d to %d", option,
             text, low, MAX_RANKS);
    }
    return (int)value;
}

enum option_id {
    BIND = 256,
    GPUS,
    LOCAL_RANK,
    LOCAL_SIZE,
    MAP,
    SITE,
    TOPOLOGY,
    ROOT,
    MASK,
    PRELOAD,
    PLAN,
    REPORT,
    EXPLAIN,
    HELP = 'h',
    VERSION = 'V',
};

static const struct option long_options[] = {
    {"bind", 1, NULL, BIND},
    {"gpus", 1, NULL, GPUS},
    {"local-rank", 1, NULL, LOCAL_RANK},
    {"local-size", 1, NULL, LOCAL_SIZE},
    {"map", 1, NULL, MAP},
    {"site", 1, NULL, SITE},
    {"topology", 1, NULL, TOPOLOGY},
    {"root", 1, NULL, ROOT},
    {"mask", 1, NULL, MASK},
    {"preload", 1, NULL, PRELOAD},
    {"plan", 0, NULL, PLAN},
    {"report", 0, NULL, REPORT},
    {"explain", 0, NULL, EXPLAIN},
    {"help", 0, NULL, HELP},
    {"version", 0, NULL, VERSION},
    {NULL, 0, NULL, 0},
};

static void take_value(struct options *options, int id, const char *value)
{
    static const char *const binds[] = {"auto", "site", "hwloc", "none", NULL};
    static const char *const gpus[] = {"all", "first", "only", NULL};

    switch (id) {
    case BIND:
        options->bind = (enum bind_mode)choice("--bind", value, binds);
        break;
    case GPUS:
        options->gpus = (enum gpus_mode)choice("--gpus", value, gpus);
        break;
    case LOCAL_RANK:
        options->local_rank = count_of("--local-rank", value, 0);
        break;
    case LOCAL_SIZE:
        options->local_size = count_of("--local-size", value, 1);
        break;
    case MAP:
        options->map = value;
        break;
    case SITE:
        options->site = value;
        break;
    case TOPOLOGY:
        options->topology = value;
        break;
    case ROOT:
        options->root = value;
        break;
    case MASK:
        options->mask = value;
        break;
    default:
        options->preload = value;
    }
}

static void take_option(struct options *options, int id, char **argv)
{
    switch (id) {
    case PLAN:
        options->plan = true;
        break;
    case REPORT:
        options->report = true;
        break;
    case EXPLAIN:
        options->explain = true;
        break;
    case HELP:
        usage();
        exit(0);
    case VERSION:
        printf("xccl-bind %s (%s)\n", XCCL_BIND_VERSION, topology_version());
        exit(0);
    case ':':
        options_refuse_missing(argv[optind - 1]);
        exit(STATUS_USAGE);
    case '?':
        options_refuse_word(argv[optind - 1]);
        exit(STATUS_USAGE);
    default:
        take_value(options, id, optarg);
    }
}

static void parse(int argc, char **argv, struct options *options)
{
    int id;

    *options = (struct options){.root = "", .local_rank = NO_NUMBER, .local_size = NO_NUMBER};
    options_begin("xccl-bind", long_options, true);
    options_elsewhere("json", "--plan prints JSON");
    opterr = 0;
    /* "+": what follows the command's name is the command's. */
    while ((id = getopt_long(argc, argv, "+:hV", long_options, NULL)) != -1) {
        take_option(options, id, argv);
    }
    options->command = argv + optind;
    struct stat root;
    if ((options->root[0] != '\0') &&
        ((stat(options->root, &root) != 0) || !S_ISDIR(root.st_mode))) {
        fail(STATUS_USAGE, "--root: no folder '%s'", options->root);
    }
    if (!options->plan && (options->command[0] == NULL)) {
        fail(STATUS_USAGE, "no command given; usage: xccl-bind [options] [--] command [arguments]");
    }
}

/* Reading the topology takes most of the time: it is left out where the site's map says all. */
static bool topology_wanted(const struct options *options, const struct site_map *map)
{
    if (options->plan || options->report || (options->topology != NULL) ||
        (options->bind == BIND_HWLOC) || (getenv("HWLOC_XMLFILE") != NULL)) {
        return true;
    }
    if (options->bind == BIND_NONE) {
        return false;
    }
    for (int row = 0; row < map->rows; row++) {
        if (!map->row[row].cores_known) {
            return true;
        }
    }
    return map->rows == 0;
}

static void check_mask(const struct machine *machine, const struct cpus *mask)
{
    struct cpus beyond;
    char        which[256];

    cpus_clear(&beyond);
    for (int cpu = 0; cpu < CPUS_MAX; cpu++) {
        if (cpus_has(mask, cpu) && !machine_has_cpu(machine, cpu)) {
            cpus_add(&beyond, cpu);
        }
    }
    if (cpus_count(&beyond) > 0) {
        cpus_text(&beyond, which, sizeof(which));
        fail(STATUS_USAGE, "--mask: this node has no processor %s", which);
    }
}

static void find_allowed(const struct options *options, const struct machine *machine,
                         const struct launch *launch, struct cpus *allowed_p)
{
    if (options->mask != NULL) {
        if (!cpus_parse_list(options->mask, allowed_p)) {
            fail(STATUS_USAGE,
                 "--mask: invalid value '%s': expected a list of processors, as 0-7,64-71",
                 options->mask);
        }
        check_mask(machine, allowed_p);
    } else if (machine->known && !machine->this_system) {
        *allowed_p = launch->masks_known ? launch->masks[launch->local_rank] : machine->all;
    } else if (!cpus_of_process(allowed_p)) {
        fail(1, "cannot read this task's own cores: %s", strerror(errno));
    }
}

static void identify(const struct options *options, struct launch *launch)
{
    launch_read(launch);
    if (options->local_rank != NO_NUMBER) {
        launch->local_rank = options->local_rank;
    }
    if (options->local_size != NO_NUMBER) {
        launch->local_size = options->local_size;
    }
    if (launch->local_rank == NO_NUMBER) {
        if (!options->plan) {
            fail(1,
                 "no launcher has told which rank this is (looked for Open MPI, Hydra, PALS, Flux, "
                 "Slurm, PMIx); start it with mpirun or srun");
        }
        launch->local_rank = 0;
    }
    if ((options->local_size != NO_NUMBER) && (launch->local_rank >= options->local_size)) {
        fail(STATUS_USAGE, "--local-size %d: there is no local rank %d then, they count from 0",
             options->local_size, launch->local_rank);
    }
    if (launch->local_rank >= MAX_RANKS) {
        fail(1, "local rank %d: more than %d ranks per node are not supported", launch->local_rank,
             MAX_RANKS);
    }
}

static void become(char **command)
{
    char           file[PATH_MAX];
    struct utsname here;

    /* execvp would have a shell read what the system does not know. */
    if (program_is_elf(command[0], file)) {
        execv(file, command);
        if ((errno == ENOEXEC) && (uname(&here) == 0)) {
            fail(126, "cannot run '%s': it is built for another machine than this one (%s)",
                 command[0], here.machine);
        }
    }
    execvp(command[0], command);
    int status = (errno == ENOENT) ? 127 : 126;
    fail(status, "cannot run '%s': %s", command[0], strerror(errno));
}

int main(int argc, char **argv)
{
    static struct launch   launch; /* static: too large for a stack */
    static struct machine  machine;
    static struct site_map map;
    static struct plan     plan;
    struct options         options;
    struct visible         visible;
    struct cpus            allowed;
    struct note            notes[MAX_NOTES];

    output_watch("xccl-bind");
    parse(argc, argv, &options);
    identify(&options, &launch);
    if ((options.map != NULL) && (options.bind != BIND_HWLOC) &&
        !site_map_read(options.map, &map)) {
        return STATUS_USAGE;
    }
    if ((options.bind == BIND_SITE) && (map.rows == 0)) {
        fail(STATUS_USAGE, "--bind site: %s%s has no map of its ranks; use --bind hwloc",
             (options.site != NULL) ? "site " : "no site is known here: it",
             (options.site != NULL) ? options.site : "");
    }
    if ((options.bind == BIND_HWLOC) && !topology_is_there()) {
        fail(STATUS_USAGE, "--bind hwloc: hwloc was not there when xccl was built; install it with "
                           "its headers and pkg-config, and build xccl again");
    }
    devices_read(options.root, &machine);
    if (!topology_wanted(&options, &map)) {
        nics_read(options.root, &machine);
    } else if (!topology_read(options.topology, &machine)) {
        return (options.topology != NULL) ? STATUS_USAGE : 1;
    }
    visible_read(&machine, &visible);
    find_allowed(&options, &machine, &launch, &allowed);
    plan_make(&options, &launch, &map, &machine, &visible, &allowed, &plan);
    if ((launch.rank <= 0) || options.report) {
        site_map_warn(options.map, &map, options.root, &machine);
    }
    int nnotes = notes_collect(&options, &launch, &machine, &visible, &plan, &allowed, notes);
    if (options.plan) {
        report_plan(&options, &launch, &machine, &visible, &plan, notes, nnotes);
        return 0;
    }
    if (options.report) {
        report_rank(&options, &launch, &machine, &plan);
    }
    if ((launch.rank <= 0) || options.report) { /* one of thousands is enough */
        for (int i = 0; i < nnotes; i++) {
            fprintf(stderr, "xccl-run: warning [%s]: %s\n", notes[i].id, notes[i].text);
        }
    }
    if (!act(&options, &machine, &visible, &plan.share[launch.local_rank])) {
        return 1;
    }
    become(options.command);
}
