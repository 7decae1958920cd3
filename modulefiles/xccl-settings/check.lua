-- SPDX-License-Identifier: BSD-3-Clause
-- Rendered by site-configs/tools/render from site-configs/routes.yaml; do not edit.
help([[
Verify the symmetry of every call and give up early. Sets:
    XCCL_CHECK=1: name the rank whose arguments break MPI's rules
    XCCL_TIMEOUT=120: end a hang after two minutes instead of half an hour
]])
whatis("Name: xccl-settings/check")
whatis("Category: settings")
whatis("Keywords: xccl, settings")
whatis("Description: Verify the symmetry of every call and give up early")

-- name the rank whose arguments break MPI's rules (xccl's own variables (xccl-info -c))
pushenv("XCCL_CHECK", "1")
-- end a hang after two minutes instead of half an hour (xccl's own variables (xccl-info -c))
pushenv("XCCL_TIMEOUT", "120")
