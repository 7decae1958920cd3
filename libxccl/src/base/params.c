/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/params.h"

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/nearest.h"
#include "base/quantity.h"

extern char **environ;

/*
 * PROFILE: 0, 1, or a file, which is another field then. Those from NUMBER on are numbers of a
 * unit; "auto", where it is allowed, is -1, and "off" 0.
 */
enum kind {
    CHOICE,
    TEXT,
    PROFILE,
    FOREIGN,
    FOREIGN_CHOICE,
    NUMBER,
    BYTES,
    MIB,
    SECONDS,
    MICROSECONDS
};
_Static_assert((BYTES - NUMBER == (int)XC_UNIT_BYTE) && (MIB - NUMBER == (int)XC_UNIT_MIB) &&
                   (SECONDS - NUMBER == (int)XC_UNIT_SECOND) &&
                   (MICROSECONDS - NUMBER == (int)XC_UNIT_MICROSECOND),
               "in the order of the units");

/*
 * The one table of variables. FOREIGN rows are read elsewhere (scripts, the simulation): they are
 * here so that they are listed and that their names are not taken for mistyped ones. Of a
 * FOREIGN_CHOICE a wrong value is warned of, too: whoever reads it may be run much later.
 */
struct row {
    struct xc_param_row pub;
    enum kind           kind;
    size_t              offset; /* in struct xc_params */
    long                low, high;
};

/* What a size or a time takes besides a plain number. */
#define OR_BYTES "; also with k, m or g"
#define OR_MIB "; also with a unit, as 512m or 4g"
#define OR_SECONDS "; also with a unit, as 90s, 10m or 2h"
#define OR_MICROSECONDS "; also with a unit, as 50us"

#define AT(field) offsetof(struct xc_params, field)

static const struct row rows[] = {
    {{"XCCL_CCL", "auto|nccl|rccl|msccl|mscclpp|oneccl|hccl|none", "auto",
      "Vendor library to use; auto picks by the device runtime of the process.", "libxccl"},
     CHOICE,
     AT(ccl),
     0,
     0},
    {{"XCCL_CCL_LIBRARY", "path", "",
      "Vendor library to open unless the program has one loaded already.", "libxccl"},
     TEXT,
     AT(ccl_library),
     0,
     0},
    {{"XCCL_CCL_NATIVE", "auto|off", "auto",
      "How the vendor's library carries alltoall, alltoallv, gather and scatter. auto: by its own "
      "call where it has one; off: by sends and receives. The same on all ranks.",
      "libxccl"},
     CHOICE,
     AT(ccl_native),
     0,
     0},
    {{"XCCL_LOG", "none|error|warn|info|trace", "warn",
      "Messages to print; info shows each path taken once, trace every call.", "libxccl"},
     CHOICE,
     AT(log),
     0,
     0},
    {{"XCCL_LOG_FILE", "path; %h is the host, %p the process", "",
      "File that messages are appended to instead of stderr.", "libxccl"},
     TEXT,
     AT(log_file),
     0,
     0},
    {{"XCCL_ROUTE", "xccl|mpi|ucc|ucc-ccl", "xccl",
      "Which software carries collectives. All but xccl leave them to MPI. Where MPI is not GPU-aware, "
      "device buffers are staged, and messages on a node are fetched all the same (XCCL_P2P).",
      "libxccl-mpi"},
     CHOICE,
     AT(route),
     0,
     0},
    {{"XCCL_TUNE", "rows coll:bytes:mem:ranks:path, joined by #", "",
      "Rows that are asked before the tuning tables; the first that matches a call decides.",
      "libxccl-mpi"},
     TEXT,
     AT(tune),
     0,
     0},
    {{"XCCL_TABLE", "path of a file or a folder of *.table, or none", "",
      "Tuning tables in place of the site's and of those that come with xccl; none: the built-in rows "
      "alone.",
      "libxccl-mpi"},
     TEXT,
     AT(table),
     0,
     0},
    {{"XCCL_CHECK", "0|1", "0",
      "1: compare the arguments of all ranks in every blocking collective; an error names the rank "
      "that differs. For debugging: it costs time.",
      "libxccl-mpi"},
     NUMBER,
     AT(check),
     0,
     1},
    {{"XCCL_MEMORY", "same|mixed", "same",
      "same: all ranks of a collective pass the same kind of memory. mixed: they may differ; the ranks "
      "agree in every blocking call, and non-blocking ones are staged.",
      "libxccl-mpi"},
     CHOICE,
     AT(memory),
     0,
     0},
    {{"XCCL_COMM_CREATE", "auto|first", "auto",
      "When to make a vendor communicator. auto: once the calls so far would have repaid it; first: at "
      "the first blocking call on device memory, which waits for it.",
      "libxccl-mpi"},
     CHOICE,
     AT(comm_create),
     0,
     0},
    {{"XCCL_LAUNCH", "now|met", "met",
      "When a non-blocking collective is put on the device, and with MPI_THREAD_MULTIPLE a blocking one. "
      "now: in the call; met: once all ranks of the node have called it, so that the device never "
      "waits for a rank that has not.",
      "libxccl-mpi"},
     CHOICE,
     AT(launch),
     0,
     0},
    {{"XCCL_COMM_POOL", "number, 0 to 1024", "8",
      "How many vendor communicators to keep after their MPI communicator was freed, for the next one "
      "with the same ranks.",
      "libxccl-mpi"},
     NUMBER,
     AT(comm_pool),
     0,
     1024},
    {{"XCCL_SCRATCH", "MiB, 1 to 1048576" OR_MIB, "256",
      "Device memory that one collective may take for copies; longer ones go in pieces. Lists of "
      "irregular datatypes may take as much in all.",
      "libxccl-mpi"},
     MIB,
     AT(scratch),
     1,
     1048576},
    {{"XCCL_STAGING", "MiB, 0 to 1048576" OR_MIB, "4096",
      "Pinned host memory that copies of device buffers may take in a process; beyond it they take "
      "ordinary memory.",
      "libxccl-mpi"},
     MIB,
     AT(staging),
     0,
     1048576},
    {{"XCCL_P2P", "auto|staged|mpi", "auto",
      "How messages, files, windows and packing reach device memory. auto: where MPI is not GPU-aware, "
      "messages are fetched where possible, and all else is staged; staged: always staged; mpi: left "
      "to MPI.",
      "libxccl-mpi"},
     CHOICE,
     AT(p2p),
     0,
     0},
    {{"XCCL_P2P_PUSH", "auto|on|off", "auto",
      "Whether the sender writes a large message to the receiver's device memory, instead of the "
      "receiver reading it. auto: a single message of 512 KiB to 4 MiB whose sender waits in a call, and "
      "messages of 8 MiB and more in both directions; on: the receiver gives the sender 100 ms, for "
      "tests.",
      "libxccl-mpi"},
     CHOICE,
     AT(p2p_push),
     0,
     0},
    {{"XCCL_RENDEZVOUS", "auto|bytes, 80 to 1073741824" OR_BYTES, "auto",
      "From this size on a message to a rank of the same node stays in device memory until the "
      "receiver fetches it; shorter ones are staged. auto: 80 bytes. It is 256 or 4096 for some "
      "receivers: see Messages.",
      "libxccl-mpi"},
     BYTES,
     AT(rendezvous),
     80,
     1073741824},
    {{"XCCL_THREADS", "program|multiple", "program",
      "Whether xccl asks MPI for MPI_THREAD_MULTIPLE in MPI_Init, so that a thread of its own can move "
      "large messages between nodes in pieces. multiple: all ranks of MPI_COMM_WORLD have to run with "
      "xccl and with this variable.",
      "libxccl-mpi"},
     CHOICE,
     AT(threads),
     0,
     0},
    {{"XCCL_PIPELINE", "auto|off|bytes, 240 to 1073741824" OR_BYTES, "auto",
      "With XCCL_THREADS=multiple: from this size on a message from device memory goes to a rank of "
      "another node in pieces; some are copied while MPI carries others. auto: 2097152.",
      "libxccl-mpi"},
     BYTES,
     AT(pipeline),
     240,
     1073741824},
    {{"XCCL_PIPELINE_PIECE", "bytes, 240 to 67108864" OR_BYTES, "1048576",
      "Size of a piece of XCCL_PIPELINE. A message has four of them in pinned host memory on each "
      "side.",
      "libxccl-mpi"},
     BYTES,
     AT(pipeline_piece),
     240,
     67108864},
    {{"XCCL_WINDOWS", "refuse|separate", "refuse",
      "What MPI_Win_create does with device memory where MPI is not GPU-aware. refuse: an error; "
      "separate: MPI works on a copy in host memory, for programs that keep to MPI_WIN_SEPARATE.",
      "libxccl-mpi"},
     CHOICE,
     AT(windows),
     0,
     0},
    {{"XCCL_GPU_QUERY", "auto|mpi", "auto",
      "What a program gets that asks whether MPI is GPU-aware (MPIX_Query_cuda_support and the like, mpi_memory_alloc_kinds). "
      "auto: yes, where xccl lets MPI's calls take device memory; mpi: MPI's own answer.",
      "libxccl-mpi"},
     CHOICE,
     AT(gpu_query),
     0,
     0},
    {{"XCCL_DIRECT", "auto|on|off", "auto",
      "Whether kernels of xccl's own copy, pack and carry collectives on one node. They need "
      "libxccl-direct-cuda.so or -hip.so. auto: on, but no collectives on ROCm, where nobody has tried "
      "that, nor with NCCL_P2P_DISABLE.",
      "libxccl-mpi"},
     CHOICE,
     AT(direct),
     0,
     0},
    {{"XCCL_DIRECT_LINGER", "auto|off|microseconds, 1 to 1000" OR_MICROSECONDS, "auto",
      "How long a kernel stays on the device after a small copy or collective, to carry out the next "
      "one without a launch. auto: 50 on CUDA, off on ROCm.",
      "libxccl-mpi"},
     MICROSECONDS,
     AT(direct_linger),
     1,
     1000},
    {{"XCCL_DIRECT_MEMORY", "MiB, 8 to 4096" OR_MIB, "128",
      "Device memory in which the ranks of a node write to each other for small collectives; it "
      "limits how many communicators have the direct path.",
      "libxccl-mpi"},
     MIB,
     AT(direct_memory),
     8,
     4096},
    {{"XCCL_DIRECT_COPIES", "bytes, 16 to 1073741824" OR_BYTES, "262144",
      "Copy engines replace kernels from this size on (bcast, gather, scatter; 2 ranks). Other "
      "collectives begin at a multiple of it: see Kernels.",
      "libxccl-mpi"},
     BYTES,
     AT(direct_copies),
     16,
     1073741824},
    {{"XCCL_DIRECT_TURNS", "bytes, 1 to 1073741824" OR_BYTES, "1048576",
      "From this size on, of what goes from one rank to another, the direct path carries blocking "
      "collectives of ranks that share a device without MPS. Such a device gives its processes turns; "
      "shorter calls are faster through host memory.",
      "libxccl-mpi"},
     BYTES,
     AT(direct_turns),
     1,
     1073741824},
    {{"XCCL_GDRCOPY", "copies, 0 to 1000000", "0",
      "After how many small copies of a page of device memory to map the page by GDRCopy, so that the "
      "processor copies there itself; 0: never. Where GDRCopy is installed, try 300; nobody has "
      "measured it.",
      "libxccl-mpi"},
     NUMBER,
     AT(gdrcopy),
     0,
     1000000},
    {{"XCCL_PROFILE", "0|1|FILE.json; %h is the host, %p the process", "0",
      "Count and time every call; in MPI_Finalize rank 0 prints a table, and writes the same to "
      "FILE.json. The same on all ranks.",
      "libxccl-mpi"},
     PROFILE,
     AT(profile),
     0,
     0},
    {{"XCCL_RANGES", "auto|off", "auto",
      "Whether each call is a range in an attached profiler: NVTX (Nsight Systems) or roctx "
      "(rocprof).",
      "libxccl-mpi"},
     CHOICE,
     AT(ranges),
     0,
     0},
    {{"XCCL_DUMP_DIR", "path", "",
      "Folder to which a rank writes its last operations, and the calls that its threads are in, on "
      "SIGUSR1, an error or a time-out. Calls on host memory are followed, too. Not set: the current "
      "folder on SIGUSR1, and nothing on an error or a time-out.",
      "libxccl-mpi"},
     TEXT,
     AT(dump_dir),
     0,
     0},
    {{"XCCL_TIMEOUT", "seconds, 0 to 604800" OR_SECONDS, "0",
      "Time after which a collective that does not complete ends in an error; 0: it waits for ever, "
      "and warns. Receives, and collectives that MPI carries, wait on. Time in which the process is "
      "suspended, or computes between two calls, does not count.",
      "libxccl-mpi"},
     SECONDS,
     AT(timeout),
     0,
     604800},
    {{"XCCL_MPI_GPU_AWARE", "auto|yes|no", "auto",
      "Whether MPI takes device buffers itself; if not, they are staged through host memory.",
      "libxccl-mpi"},
     CHOICE,
     AT(mpi_gpu_aware),
     0,
     0},
    {{"XCCL_ROOT", "path", "", "Where xccl is installed.", "modules, env/"}, FOREIGN, 0, 0, 0},
    {{"XCCL_SITE", "name of a site", "", "Site whose settings and tuning tables are in force.",
      "modules, env/, libxccl-mpi"},
     TEXT,
     AT(site),
     0,
     0},
    {{"XCCL_LOCAL_DEVICE", "device number, 0 to 1023", "",
      "Device that belongs to this rank, for the program; xccl-run sets it.",
      "xccl-run, xccl-perf"}, /* nobody hands it on to processes that it starts */
     NUMBER,
     AT(local_device),
     0,
     1023},
    {{"XCCL_MPI", "openmpi|mpich|mpiabi", "",
      "MPI family that xccl-perf and xccl-tune are to be run with.", "xccl-perf, xccl-tune"},
     FOREIGN_CHOICE,
     0,
     0,
     0},
    {{"XCCL_SIM", "cuda:N|rocm:N|msccl:N|mscclpp:N|oneccl:N|hpu:N", "",
      "Kind and number of simulated devices.", "simulation"},
     FOREIGN,
     0,
     0,
     0},
};

enum { NUM_ROWS = sizeof(rows) / sizeof(rows[0]) };

/* Names that begin so are checked by whoever reads them. */
static const char *const foreign_prefixes[] = {"XCCL_SIM_", "XCCL_ENV_", "XCCL_TEST_"};

static struct xc_params values;
static const char      *texts[NUM_ROWS]; /* from the environment, or NULL */
static char             fault[512];
/* A sentence for each name that nobody knows, and for a value that its reader refuses. */
static char           unknown[1024];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static bool is_foreign(const struct row *row)
{
    return (row->kind == FOREIGN) || (row->kind == FOREIGN_CHOICE);
}

/* Index of value in "a|b|c", or -1. */
static int choice_index(const char *allowed, const char *value)
{
    size_t len = strlen(value);
    int    i = 0;

    for (const char *p = allowed;; i++) {
        const char *end = strchrnul(p, '|');
        if (((size_t)(end - p) == len) && (strncmp(p, value, len) == 0)) {
            return i;
        }
        if (*end == '\0') {
            return -1;
        }
        p = end + 1;
    }
}

static void complain(const struct row *row, const char *value)
{
    if (fault[0] == '\0') {
        snprintf(fault, sizeof(fault), "%s=%.100s is not allowed; it takes %s (default %s)",
                 row->pub.name, value, row->pub.allowed,
                 (row->pub.fallback[0] != '\0') ? row->pub.fallback : "none");
    }
}

/* A file's name ends in .json, so that no slip like "yes" or "on" becomes one. */
static void set_profile(const struct row *row, const char *value)
{
    static const char ending[] = ".json";
    size_t            len = strlen(value), least = sizeof(ending); /* one more before it */

    if ((len >= least) && (strcmp(value + len - (least - 1), ending) == 0)) {
        values.profile = 1;
        values.profile_file = value;
    } else if ((strcmp(value, "0") == 0) || (strcmp(value, "1") == 0)) {
        values.profile = (value[0] == '1');
    } else {
        complain(row, value);
    }
}

static void set_number(const struct row *row, const char *value, void *field)
{
    bool has_auto = (strncmp(row->pub.allowed, "auto|", 5) == 0);
    bool has_off = (strstr(row->pub.allowed, "|off|") != NULL);
    long n;

    if ((value[0] == '\0') && (row->pub.fallback[0] == '\0')) {
        return; /* as not set */
    }
    if (has_auto && (strcmp(value, "auto") == 0)) {
        *(long *)field = -1;
    } else if (has_off && (strcmp(value, "off") == 0)) {
        *(long *)field = 0;
    } else if (!xc_quantity_read(value, (enum xc_unit)(row->kind - NUMBER), &n) || (n < row->low) ||
               (n > row->high)) {
        complain(row, value);
    } else if (row->high == 1) {
        *(int *)field = (int)n;
    } else {
        *(long *)field = n;
    }
}

static void set(const struct row *row, const char *value)
{
    char *field = (char *)&values + row->offset;

    if (row->kind == PROFILE) {
        set_profile(row, value);
    } else if (row->kind == TEXT) {
        *(const char **)(void *)field = (value[0] != '\0') ? value : NULL;
    } else if (row->kind == CHOICE) {
        int i = choice_index(row->pub.allowed, value);
        if (i >= 0) {
            *(int *)(void *)field = i;
        } else {
            complain(row, value);
        }
    } else if (!is_foreign(row)) {
        set_number(row, value, field);
    }
}

static int find_row(const char *name, size_t len)
{
    for (int i = 0; i < NUM_ROWS; i++) {
        if ((strncmp(rows[i].pub.name, name, len) == 0) && (rows[i].pub.name[len] == '\0')) {
            return i;
        }
    }
    return -1;
}

/* Of other parts of the product, and what module systems set for every package. */
static bool is_known_elsewhere(const char *name, size_t len)
{
    static const char *const of_modules[] = {"XCCL_DIR", "XCCL_HOME",    "XCCL_BASE",
                                             "XCCL_INC", "XCCL_INCLUDE", "XCCL_LIB",
                                             "XCCL_BIN", "XCCL_VERSION"};

    for (size_t i = 0; i < sizeof(foreign_prefixes) / sizeof(foreign_prefixes[0]); i++) {
        if (strncmp(name, foreign_prefixes[i], strlen(foreign_prefixes[i])) == 0) {
            return true;
        }
    }
    for (size_t i = 0; i < sizeof(of_modules) / sizeof(of_modules[0]); i++) {
        if ((strlen(of_modules[i]) == len) && (strncmp(name, of_modules[i], len) == 0)) {
            return true;
        }
    }
    return false;
}

/* No reason to end a job: centres and users have variables of their own under this prefix. */
/* The longest variable that the name goes on from, as XCCL_LOG_LEVEL does from XCCL_LOG. */
static const char *beginning_of(const char *typed)
{
    const char *found = NULL;
    size_t      longest = 0;

    for (int i = 0; i < NUM_ROWS; i++) {
        size_t n = strlen(rows[i].pub.name);
        if ((n > longest) && (strncmp(typed, rows[i].pub.name, n) == 0) && (typed[n] == '_')) {
            longest = n;
            found = rows[i].pub.name;
        }
    }
    return found;
}

/* What was most likely meant, or NULL: short names are near to many. */
static const char *likely_meant(const char *typed)
{
    size_t      word = strlen(typed) - strlen("XCCL_");
    size_t      best = 1 + ((word < 5) ? 1 : (word < 8) ? 2 : 3);
    const char *meant = NULL;

    for (int i = 0; i < NUM_ROWS; i++) {
        size_t d = xc_edit_distance(typed, rows[i].pub.name);
        if (d < best) {
            best = d;
            meant = rows[i].pub.name;
        }
    }
    return (meant != NULL) ? meant : beginning_of(typed);
}

static void note_unknown(const char *name, size_t len)
{
    char   typed[64];
    size_t used = strlen(unknown), room = sizeof(unknown) - used;

    if (is_known_elsewhere(name, len)) {
        return;
    }
    snprintf(typed, sizeof(typed), "%.*s", (int)((len < 60) ? len : 60), name);
    const char *meant = likely_meant(typed);
    snprintf(unknown + used, room, "%s%s is not a variable of xccl and has no effect%s%s%s",
             (used > 0) ? "; " : "", typed, (meant != NULL) ? "; did you mean " : "",
             (meant != NULL) ? meant : "", (meant != NULL) ? "?" : " (xccl-info -c lists all)");
}

static void note_foreign(void)
{
    for (int i = 0; i < NUM_ROWS; i++) {
        const struct xc_param_row *pub = &rows[i].pub;
        size_t                     used = strlen(unknown);

        if ((rows[i].kind == FOREIGN_CHOICE) && (texts[i] != NULL) &&
            (choice_index(pub->allowed, texts[i]) < 0)) {
            snprintf(unknown + used, sizeof(unknown) - used,
                     "%s%s=%.100s is not allowed; it takes %s; correct it or unset it, since %s "
                     "will refuse it",
                     (used > 0) ? "; " : "", pub->name, texts[i], pub->allowed, pub->read_by);
        }
    }
}

static void load(void)
{
    values.local_device = -1;
    for (int i = 0; i < NUM_ROWS; i++) {
        if (!is_foreign(&rows[i])) {
            set(&rows[i], rows[i].pub.fallback);
        }
        /* Empty is as not set, as in scripts and modules. */
        const char *text = secure_getenv(rows[i].pub.name);
        /* Empty is as not set: jobs clear a variable so, and scripts and modules read it so.
         * A copy: the program may change its environment later. Kept to the end. */
        texts[i] = ((text != NULL) && (text[0] != '\0')) ? strdup(text) : NULL;
        if ((texts[i] != NULL) && !is_foreign(&rows[i])) {
            set(&rows[i], texts[i]);
        }
    }
    note_foreign();
    for (char **e = environ; (e != NULL) && (*e != NULL); e++) {
        if (strncmp(*e, "XCCL_", 5) == 0) {
            size_t len = (size_t)(strchrnul(*e, '=') - *e);
            if (find_row(*e, len) < 0) {
                note_unknown(*e, len);
            }
        }
    }
    xc_log_setup((enum xc_log_level)values.log, values.log_file);
}

const struct xc_params *xc_params(void)
{
    pthread_once(&once, load);
    return &values;
}

const char *xc_params_error(void)
{
    pthread_once(&once, load);
    return (fault[0] != '\0') ? fault : NULL;
}

const char *xc_params_unknown(void)
{
    pthread_once(&once, load);
    return (unknown[0] != '\0') ? unknown : NULL;
}

void xc_params_warn(bool here)
{
    static bool done; /* atomic */
    const char *names = xc_params_unknown();

    if (!__atomic_exchange_n(&done, true, __ATOMIC_RELAXED) && here && (names != NULL)) {
        xc_warn("%s", names);
    }
}

const struct xc_param_row *xc_param_rows(size_t *count_p)
{
    static struct xc_param_row pub[NUM_ROWS];

    for (int i = 0; i < NUM_ROWS; i++) {
        pub[i] = rows[i].pub;
    }
    *count_p = NUM_ROWS;
    return pub;
}

const char *xc_param_value(size_t i, bool *from_env_p)
{
    pthread_once(&once, load);
    if (i >= NUM_ROWS) {
        *from_env_p = false;
        return "";
    }
    *from_env_p = (texts[i] != NULL);
    return (texts[i] != NULL) ? texts[i] : rows[i].pub.fallback;
}

void xc_param_text(const char *name, long number, char *buf, size_t len)
{
    int         i = find_row(name, strlen(name));
    const char *word = ((i >= 0) && (rows[i].kind == CHOICE)) ? rows[i].pub.allowed : NULL;

    for (long skip = number; (word != NULL) && (skip > 0); skip--) {
        word = strchr(word, '|');
        word = (word != NULL) ? word + 1 : NULL;
    }
    if (word != NULL) {
        snprintf(buf, len, "%.*s", (int)(strchrnul(word, '|') - word), word);
    } else {
        snprintf(buf, len, "%ld", number);
    }
}
