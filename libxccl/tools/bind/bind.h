/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * xccl-bind: give one rank its GPU, cores, memory and NIC, then become the program.
 *
 * The order of the files is the order of the work: launcher (which rank is this), program (which
 * MPI it has), site map and machine (what is near what), visible (which GPUs may be seen), assign
 * (who gets what; pure), notes (what is wrong with it), act and report.
 */
#ifndef XCCL_TOOLS_BIND_H
#define XCCL_TOOLS_BIND_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "cpus.h"

enum { MAX_GPUS = 64, MAX_RANKS = 1024, NAME_LEN = 64, NO_NUMBER = -1 };

enum vendor { VENDOR_NONE, VENDOR_NVIDIA, VENDOR_AMD };
enum bind_mode { BIND_AUTO, BIND_SITE, BIND_HWLOC, BIND_NONE };
enum gpus_mode { GPUS_ALL, GPUS_FIRST, GPUS_ONLY };

struct options {
    enum bind_mode bind;
    enum gpus_mode gpus;
    const char    *site;     /* name, for messages; NULL if none */
    const char    *map;      /* file with the site's map, or NULL */
    const char    *topology; /* hwloc XML file or synthetic description instead of this machine */
    const char    *root;     /* folder that /dev, /proc and /sys are looked up in */
    const char    *mask;     /* --plan only: cores allowed to this task */
    const char    *preload;  /* LD_PRELOAD of the program */
    int            local_rank, local_size; /* instead of the launcher's; NO_NUMBER: not given */
    bool           plan, report, explain;
    char         **command; /* NULL-terminated; empty for --plan */
};

/* Which rank this is, as the launcher says; NO_NUMBER where it does not. */
struct launch {
    const char *launcher; /* NULL: not started by one that is known */
    int         rank, size, local_rank, local_size, node, nodes;
    bool        masks_known; /* Slurm tells the cores of every task of the node */
    struct cpus masks[MAX_RANKS];
};

struct gpu {
    char        pci[24]; /* "0000:c1:00.0"; empty if not known */
    char        uuid[NAME_LEN];
    bool        hidden; /* this task may not open it */
    bool        near_known;
    struct cpus near; /* cores that are closest to it */
    int         numa, package;
    char        nic[NAME_LEN]; /* closest network device; empty if not known */
    const char *nic_distance;  /* as NCCL names it: PIX, PXB, PHB, NODE, SYS; NULL: not known */
};

struct numa {
    int         number, package;
    struct cpus cpus;
};

struct machine {
    enum vendor vendor;
    bool        simulated;
    int         ngpus;
    struct gpu  gpu[MAX_GPUS];
    bool        known;       /* hwloc has told what is below */
    bool        this_system; /* false: a topology from a file; nothing can be bound by it */
    struct cpus all;
    struct cpus offered; /* of these, what the system leaves to a process that nobody has bound */
    int         nnumas;
    struct numa numa[MAX_GPUS];
    short       core_of[CPUS_MAX]; /* number of the core that a PU belongs to */
};

/* One line of a site's ranks.map. */
struct map_row {
    int         line;
    int         gpu, numa; /* NO_NUMBER: read from the machine */
    bool        cores_known;
    struct cpus cores; /* with their SMT siblings */
    char        nic[NAME_LEN];
};

struct site_map {
    int            rows;
    struct map_row row[MAX_GPUS];
};

/* The GPUs a program started now would see, in its numbering. */
struct visible {
    const char *variable; /* the one that decides, or NULL if none is set */
    bool        opaque;   /* entries that cannot be traced to a GPU (MIG): counted only */
    bool        foreign;  /* a second variable filters what the first lets through */
    int         count;
    int         gpu[MAX_GPUS]; /* numbers in machine.gpu */
    int         njob;          /* GPUs that Slurm gave the step on this node; 0: not known */
    int         job[MAX_GPUS]; /* their numbers, where Slurm tells those too, else NO_NUMBER */
};

/* What one rank gets. */
struct share {
    int         gpu;        /* number in machine.gpu, or NO_NUMBER */
    int         device;     /* its number in the program */
    bool        bind;       /* cpus is to be set */
    bool        cpus_known; /* false: of another rank, which its launcher has bound by itself */
    struct cpus cpus;       /* empty if not known */
    int         numa;
    char        nic[NAME_LEN];
    const char *nic_distance;
    bool        nic_by_site; /* the site names it: its variables are set */
    const char *how;         /* "site map", "hwloc", or why nothing is bound */
    bool        outside;     /* the cores wanted are none of those allowed */
};

/* A GPU that ranks can be given, with the cores that go with it; the order is the site's wish. */
struct candidate {
    int         gpu;
    int         row; /* in the site's map, or NO_NUMBER */
    bool        near_known;
    struct cpus near;
};

/* launcher.c */
void launch_read(struct launch *launch_p);

/* program.c: the family whose ABI a program's file is linked with; scripts and others: unknown. */
enum mpi { MPI_UNKNOWN, MPI_OPENMPI, MPI_MPICH };
enum mpi program_mpi(const char *command);
/* Is it a program without a loader of libraries? */
bool program_is_static(const char *command);
/* Does it define MPI's functions itself, as far as its symbols tell? They are read one by one. */
bool program_has_mpi(const char *command);
/* True if it is no script, but made for a processor; then with its file's name. */
bool program_is_elf(const char *command, char file_p[PATH_MAX]);
/* Does one of these words, or a script that one names, give the variable a value? */
bool program_sets(char *const *command, const char *variable);

/* slurm.c: --network of this step, as the controller says; false where it does not. */
bool slurm_step_network(char *text, size_t length);

/* sitemap.c: false with a message on stderr. */
bool site_map_read(const char *file, struct site_map *map_p);
/* A line for what the map names and the machine lacks; not of the simulation, on which any map may
 * be tried. */
void site_map_warn(const char *file, const struct site_map *map, const char *root,
                   const struct machine *machine);
bool machine_has_cpu(const struct machine *machine, int cpu);

/* devices.c: the GPUs as their driver numbers them; with XCCL_SIM the simulated ones. */
void devices_read(const char *root, struct machine *machine_p);

/* nics.c: for a site whose map names no NICs; topology_read finds them, too. */
void nics_read(const char *root, struct machine *machine_p);

/* topology_hwloc.c or topology_none.c: was hwloc there at build time? */
bool topology_is_there(void);
/* False with a message if it cannot be read. */
bool        topology_read(const char *topology, struct machine *machine_p);
const char *topology_version(void);

/* visible.c */
void visible_read(const struct machine *machine, struct visible *visible_p);
/* true if this task sees fewer GPUs than the job has on this node. */
bool visible_per_task(const struct visible *visible);
/* true if they are out of its reach, and not only taken off a list. */
bool visible_locked(const struct machine *machine, const struct visible *visible);
/* Number that the program will know a GPU by. */
int visible_device(const struct machine *machine, const struct visible *visible, int gpu,
                   enum gpus_mode mode);
/* Set the one variable that the mode asks for; explain says it to stderr. */
void visible_apply(const struct machine *machine, const struct visible *visible, int gpu,
                   enum gpus_mode mode, bool explain);

/* assign.c: pure. out_p[i] is the candidate of local rank i; masks may be NULL. */
void assign(const struct candidate *candidates, int ncandidates, int nranks,
            const struct cpus *masks, int *out_p);

/* plan.c: pure. */
struct plan {
    bool         lone;     /* one rank that sees several GPUs keeps the whole node */
    bool         own_view; /* tasks see different GPUs: nothing is known of the others */
    int          nranks;
    struct share share[MAX_RANKS];
};
void plan_make(const struct options *options, const struct launch *launch,
               const struct site_map *map, const struct machine *machine,
               const struct visible *visible, const struct cpus *allowed, struct plan *plan_p);

/* notes.c: what is wrong, with the id that xccl-doctor uses. */
enum { MAX_NOTES = 16 };
struct note {
    const char *id;
    char        text[400]; /* cause and remedy */
};
/* All that hold for this rank; the number of them. */
int notes_collect(const struct options *options, const struct launch *launch,
                  const struct machine *machine, const struct visible *visible,
                  const struct plan *plan, const struct cpus *allowed,
                  struct note notes_p[MAX_NOTES]);

/* act.c: false with a message; what cannot be bound is explained, and is no failure. */
bool act(const struct options *options, const struct machine *machine,
         const struct visible *visible, const struct share *share);

/* report.c */
void report_rank(const struct options *options, const struct launch *launch,
                 const struct machine *machine, const struct plan *plan);
void report_plan(const struct options *options, const struct launch *launch,
                 const struct machine *machine, const struct visible *visible,
                 const struct plan *plan, const struct note *notes, int nnotes);

void fail(int status, const char *format, ...) __attribute__((format(printf, 2, 3), noreturn));
void explain_line(const char *name, const char *value, const char *why);

#endif
