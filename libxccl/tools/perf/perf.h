/* SPDX-License-Identifier: BSD-3-Clause */
/* xccl-perf: what its files share. One run is: options, then for each test a list of cases (one a
 * size), and for each case plan, verify, measure, report. */
#ifndef XCCL_PERF_PERF_H
#define XCCL_PERF_PERF_H

#include "measure/measure.h"

/* options.c */
/* 0: go on; else the status to exit with, plus 1 (--help is 1). Prints on rank 0 only. */
int         perf_options_parse(struct perf_options *opt, int argc, char **argv, bool speak);
const char *perf_memory_name(enum perf_memory memory);

/* report.c */
void perf_report_header(const struct perf_run *run);
void perf_report_test(const struct perf_run *run, enum perf_test test);
void perf_report_case(const struct perf_run *run, const struct perf_case *pc,
                      const struct perf_result *result);

/* json.c */
/* --json -: the table makes room on stdout. */
bool perf_json_to_stdout(const struct perf_run *run);
bool perf_json_begin(struct perf_run *run);
void perf_json_case(const struct perf_run *run, const struct perf_case *pc,
                    const struct perf_result *result, bool used_ccl);
bool perf_json_end(struct perf_run *run, bool passed, bool used_ccl);

#endif
