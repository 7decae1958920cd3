/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef XC_BACKENDS_HCCL_H
#define XC_BACKENDS_HCCL_H

#include "backends/backend.h"

extern const struct xc_backend_ops xc_backend_hccl;

#endif
