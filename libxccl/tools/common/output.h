/* SPDX-License-Identifier: BSD-3-Clause */
/* What a tool prints. */
#ifndef XCCL_TOOLS_OUTPUT_H
#define XCCL_TOOLS_OUTPUT_H

/* From here on a process whose output could not be written (a full disk) says so and ends with 1.
 */
void output_watch(const char *tool);

#endif
