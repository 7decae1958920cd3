-- SPDX-License-Identifier: BSD-3-Clause
-- Rendered by site-configs/tools/render from site-configs/routes.yaml; do not edit.
help([[
Programs that drive several communicators on one GPU at once. Sets:
    NCCL_LAUNCH_ORDER_IMPLICIT=1: NCCL 2.26 and later order kernels of several communicators, which deadlock otherwise
]])
whatis("Name: xccl-settings/many-comms")
whatis("Category: settings")
whatis("Keywords: xccl, settings")
whatis("Description: Programs that drive several communicators on one GPU at once")

-- NCCL 2.26 and later order kernels of several communicators, which deadlock otherwise (NCCL user guide,
-- environment variables)
pushenv("NCCL_LAUNCH_ORDER_IMPLICIT", "1")
