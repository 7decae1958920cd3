/* SPDX-License-Identifier: BSD-3-Clause */
/* Elements of every type: made, reduced on the host, compared. */
#ifndef XT_VALUES_H
#define XT_VALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <xccl/xccl.h>

size_t      xt_size(xcclDataType_t type);
const char *xt_type_name(xcclDataType_t type);
const char *xt_op_name(xcclRedOp_t op);

/* A number that depends on all of its arguments. */
uint64_t xt_mix(uint64_t seed, uint64_t a, uint64_t b);

/* Any bytes, for what is only moved. from: which rank's block. */
void xt_fill_bytes(void *out, size_t bytes, uint64_t seed, int from);

/* Operands of op of one rank; element first is the first one. */
void xt_fill_operands(void *out, xcclDataType_t type, xcclRedOp_t op, size_t count, size_t first,
                      uint64_t seed, int rank);

/*
 * Compare result with what op makes of all ranks' operands from element `first` on. Returns the
 * index of the first wrong element, or -1; then *text says what was wrong with it.
 */
long xt_check_reduction(const void *result, xcclDataType_t type, xcclRedOp_t op, size_t count,
                        size_t first, uint64_t seed, int nranks, char *text, size_t len);

/* A floating-point element as a number, and the other way for a number that the type has. */
double xt_decode(xcclDataType_t type, const void *element);
void   xt_encode(xcclDataType_t type, double value, void *element);

#endif
