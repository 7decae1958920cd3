# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh disable=SC2154,SC2034 # variables are shared with xccl-run, which sources this
# What xccl-run does for one rank: the site's settings of a launch, and binding by xccl-bind.
#
# Builtins only: thousands of ranks start this at once.

# True behind a launcher: this process is a rank. A batch script's own step has a local rank, too.
is_rank() { # command
    case ${1##*/} in
        srun | mpirun | mpiexec | mpiexec.* | mpirun.* | orterun | prterun | prun | aprun | jsrun | flux | ibrun)
            return 1 ;;
    esac
    case ${OMPI_COMM_WORLD_LOCAL_RANK-}${MPI_LOCALRANKID-}${PALS_LOCAL_RANKID-}${FLUX_TASK_LOCAL_ID-}${PMIX_LOCAL_RANK-} in
        ?*) return 0 ;;
    esac
    case ${SLURM_STEP_ID-} in
        '' | *[!0-9]* | 42949672[89]?) return 1 ;;
    esac
    [ -n "${SLURM_LOCALID-}" ]
}

# Sets nodes to one, many, or nothing if no launcher says.
count_nodes() {
    nodes=
    if [ -n "${OMPI_COMM_WORLD_SIZE-}" ]; then
        compare_sizes "$OMPI_COMM_WORLD_SIZE" "${OMPI_COMM_WORLD_LOCAL_SIZE-}"
    elif [ -n "${MPI_LOCALNRANKS-}" ]; then
        compare_sizes "${PMI_SIZE-}" "$MPI_LOCALNRANKS"
    else
        case ${PALS_NUM_NODES-}${FLUX_JOB_NNODES-}:${SLURM_STEP_NUM_NODES:-${SLURM_JOB_NUM_NODES-}} in
            : | *[!0-9:]*) ;;
            1: | :1 | 1:*) nodes=one ;;
            *) nodes=many ;;
        esac
    fi
}

compare_sizes() { # all, on this node
    case $1:$2 in
        : | *: | :* | *[!0-9:]*) ;;
        *) if [ "$1" -gt "$2" ]; then nodes=many; else nodes=one; fi ;;
    esac
}

# Sets site and site_dir; a site that was named has to be there, a detected one may not.
find_site() {
    share=$prefix/share/xccl
    named=$site
    if [ -n "$site" ]; then
        XCCL_SITE=$site
        export XCCL_SITE
        explain XCCL_SITE "$site" "--site"
    elif [ -n "${XCCL_SITE-}" ]; then
        site=$XCCL_SITE
    elif [ -r "$share/env/sites/detect.sh" ]; then
        _xccl_site=
        # shellcheck source=env/sites/detect.sh
        . "$share/env/sites/detect.sh"
        _xccl_detect || :
        site=$_xccl_site
    fi
    site_dir=$share/sites/$site
    case $site in
        '') site_dir= ;;
        */*) fail 2 "unknown site '$site'" ;;
        *) [ -d "$site_dir" ] || without_site ;;
    esac
}

# A library that was installed without the sites' files still serves a site that a module has set.
without_site() {
    if [ -n "$named" ] || [ -d "$share/sites" ]; then
        unknown_site
    fi
    explain XCCL_SITE "$site" "not used: no sites are installed in $share/sites"
    site_dir=
}

unknown_site() {
    known=
    for site_dir in "$share"/sites/*/; do
        [ -d "$site_dir" ] || continue
        site_dir=${site_dir%/}
        known="$known ${site_dir##*/}"
    done
    fail 2 "unknown site '$site'; sites of this installation:${known:- none ($share/sites is empty)}"
}

is_loaded() { # module
    case ":${LOADEDMODULES-}:" in
        *":$1/"* | *":$1:"*) return 0 ;;
    esac
    return 1
}

# The variables that the site wants for a launch over this many nodes.
set_launch_variables() {
    [ -r "$site_dir/launch.env" ] || return 0
    reason=
    while read -r when module name value; do
        case $when in
            '#') # the reason of the variable below it
                reason="$reason $module $name $value"
                case $reason in *"(the rest of the line)."*) reason= ;; esac # that was the header
                continue ;;
            any | "$nodes") ;;
            *) reason='' && continue ;;
        esac
        case $name in
            '' | [0-9]* | *[!A-Za-z0-9_]*) continue ;;
        esac
        if [ "$module" != - ] && is_loaded "$module"; then
            explain "$name" "${value}" "not set here: the module $module is loaded and decides it"
            reason='' && continue
        fi
        set_launch_variable "$name" "$value"
        reason=
    done <"$site_dir/launch.env"
}

set_launch_variable() { # name value
    eval "theirs=\${$1-} given=\${$1+yes}"
    why="site $site:${reason:- for ${nodes:-any number of} node(s)}"
    case $nodes:$1:$theirs in
        one:NCCL_NET:'AWS Libfabric' | one:NCCL_NET:OFI | one:NCCL_NET:Libfabric)
            # Where it stands in an environment for all jobs, a job of one node would not start.
            why="site $site: '$theirs' in the environment does not start on one node, where Slingshot gives no network" ;;
        *)
            if [ -n "$given" ]; then
                explain "$1" "$theirs" "left as the user set it ($why would set '$2')"
                return 0
            fi ;;
    esac
    eval "$1=\$2"
    export "${1?}"
    explain "$1" "$2" "$why"
}

# Sets wrap if the command is to be started through xccl-bind.
plan_launch() { # command
    rank=
    if is_rank "${1-}"; then
        rank=yes
    elif [ -n "$bind$gpus$map$report" ] && [ $# -gt 0 ] && [ "$bind" != off ]; then
        fail 2 "no rank to bind here; put xccl-run behind the launcher: srun -n 8 xccl-run ./app"
    fi
    [ -n "$rank$site" ] || return 0
    find_site
    [ -n "$rank" ] || return 0
    count_nodes
    [ "${XCCL_ROUTE:-xccl}" != xccl ] || [ -z "$site_dir" ] || set_launch_variables
    if [ "$bind" = off ]; then
        explain binding none "--no-bind"
    elif [ -n "${XCCL_LOCAL_DEVICE-}" ] && [ -z "$bind$gpus$map$report" ]; then
        explain XCCL_LOCAL_DEVICE "$XCCL_LOCAL_DEVICE" "was set before: an outer xccl-run, or the user, has bound this rank"
    elif [ -x "$prefix/bin/xccl-bind" ]; then
        wrap=yes
    else
        fail 1 "xccl-bind is missing in $prefix/bin; install xccl again, or run with --no-bind"
    fi
}

exec_bound() { # command
    [ -n "$map" ] || [ ! -r "$site_dir/ranks.map" ] || map=$site_dir/ranks.map
    exec "$prefix/bin/xccl-bind" --preload "$preload" ${bind:+--bind "$bind"} ${gpus:+--gpus "$gpus"} \
        ${site:+--site "$site"} ${map:+--map "$map"} ${topology:+--topology "$topology"} \
        ${report:+--report} ${explain:+--explain} -- "$@"
}
