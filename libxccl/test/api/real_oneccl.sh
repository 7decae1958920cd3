#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Run the collectives on the real oneCCL, with its plugin for host memory, where it is installed.
# usage: real_oneccl.sh <test_collectives>; XCCL_TEST_ONECCL is the folder that holds libccl.so.2
set -u
folder=${XCCL_TEST_ONECCL-}
for place in "$folder" "${CCL_ROOT:+$CCL_ROOT/lib}" /opt/intel/oneapi/ccl/latest/lib; do
    [ -n "$place" ] && [ -r "$place/libccl.so.2" ] && folder=$place && break
done
if [ ! -r "$folder/libccl.so.2" ]; then
    echo "SKIP: no oneCCL here. 'pip install oneccl' into a virtual environment (2 GB), and set" \
        "XCCL_TEST_ONECCL to its folder lib"
    exit 77
fi
XCCL_CCL=oneccl XCCL_CCL_LIBRARY=$folder/libccl.so.2 CCL_PLUGIN=ONECCL_LEGACY_CPU CCL_LOG_LEVEL=error
LD_LIBRARY_PATH=$folder${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export XCCL_CCL XCCL_CCL_LIBRARY CCL_PLUGIN CCL_LOG_LEVEL LD_LIBRARY_PATH
exec "$1" oneccl 3
