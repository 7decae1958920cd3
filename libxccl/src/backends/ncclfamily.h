/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef XC_BACKENDS_NCCLFAMILY_H
#define XC_BACKENDS_NCCLFAMILY_H

#include "backends/backend.h"
#include "vendor/vendor.h"

extern const struct xc_backend_ops xc_backend_nccl;
extern const struct xc_backend_ops xc_backend_rccl;
extern const struct xc_backend_ops xc_backend_msccl;
extern const struct xc_backend_ops xc_backend_mscclpp;

/* Parts that the unit tests look at. */
xcclResult_t xc_nccl_result(int rc);
void         xc_nccl_config(const xcclConfig_t *config, int version, xc_nccl_config_t *out);

#endif
