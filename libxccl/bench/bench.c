/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/json_text.h"

double bench_now_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

double bench_median(double *values, int n)
{
    qsort(values, (size_t)n, sizeof(*values), compare_doubles);
    return (values[(n - 1) / 2] + values[n / 2]) / 2;
}

double bench_least(const double *values, int n)
{
    double least = values[0];

    for (int i = 1; i < n; i++) {
        least = (values[i] < least) ? values[i] : least;
    }
    return least;
}

static const char *verdict(const struct bench_bar *bar)
{
    if (bar->limit < 0) {
        return "-";
    }
    return (bar->measured <= bar->limit) ? "met" : "MISSED";
}

bool bench_report(const struct bench_bar *bar)
{
    char limit[32] = "-";

    if (bar->limit >= 0) {
        snprintf(limit, sizeof(limit), "%g", bar->limit);
    }
    printf("bar|%s|%.4g|%.4g|%.3g|%s|%s|%s\n", bar->name, bar->without, bar->with, bar->measured,
           limit, bar->unit, verdict(bar));
    fflush(stdout);
    return (bar->limit < 0) || (bar->measured <= bar->limit);
}

bool bench_write_json(const char *file, const char *program, const char *where,
                      const struct bench_bar *bars, int count)
{
    FILE     *f = fopen(file, "we");
    char      when[32];
    time_t    now = time(NULL);
    struct tm utc;

    if (f == NULL) {
        fprintf(stderr, "%s: cannot write '%s': %s\n", program, file, strerror(errno));
        return false;
    }
    gmtime_r(&now, &utc);
    strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", &utc);
    fprintf(f, "{\n  \"schema\": \"xccl-bench-1\",\n  ");
    json_field(f, "program", program);
    fprintf(f, ",\n  ");
    json_field(f, "date", when);
    fprintf(f, ",\n  ");
    json_field(f, "where", where);
    fprintf(f, ",\n  \"bars\": [");
    for (int i = 0; i < count; i++) {
        fprintf(f, "%s\n    {", (i > 0) ? "," : "");
        json_field(f, "name", bars[i].name);
        fprintf(f, ", ");
        json_field(f, "unit", bars[i].unit);
        fprintf(f, ", \"without\": %.6g, \"with\": %.6g, \"measured\": %.6g, ", bars[i].without,
                bars[i].with, bars[i].measured);
        if (bars[i].limit >= 0) {
            fprintf(f, "\"limit\": %g, ", bars[i].limit);
        }
        json_field(f, "verdict", verdict(&bars[i]));
        fprintf(f, "}");
    }
    fprintf(f, "\n  ]\n}\n");
    return fclose(f) == 0;
}
