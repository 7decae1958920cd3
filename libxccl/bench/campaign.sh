#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# A large campaign of random calls and messages on simulated devices: campaign.sh SECONDS [options]
#
# Builds a release build and one with AddressSanitizer and UndefinedBehaviorSanitizer, and spends the
# rest of the seconds on jobs of 2 to 6 ranks, side by side on all cores (campaign.py, which takes
# the options). Needs a C compiler, CMake, Open MPI and Python 3, and no GPU. BUILD is the folder
# that it builds in (default: build/campaign beside libxccl), OUT the one for campaign.json.
set -eu
top=$(cd "$(dirname "$0")/.." && pwd)
begin=$(date +%s)
build=${BUILD:-$top/../build/campaign}
out=${OUT:-$build}
mpicc=$(command -v mpicc.openmpi || echo mpicc)

die() {
    printf 'campaign: %s\n' "$*" >&2
    exit 1
}

build_one() { # name, CMake arguments ...
    folder=$build/$1
    shift
    mkdir -p "$folder"
    if ! { cmake -S "$top" -B "$folder" "$@" -DXCCL_MPICC="$mpicc" -DXCCL_TESTS=ON -DXCCL_NVCC= \
        -DXCCL_HIPCC= && cmake --build "$folder" --parallel "$(nproc)" --target campaign_programs; } \
        >"$folder/campaign-build.log" 2>&1; then
        tail -n 40 "$folder/campaign-build.log" >&2
        return 1
    fi
}

case ${1:-} in
    '' | *[!0-9]*) die "invalid number of seconds '${1:-}'; usage: campaign.sh SECONDS [options]" ;;
esac
limit=$1
shift
mkdir -p "$build" "$out"
build_one release -DCMAKE_BUILD_TYPE=Release &
first=$!
build_one asan -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS=-O1 -DXCCL_SANITIZE=ON ||
    die "the build with sanitizers failed"
wait "$first" || die "the release build failed"
printf 'campaign: built in %s s\n' "$(($(date +%s) - begin))"
left=$((limit - ($(date +%s) - begin)))
[ "$left" -gt 0 ] || die "the builds took all of the $limit s; they are kept, so try again"
exec python3 "$top/bench/campaign.py" "$build" --seconds "$left" --json "$out/campaign.json" "$@"
