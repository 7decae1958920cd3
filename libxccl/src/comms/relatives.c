/* SPDX-License-Identifier: BSD-3-Clause */
#include "comms/relatives.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

enum { PID_CHARS = 16 };

/* Of /proc/<pid>/stat, whose second field may hold anything; 0: there is none, or it is not known.
 */
static int parent_of(const char *pid)
{
    char path[64], text[512] = "";
    int  parent = 0;

    snprintf(path, sizeof(path), "/proc/%.16s/stat", pid);
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return 0;
    }
    size_t n = fread(text, 1, sizeof(text) - 1, file);
    fclose(file);
    text[n] = '\0';
    const char *end = strrchr(text, ')');
    return ((end != NULL) && (sscanf(end + 1, " %*c %d", &parent) == 1)) ? parent : 0;
}

static void descend(const char *pid, int generations, xm_relative *visit, void *arg);

static void visit_children(const char *pid, const char *thread, int generations, xm_relative *visit,
                           void *arg)
{
    char path[96], child[PID_CHARS];

    snprintf(path, sizeof(path), "/proc/%.16s/task/%.16s/children", pid, thread);
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        return;
    }
    while (fscanf(file, "%15s", child) == 1) {
        if (generations == 1) {
            visit(arg, child);
        } else {
            descend(child, generations - 1, visit, arg);
        }
    }
    fclose(file);
}

/* The kernel lists them by the thread that started them. */
static void descend(const char *pid, int generations, xm_relative *visit, void *arg)
{
    char path[64];

    snprintf(path, sizeof(path), "/proc/%.16s/task", pid);
    DIR *threads = opendir(path);
    if (threads == NULL) {
        return;
    }
    for (struct dirent *t = readdir(threads); t != NULL; t = readdir(threads)) {
        if (t->d_name[0] != '.') {
            visit_children(pid, t->d_name, generations, visit, arg);
        }
    }
    closedir(threads);
}

void xm_relatives_each(int generations, xm_relative *visit, void *arg)
{
    char pid[PID_CHARS] = "self";

    for (int i = 0; i < generations; i++) {
        int parent = parent_of(pid);
        if (parent <= 0) {
            return;
        }
        snprintf(pid, sizeof(pid), "%d", parent);
    }
    descend(pid, generations, visit, arg);
}
