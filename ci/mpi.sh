# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# How ci/demo and ci/bench start ranks; sourced after lib.sh.

# The first family that xccl was built for and whose launcher is there: $family, $launcher.
choose_mpi() { # build folder, family or empty
    family=
    for candidate in ${2:-openmpi mpich}; do
        launcher=$(sed -n "s/^XCCL_MPIEXEC_$candidate:[A-Z]*=//p" "$1/CMakeCache.txt")
        if [ -n "$launcher" ] && [ -x "$launcher" ]; then
            family=$candidate
            return
        fi
    done
    die "no MPI to run with: xccl was built without ${2:-one}, or its launcher is not installed"
}

# Run a command on so many ranks of this host.
ranks() { # number, command ...
    number=$1
    shift
    case $family in
        openmpi)
            # Root is refused by default, for good reasons that a build folder of one's own has not.
            # Ranks that outnumber the cores must not spin.
            env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
                OMPI_MCA_mpi_yield_when_idle=$([ "$number" -gt "$(cores)" ] && echo 1 || echo 0) \
                PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
                "$launcher" --oversubscribe -n "$number" "$@" ;;
        *) "$launcher" -n "$number" "$@" ;;
    esac
}

# How many devices the driver of this machine shows, and of which runtime: $devices, $runtime.
count_devices() { # bin folder
    devices=0
    runtime=none
    { [ -r /dev/nvidiactl ] && [ -w /dev/nvidiactl ]; } || { [ -r /dev/kfd ] && [ -w /dev/kfd ]; } ||
        return 0
    listed=$("$1/xccl-info" --devices) || return 0
    devices=$(printf '%s\n' "$listed" | grep -c '^ *device [0-9]*:' || true)
    case $listed in
        *"cuda  "*"libcuda"*) runtime=cuda ;;
        *) runtime=rocm ;;
    esac
}
