# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh
# How ci/demo and ci/bench start ranks; sourced after lib.sh.

# The first family that xccl was built for and whose launcher is there: $family, $launcher.
choose_mpi() { # build folder, family or empty
    family=
    for candidate in ${2:-openmpi mpich mpiabi}; do
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
    crowded=0 # ranks that outnumber the cores must not spin
    [ "$number" -le "$(cores)" ] || crowded=1
    case $family in
        openmpi)
            # Root is refused by default, for good reasons that a build folder of one's own has not.
            # Open MPI 5.0.7 with IPv6 warns in every job where an interface has addresses of both kinds.
            # A rank bound to one core would share it with the threads of the vendor's library.
            env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
                PRTE_ALLOW_RUN_AS_ROOT=1 PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
                OMPI_MCA_mpi_yield_when_idle=$crowded OMPI_MCA_btl_tcp_disable_family=6 \
                "$launcher" --oversubscribe --bind-to none -n "$number" "$@" ;;
        *)
            [ "$crowded" -eq 0 ] || set -- env MPIR_CVAR_POLLS_BEFORE_YIELD=1 "$@"
            "$launcher" -n "$number" "$@" ;;
    esac
}

# How many devices the drivers of this machine show: $devices.
count_devices() { # bin folder
    # shellcheck disable=SC2034 # the scripts use it
    devices=0
    { [ -r /dev/nvidiactl ] && [ -w /dev/nvidiactl ]; } || { [ -r /dev/kfd ] && [ -w /dev/kfd ]; } ||
        return 0
    # shellcheck disable=SC2034
    devices=$("$1/xccl-info" --devices | grep -c '^ *device [0-9]*:') || devices=0
}
