#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Only the vendors' names leave the stand-ins: nothing of the simulation may meet a program's symbols.
# usage: test_exports.sh <folder of the simulation>
set -eu
status=0

check() { # library, pattern of allowed names, a name that must be there
    names=$(nm -D --defined-only "$1" | awk '{ print $3 }')
    others=$(printf '%s\n' "$names" | grep -Ev "$2") || true
    if [ -n "$others" ]; then
        echo "$1 exports what it should not: $others" >&2
        status=1
    fi
    if ! printf '%s\n' "$names" | grep -qx "$3"; then
        echo "$1 does not export $3" >&2
        status=1
    fi
}

check "$1/cuda/libcuda.so.1" '^cu[A-Z]' cuMemAlloc_v2
check "$1/cuda/libgdrapi.so.2" '^gdr_' gdr_open
check "$1/cuda/libnccl.so.2" '^nccl[A-Z]' ncclAlltoAll
check "$1/msccl/libnccl.so.2" '^(p?nccl|mscclLoad|mscclRun|mscclUnload)[A-Z]' mscclLoadAlgo
check "$1/mscclpp/libmscclpp_nccl.so.0" '^nccl[A-Z]' ncclAllToAll
check "$1/oneccl/libccl.so.2" '^oneccl[A-Z]' onecclCommInitRank
check "$1/hpu/libSynapse.so" '^(syn|hccl)[A-Z]' hcclCommInitRank
check "$1/rocm/libamdhip64.so" '^hip[A-Z]' hipMalloc
check "$1/rocm/librccl.so.1" '^nccl[A-Z]' ncclAllToAllv
check "$1/libxcclsim-core.so" '^(xs_|XCCL_SIM_FAIL_says_load$)' xs_init
exit $status
