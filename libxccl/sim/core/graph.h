/* SPDX-License-Identifier: BSD-3-Clause */
/* Capture of a stream's work into graphs, as strict as CUDA is about it. */
#ifndef XS_CORE_GRAPH_H
#define XS_CORE_GRAPH_H

#include "core/core.h"

struct xs_capture;
struct xs_graph;
struct xs_exec;

enum xs_mode { XS_MODE_GLOBAL, XS_MODE_THREAD_LOCAL, XS_MODE_RELAXED };

XS_API enum xs_error xs_capture_begin(struct xs_stream *stream, int mode);
XS_API enum xs_error xs_capture_end(struct xs_stream *stream, struct xs_graph **graph_p);
/* 0: it does not capture, 1: it does, 2: what it captures is spoilt. */
XS_API int           xs_capture_status(struct xs_stream *stream);
XS_API enum xs_error xs_capture_exchange(int *mode);
/* Of calls that might disturb a capture: is the calling thread prohibited from them now? */
XS_API enum xs_error xs_capture_guard(void);
/* Of calls that wait for all work of a context: any capture there forbids them, in every mode. */
XS_API enum xs_error xs_capture_guard_ctx(const struct xs_ctx *ctx);
/* Of calls that a stream which captures cannot take: error, and the capture is spoilt. */
XS_API enum xs_error xs_capture_refuse(struct xs_stream *stream, enum xs_error error);

XS_API enum xs_error xs_graph_create(struct xs_graph **graph_p);
/* The graph owns arg, which is only ever copied; *node_p stands for it. */
enum xs_error xs_graph_add(struct xs_graph *graph, xs_work_fn *run, xs_copy_fn *copy, void *arg,
                           void **node_p);
/* What a node of its graph is to be in launches of this executable, which owns arg. */
enum xs_error xs_exec_set(struct xs_exec *exec, const void *node, void *arg);
/* kernel.c: the same with kernels. */
XS_API enum xs_error xs_graph_add_kernel(struct xs_graph *graph, void **node_p,
                                         const struct xs_ctx *ctx, const struct xs_kernel *kernel,
                                         const unsigned grid[2], unsigned threads,
                                         const void *arguments);
XS_API enum xs_error xs_exec_set_kernel(struct xs_exec *exec, const void *node,
                                        const struct xs_ctx *ctx, const struct xs_kernel *kernel,
                                        const unsigned grid[2], unsigned threads,
                                        const void *arguments);
XS_API enum xs_error xs_graph_count(const struct xs_graph *graph, size_t *count_p);
XS_API enum xs_error xs_graph_destroy(struct xs_graph *graph);
XS_API enum xs_error xs_graph_instantiate(struct xs_graph *graph, struct xs_exec **exec_p);
XS_API enum xs_error xs_graph_launch(struct xs_exec *exec, struct xs_stream *stream);
XS_API enum xs_error xs_exec_destroy(struct xs_exec *exec);

/* For stream.c. */
enum xs_error xs_capture_add(struct xs_capture *capture, xs_work_fn *run, xs_copy_fn *copy,
                             void *arg);
/* The capture of a stream, or NULL; NULL ends it. Fails where it has one already. */
XS_API struct xs_capture *xs_stream_capture(struct xs_stream *stream);
/* Of a question about its work: error, and a capture that it concerns is spoilt. */
XS_API enum xs_error xs_stream_refuse_question(struct xs_stream *stream);
/* As xs_capture_status(); of the legacy stream while a blocking one captures an error alone. */
XS_API enum xs_error xs_stream_capture_status(struct xs_stream *stream, int *status);
enum xs_error        xs_stream_set_capture(struct xs_stream *stream, struct xs_capture *capture);

#endif
