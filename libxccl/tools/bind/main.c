/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bind.h"

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
        "       xccl-bind --plan [options]\n\n"
        "Gives this rank its GPU, cores, memory and NIC, then becomes the command. xccl-run starts it.\n\n"
        "  --bind auto|site|hwloc|none  where the cores of a GPU are known from (auto: site's map, else hwloc)\n"
        "  --gpus all|first|only        GPUs the program sees: all, its own first, nothing but its own\n"
        "  --map FILE                   a site's ranks.map; --site NAME: its name, for messages\n"
        "  --topology FILE|TEXT         hwloc's XML, or a synthetic topology, instead of this machine\n"
        "  --report                     say on stderr what the rank got, and draw the node\n"
        "  --explain                    say on stderr each thing that is set, and why\n"
        "  --preload VALUE              LD_PRELOAD of the command\n"
        "  --plan                       print the plan for every rank of the node as JSON; do nothing\n"
        "  --local-rank N, --local-size N, --mask LIST   instead of the launcher's (with --plan)\n"
        "  --root FOLDER                look up /dev, /proc and /sys there\n"
        "  -h, --help; -V, --version");
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
    fail(STATUS_USAGE, "%s: unknown value '%s'; known: %s", option, text, known);
}

static int count_of(const char *option, const char *text, int low)
{
    char *end;
    long  value = strtol(text, &end, 10);

    if ((end == text) || (*end != '\0') || (value < low) || (value > MAX_RANKS)) {
        fail(STATUS_USAGE, "%s: '%s' is no number from %d to %d", option, text, low, MAX_RANKS);
    }
    return (int)value;
}

/* An option with a value; false if it is none of ours. */
static bool take_value(struct options *options, const char *name, const char *value)
{
    static const char *const binds[] = {"auto", "site", "hwloc", "none", NULL};
    static const char *const gpus[] = {"all", "first", "only", NULL};

    if (strcmp(name, "--bind") == 0) {
        options->bind = (enum bind_mode)choice(name, value, binds);
    } else if (strcmp(name, "--gpus") == 0) {
        options->gpus = (enum gpus_mode)choice(name, value, gpus);
    } else if (strcmp(name, "--local-rank") == 0) {
        options->local_rank = count_of(name, value, 0);
    } else if (strcmp(name, "--local-size") == 0) {
        options->local_size = count_of(name, value, 1);
    } else if (strcmp(name, "--map") == 0) {
        options->map = value;
    } else if (strcmp(name, "--site") == 0) {
        options->site = value;
    } else if (strcmp(name, "--topology") == 0) {
        options->topology = value;
    } else if (strcmp(name, "--root") == 0) {
        options->root = value;
    } else if (strcmp(name, "--mask") == 0) {
        options->mask = value;
    } else if (strcmp(name, "--preload") == 0) {
        options->preload = value;
    } else {
        return false;
    }
    return true;
}

static void parse(int argc, char **argv, struct options *options)
{
    int i;

    *options = (struct options){.root = "", .local_rank = NO_NUMBER, .local_size = NO_NUMBER};
    for (i = 1; (i < argc) && (argv[i][0] == '-'); i++) {
        if (strcmp(argv[i], "--") == 0) {
            i++;
            break;
        } else if (strcmp(argv[i], "--plan") == 0) {
            options->plan = true;
        } else if (strcmp(argv[i], "--report") == 0) {
            options->report = true;
        } else if (strcmp(argv[i], "--explain") == 0) {
            options->explain = true;
        } else if ((strcmp(argv[i], "--help") == 0) || (strcmp(argv[i], "-h") == 0)) {
            usage();
            exit(0);
        } else if ((strcmp(argv[i], "--version") == 0) || (strcmp(argv[i], "-V") == 0)) {
            printf("xccl-bind %s (%s)\n", XCCL_BIND_VERSION, topology_version());
            exit(0);
        } else if ((i + 1 >= argc) || !take_value(options, argv[i], argv[i + 1])) {
            fail(STATUS_USAGE, "unknown option '%s', or its value is missing; see xccl-bind --help",
                 argv[i]);
        } else {
            i++;
        }
    }
    options->command = argv + i;
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

static void find_allowed(const struct options *options, const struct machine *machine,
                         const struct launch *launch, struct cpus *allowed_p)
{
    if (options->mask != NULL) {
        if (!cpus_parse_list(options->mask, allowed_p)) {
            fail(STATUS_USAGE, "--mask: '%s' is no list of processors like 0-7,64-71",
                 options->mask);
        }
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
    if (launch->local_rank >= MAX_RANKS) {
        fail(1, "local rank %d: more than %d ranks per node are not supported", launch->local_rank,
             MAX_RANKS);
    }
}

static void become(char **command)
{
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

    parse(argc, argv, &options);
    identify(&options, &launch);
    if ((options.map != NULL) && (options.bind != BIND_HWLOC) &&
        !site_map_read(options.map, &map)) {
        return 1;
    }
    if ((options.bind == BIND_SITE) && (map.rows == 0)) {
        fail(1, "--bind site: %s%s has no map of its ranks; use --bind hwloc",
             (options.site != NULL) ? "site " : "no site is known here: it",
             (options.site != NULL) ? options.site : "");
    }
    devices_read(options.root, &machine);
    if (!topology_wanted(&options, &map)) {
        nics_read(options.root, &machine);
    } else if (!topology_read(options.topology, &machine)) {
        return 1;
    }
    visible_read(&machine, &visible);
    find_allowed(&options, &machine, &launch, &allowed);
    plan_make(&options, &launch, &map, &machine, &visible, &allowed, &plan);
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
