-- SPDX-License-Identifier: BSD-3-Clause
-- Rendered by site-configs/tools/render from site-configs; do not edit.
help([[
Preloads the interposer of xccl into every program that is started from this shell, editors and compilers among them, for
those who want no xccl-run in front of their program. Load it in a job script, not in your profile:

    module load xccl-auto
    srun -N 2 -n 8 --gpus-per-node=4 --cpus-per-task=8 --gpu-bind=none ./app

In programs without MPI it does nothing; it is gone after module unload xccl-auto. It binds no rank to cores, GPU and NIC: only xccl-run does.
]])
whatis("Name: xccl-auto")
whatis("Version: 0.1.0")
whatis("Category: settings")
whatis("Keywords: xccl, LD_PRELOAD")
whatis("Description: preloads the MPI interposer of xccl into every program")

local root = "@prefix@" -- filled in at install
local lib = "@lib@"
depends_on("xccl/0.1.0")
prepend_path("LD_PRELOAD", pathJoin(root, lib, "libxccl-mpi.so"))
