#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Everything that is measured on a machine with NVIDIA GPUs, in one go: OUT=folder gpu_run.sh
#
# Builds xccl here, times and verifies all collectives on 2 and on 4 GPUs over both routes, measures
# what the library costs against its bars, and runs a program of mpi4py and CuPy where those are
# installed. JSON goes to $OUT; a summary is printed last. Needs a C compiler, CMake, an MPI with
# its wrappers, and NCCL: libnccl.so.2 known to the loader or from Python's nvidia-nccl package.
# BUILD is where it builds (default: build/gpu of the checkout), LIMIT the seconds that one run may take.
# REHEARSE=cuda:4 walks through all of it on simulated devices and small sizes, against no bars.
set -u
top=$(cd "$(dirname "$0")/.." && pwd)
out=${OUT:-$PWD/gpu-results}
build=${BUILD:-$(dirname "$top")/build/gpu}
limit=${LIMIT:-150}
log=$out/log.txt
failed=
simulation=${REHEARSE:+--sim $REHEARSE}
largest=256m
heaviest=1073741824
mkdir -p "$out"
: >"$log"

say() {
    printf '== %s\n' "$*" | tee -a "$log"
}

die() {
    printf 'gpu_run: %s\n' "$*" | tee -a "$log" >&2
    exit 1
}

# The loader knows libcuda, or it lies where drivers are mounted into containers.
find_driver() {
    ldconfig -p 2>/dev/null | grep -q 'libcuda\.so\.1' && return
    for folder in /usr/local/nvidia/lib64 /usr/local/nvidia/lib /usr/local/cuda/compat; do
        if [ -e "$folder/libcuda.so.1" ]; then
            LD_LIBRARY_PATH=$folder${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
            export LD_LIBRARY_PATH
            return
        fi
    done
    die "libcuda.so.1 was not found: no NVIDIA driver here"
}

find_nccl() {
    ldconfig -p 2>/dev/null | grep -q 'libnccl\.so\.2' && return
    nccl=$(python3 -c 'import nvidia.nccl as n; print(list(n.__path__)[0] + "/lib/libnccl.so.2")') ||
        die "NCCL was not found: neither known to the loader nor as Python's nvidia.nccl"
    [ -e "$nccl" ] || die "NCCL was not found: no $nccl"
    export XCCL_CCL_LIBRARY="$nccl"
}

build_all() {
    generator=
    command -v ninja >/dev/null && generator="-G Ninja"
    # shellcheck disable=SC2086 # no word, or two
    if ! { cmake -S "$top" -B "$build" $generator -DCMAKE_BUILD_TYPE=Release -DXCCL_BENCH=ON &&
        cmake --build "$build" --parallel; } >>"$log" 2>&1; then
        tail -n 40 "$log"
        die "the build failed"
    fi
    grep '^-- xccl:' "$log"
    bin=$build/stage/bin
    if [ -x "$build/stage/lib/xccl/xccl-perf-openmpi" ]; then
        family=openmpi
    else
        family=mpich
    fi
    launcher=$(sed -n "s/^XCCL_MPIEXEC_$family:[A-Z]*=//p" "$build/CMakeCache.txt")
    [ -x "$launcher" ] || die "there is no launcher of $family"
}

ranks() { # number, command ...
    number=$1
    shift
    if [ "$family" = openmpi ]; then
        # Unbound: NCCL's threads would share the one core of a bound rank. Only where there are too
        # few cores may ranks be more: Open MPI then yields the core whenever it waits, and a small
        # message takes up to a millisecond.
        set -- --bind-to none -n "$number" "$@"
        [ "$(nproc)" -ge "$number" ] || set -- --oversubscribe "$@"
    else
        set -- -n "$number" "$@"
    fi
    timeout "$limit" "$launcher" "$@" >>"$log" 2>&1
}

step() { # what, command ...
    what=$1
    shift
    start=$(date +%s)
    if "$@"; then
        say "$what: good, $(($(date +%s) - start)) s"
    else
        say "$what: FAILED (status $?, after $(($(date +%s) - start)) s)"
        failed="$failed [$what]"
        tail -n 15 "$log"
    fi
}

# Behind the launcher, which may have a look at the environment that it is started with.
# shellcheck disable=SC2086 # $simulation is a list of words
perf() { # ranks, route
    ranks "$1" "$bin/xccl-run" $simulation --route "$2" "$bin/xccl-perf" --coll all \
        --max "$largest" --max-time 0.2 --timeout 60 --json "$out/perf-$1-$2.json"
}

# shellcheck disable=SC2086
host_bars() { # ranks, --device or nothing
    ranks "$1" "$bin/xccl-run" $simulation "$build/bench/host_overhead-$family" $no_limit \
        ${2:+"$2"} "$build/bars-host-$1${2:-}.json"
}

# shellcheck disable=SC2086
device_bars() { # ranks
    ranks "$1" "$bin/xccl-run" $simulation env "XCCL_TUNE=*:*:*:*:ccl" \
        "$build/bench/device_overhead-$family" $no_limit --large "$heaviest" "$build/bars-device-$1.json"
}

start_bars() {
    "$build/bench/start_overhead" "$build/stage/lib/libxccl-mpi.so" "$bin/xccl-run" \
        "$build/bars-start.json" >>"$log" 2>&1
}

# By its path: a launcher may put its own folder first on PATH, and with it another Python.
cupy() {
    ranks "$1" "$bin/xccl-run" env "XCCL_TUNE=*:*:*:*:ccl" "$(command -v python3)" \
        "$top/test/device/cupy_allreduce.py" --expect ccl \
        --json "$out/cupy.json"
}

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
# NVLink multicast stays off unless the caller says otherwise: on shared hosts it can take the GPUs
# of others out of service.
export NCCL_NVLS_ENABLE="${NCCL_NVLS_ENABLE:-0}"
# What is measured is the vendor's path, from the first call on.
export XCCL_COMM_CREATE=first
no_limit=
if [ -n "$simulation" ]; then
    largest=4k
    heaviest=1048576
    no_limit=--no-limit
else
    find_driver
    find_nccl
fi
step "build" build_all
info=$build/info.txt
# shellcheck disable=SC2086
"$bin/xccl-run" $simulation "$bin/xccl-info" --long --devices >"$info" 2>>"$log" || die "xccl-info failed"
cat "$info" >>"$log"
gpus=$(grep -c '^ *device [0-9]*:' "$info")
[ "$gpus" -ge 2 ] || die "two GPUs are needed, $gpus found"
most=4
[ "$gpus" -ge 4 ] || most=2
say "$gpus GPUs; $(grep '^  nccl ' "$info")"

rm -f "$build"/bars-*.json
cd "$build" || die "cannot enter $build" # what a crash leaves behind stays out of the sources
step "all collectives, $most GPUs, xccl" perf "$most" xccl
step "process start" start_bars
step "host memory, 1 rank" host_bars 1
step "host memory, 2 ranks" host_bars 2
step "host memory beside a GPU" host_bars 1 --device
step "device memory against NCCL, 2 GPUs" device_bars 2
[ "$most" -eq 2 ] || step "device memory against NCCL, $most GPUs" device_bars "$most"
if [ -z "$simulation" ] && python3 -c 'import cupy, mpi4py' 2>>"$log"; then
    step "mpi4py and CuPy, $most GPUs" cupy "$most"
else
    say "no mpi4py and CuPy, or no real GPU for them: their program did not run"
fi
step "all collectives, $most GPUs, mpi" perf "$most" mpi
if [ "$most" -gt 2 ]; then
    step "all collectives, 2 GPUs, xccl" perf 2 xccl
    step "all collectives, 2 GPUs, mpi" perf 2 mpi
fi

rm -f "$out"/*.part
python3 "$top/bench/merge.py" "$out/overhead.json" "$build"/bars-*.json ||
    failed="$failed [merge]"
python3 "$top/bench/summary.py" "$out" | tee "$out/summary.txt"
[ -z "$failed" ] || die "failed:$failed"
