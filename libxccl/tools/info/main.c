/* SPDX-License-Identifier: BSD-3-Clause */
/* xccl-info: what xccl is, what it found on this machine, and what this environment tells it. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/options.h"
#include "common/output.h"
#include "info.h"
#include "info_build.h"
#include "why.h"

static const char usage[] =
    "Usage: xccl-info [options]\n"
    "\n"
    "Says what is installed, which device runtime and which vendor library are found and where, and\n"
    "which variables are set.\n"
    "\n"
    "  -l, --long     all of it: paths, types and operations of each library, tables, variables;\n"
    "                 with --why the tables too that are not asked\n"
    "  -c, --config   the variables only: value, origin, default, meaning\n"
    "  -d, --devices  start the device runtimes and list their devices\n"
    "  --link         flags that link the interposer into a program, instead of preloading it\n"
    "  --why CALL     which path a call takes, and why: coll:bytes:mem:ranks[:nodes], as\n"
    "                 allreduce:64k:cuda:8; starts the device runtimes, to ask for the model\n"
    "  --gpu MODEL    with --why: on devices of this model, which need not be here\n"
    "  --json         everything, or with --why that, as JSON\n"
    "  -h, --help, -V, --version\n"
    "\n"
    "Exit status: 0; 1 with a message if the configuration is at fault, if a variable names a\n"
    "library, site or simulation that is not there, or if a part is missing; 2 for a wrong option.\n";

enum option_id { LINK = 256, WHY, GPU, JSON, HELP = 'h', VERSION = 'V' };

static const struct option long_options[] = {
    {"long", 0, NULL, 'l'},        {"config", 0, NULL, 'c'},
    {"devices", 0, NULL, 'd'},     {"link", 0, NULL, LINK},
    {"json", 0, NULL, JSON},       {"help", 0, NULL, HELP},
    {"version", 0, NULL, VERSION}, {"why", 1, NULL, WHY},
    {"gpu", 1, NULL, GPU},         {NULL, 0, NULL, 0},
};

struct options {
    bool        all, config, devices, link, json;
    const char *why, *gpu;
};

static void usage_error(const char *what)
{
    fprintf(stderr, "xccl-info: %s\n", what);
    exit(2);
}

static void refuse_word(const char *word)
{
    options_refuse_word(word);
    exit(2);
}

static void parse(struct options *options, int argc, char **argv)
{
    int id;

    options_begin("xccl-info", long_options, true);
    opterr = 0;
    while ((id = getopt_long(argc, argv, ":lcdhV", long_options, NULL)) != -1) {
        switch (id) {
        case 'l':
            options->all = true;
            break;
        case 'c':
            options->config = true;
            break;
        case 'd':
            options->devices = true;
            break;
        case LINK:
            options->link = true;
            break;
        case WHY:
            options->why = optarg;
            break;
        case GPU:
            options->gpu = optarg;
            break;
        case ':':
            usage_error((optopt == GPU) ? "--gpu needs a value, as --gpu 'NVIDIA H200'"
                                        : "--why needs a value, as --why allreduce:64k:cuda:8");
            break;
        case JSON:
            options->json = true;
            break;
        case HELP:
            fputs(usage, stdout);
            exit(0);
        case VERSION:
            printf("xccl-info %s\n", XCCL_INFO_VERSION);
            exit(0);
        default:
            refuse_word(argv[optind - 1]);
        }
    }
    if (optind < argc) {
        refuse_word(argv[optind]);
    }
    if ((options->gpu != NULL) && (options->gpu[0] == '\0')) {
        usage_error("--gpu: the model is missing; leave the option out for the devices that are "
                    "here");
    }
    if ((options->gpu != NULL) && (options->why == NULL)) {
        usage_error("--gpu has no meaning without --why");
    }
    if ((options->why != NULL) && (options->config || options->link)) {
        usage_error("--why goes with --gpu, --long, --devices and --json alone");
    }
    if (options->link && (options->all || options->config || options->devices || options->json)) {
        usage_error("--link goes with no other option");
    }
}

/* 0, or the status to end with. */
static int explain(const struct info *info, const struct options *options)
{
    struct why why;

    if (!why_collect(&why, info, options->why, options->gpu)) {
        fprintf(stderr, "xccl-info: %s\n", xc_last_detail());
        return 2;
    }
    if (options->json) {
        why_print_json(&why);
    } else {
        why_print(&why, info->fault, options->all);
    }
    why_free(&why);
    return 0;
}

static int print_link(const struct info *info)
{
    if (info->preload[0] == '\0') {
        fprintf(stderr, "xccl-info: no libxccl-mpi.so in %s/lib: xccl was built without an MPI\n",
                info->prefix);
        return 1;
    }
    if (strpbrk(info->preload, ": ") != NULL) {
        fprintf(stderr,
                "xccl-info: LD_PRELOAD and flags of the linker cannot hold a path with a colon or "
                "a blank: '%s'; install elsewhere\n",
                info->preload);
        return 1;
    }
    info_print_link(info);
    return 0;
}

/* In front of everything else: it may be why somebody asks. */
static void say_what_is_wrong(const struct info *info)
{
    if (info->fault[0] != '\0') {
        fprintf(stderr, "xccl-info: %s\n", info->fault);
    }
    if (info->missing[0] != '\0') {
        fprintf(stderr, "xccl-info: %s\n", info->missing);
    }
    if (info->unknown[0] != '\0') {
        fprintf(stderr, "xccl-info: warning: %s\n", info->unknown);
    }
}

int main(int argc, char **argv)
{
    static struct info info;
    struct options     options = {0};

    output_watch("xccl-info");
    parse(&options, argc, argv);
    info_collect(&info, options.json || !(options.config || options.link),
                 options.devices || (options.why != NULL));
    if (options.link) {
        return print_link(&info);
    }
    say_what_is_wrong(&info);
    if (options.why != NULL) {
        int status = explain(&info, &options);
        if (status != 0) {
            return status;
        }
    } else if (options.json) {
        info_print_json(&info, options.devices);
    } else if (options.config) {
        info_print_config();
    } else if (options.all) {
        info_print_long(&info, options.devices);
    } else {
        info_print_short(&info, options.devices);
    }
    return ((info.fault[0] == '\0') && (info.missing[0] == '\0')) ? 0 : 1;
}
