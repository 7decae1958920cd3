# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh disable=SC2154,SC2034 # variables are shared with xccl-run, which sources this
# What xccl-run does for one rank: the site's settings of a launch, and binding by xccl-bind.
#
# Builtins only: thousands of ranks start this at once.

# True behind a launcher: this process is a rank. A batch script's own step has a local rank, too.
is_rank() { # command
    case ${1##*/} in
        srun | mpirun | mpiexec | mpiexec.* | mpirun.* | mpirun_rsh | orterun | prterun | prun | aprun | jsrun | \
            flux | ibrun)
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

# Sets _xr_nodes to one, many, or nothing if no launcher says.
count_nodes() {
    _xr_nodes=
    if [ -n "${OMPI_COMM_WORLD_SIZE-}" ]; then
        compare_sizes "$OMPI_COMM_WORLD_SIZE" "${OMPI_COMM_WORLD_LOCAL_SIZE-}"
    elif [ -n "${MPI_LOCALNRANKS-}" ]; then
        compare_sizes "${PMI_SIZE-}" "$MPI_LOCALNRANKS"
    else
        case ${PALS_NUM_NODES-}${FLUX_JOB_NNODES-}:${SLURM_STEP_NUM_NODES:-${SLURM_JOB_NUM_NODES-}} in
            : | *[!0-9:]*) ;;
            1: | :1 | 1:*) _xr_nodes=one ;;
            *) _xr_nodes=many ;;
        esac
    fi
}

compare_sizes() { # all, on this node
    case $1:$2 in
        : | *: | :* | *[!0-9:]*) ;;
        *) if [ "$1" -gt "$2" ]; then _xr_nodes=many; else _xr_nodes=one; fi ;;
    esac
}

# Sets _xr_site to the site that the installation was made for (ci/install-tree --site), as modules and scripts take it.
read_default_site() {
    # The simulation has a site of its own.
    [ -z "${XCCL_SIM-}" ] && [ -r "$_xr_share/sites/default" ] && read -r _xr_site <"$_xr_share/sites/default" &&
        [ -n "$_xr_site" ]
}

# Sets _xr_site and _xr_site_dir; a site that was named has to be there, a detected one may not.
find_site() {
    _xr_share=$_xr_prefix/share/xccl
    _xr_named=$_xr_site
    _xr_asked=
    if [ -n "$_xr_site" ]; then
        XCCL_SITE=$_xr_site
        export XCCL_SITE
        _xr_asked='--site: '
        explain XCCL_SITE "$_xr_site" "--site"
    elif [ -n "${XCCL_SITE-}" ]; then
        _xr_site=$XCCL_SITE
        _xr_asked='XCCL_SITE: '
    elif read_default_site; then
        XCCL_SITE=$_xr_site
        export XCCL_SITE
        _xr_asked="$_xr_share/sites/default: "
        explain XCCL_SITE "$_xr_site" "this installation was made for it"
    elif [ -r "$_xr_share/env/sites/detect.sh" ]; then
        _xccl_site=
        # shellcheck source=env/sites/detect.sh
        . "$_xr_share/env/sites/detect.sh"
        _xccl_detect || :
        _xr_site=$_xccl_site
    fi
    _xr_site_dir=$_xr_share/sites/$_xr_site
    case $_xr_site in
        '') _xr_site_dir= ;;
        */*) unknown_site ;;
        *) [ -d "$_xr_site_dir" ] || without_site ;;
    esac
}

# A library that was installed without the sites' files still serves a site that a module has set.
without_site() {
    if [ -n "$_xr_named" ] || [ -d "$_xr_share/sites" ]; then
        unknown_site
    fi
    explain XCCL_SITE "$_xr_site" "not used: no sites are installed in $_xr_share/sites"
    _xr_site_dir=
}

unknown_site() {
    _xr_known=
    for _xr_site_dir in "$_xr_share"/sites/*/; do
        [ -d "$_xr_site_dir" ] || continue
        _xr_site_dir=${_xr_site_dir%/}
        _xr_known="$_xr_known ${_xr_site_dir##*/}"
    done
    # shellcheck disable=SC2086 # a list of names
    find_near "$_xr_site" $_xr_known
    fail 2 "${_xr_asked}unknown site '$_xr_site'; sites of this installation:${_xr_known:- none ($_xr_share/sites is empty)}$_xr_hint"
}

is_loaded() { # module
    case ":${LOADEDMODULES-}:" in
        *":$1/"* | *":$1:"*) return 0 ;;
    esac
    return 1
}

# The variables that the site wants for a launch over this many nodes.
set_launch_variables() {
    [ -r "$_xr_site_dir/launch.env" ] || return 0
    _xr_reason=
    while read -r _xr_when _xr_module _xr_name _xr_value; do
        case $_xr_when in
            '#') # the reason of the variable below it
                _xr_reason="$_xr_reason $_xr_module $_xr_name $_xr_value"
                case $_xr_reason in *"(the rest of the line)."*) _xr_reason= ;; esac # that was the header
                continue ;;
            any | "$_xr_nodes") ;;
            *) _xr_reason='' && continue ;;
        esac
        case $_xr_name in
            '' | [0-9]* | *[!A-Za-z0-9_]*) continue ;;
        esac
        if [ "$_xr_module" != - ] && is_loaded "$_xr_module"; then
            explain "$_xr_name" "${_xr_value}" "not set here: the module $_xr_module is loaded and decides it"
            _xr_reason='' && continue
        fi
        set_launch_variable "$_xr_name" "$_xr_value"
        _xr_reason=
    done <"$_xr_site_dir/launch.env"
}

set_launch_variable() { # name value
    eval "_xr_theirs=\${$1-} _xr_given=\${$1+yes}"
    _xr_why="site $_xr_site:${_xr_reason:- for ${_xr_nodes:-any number of} node(s)}"
    case $_xr_nodes:$1:$_xr_theirs in
        one:NCCL_NET:'AWS Libfabric' | one:NCCL_NET:OFI | one:NCCL_NET:Libfabric)
            # Where it stands in an environment for all jobs, a job of one node would not start.
            _xr_why="site $_xr_site: '$_xr_theirs' in the environment does not start on one node, where Slingshot gives no network" ;;
        *)
            if [ -n "$_xr_given" ]; then
                explain "$1" "$_xr_theirs" "left as the user set it ($_xr_why would set '$2')"
                return 0
            fi ;;
    esac
    eval "$1=\$2"
    export "${1?}"
    explain "$1" "$2" "$_xr_why"
}

# Sets _xr_wrap if the command is to be started through xccl-bind.
plan_launch() { # command
    _xr_rank=
    if is_rank "${1-}"; then
        _xr_rank=yes
    elif [ -n "$_xr_bind$_xr_gpus$_xr_map$_xr_topology$_xr_report" ] && [ $# -gt 0 ] && [ "$_xr_bind" != off ]; then
        fail 2 "no rank to bind here; put xccl-run behind the launcher: srun -n 8 xccl-run ./app"
    fi
    # In front of a launcher a site does nothing, but the ranks would stop at one that is not there.
    [ -n "$_xr_rank$_xr_site${XCCL_SITE-}" ] || return 0
    find_site
    [ -n "$_xr_rank" ] || return 0
    count_nodes
    [ "${XCCL_ROUTE:-xccl}" != xccl ] || [ -z "$_xr_site_dir" ] || set_launch_variables
    if [ "$_xr_bind" = off ]; then
        explain binding none "--no-bind"
    elif [ -n "${XCCL_LOCAL_DEVICE-}" ] && [ -z "$_xr_bind$_xr_gpus$_xr_map$_xr_report" ]; then
        explain XCCL_LOCAL_DEVICE "$XCCL_LOCAL_DEVICE" "was set before: an outer xccl-run, or the user, has bound this rank"
    elif [ -x "$_xr_prefix/bin/xccl-bind" ]; then
        _xr_wrap=yes
    else
        fail 1 "xccl-bind is missing in $_xr_prefix/bin; install xccl again, or run with --no-bind"
    fi
}

exec_bound() { # command
    [ -n "$_xr_map" ] || [ ! -r "$_xr_site_dir/ranks.map" ] || _xr_map=$_xr_site_dir/ranks.map
    exec "$_xr_prefix/bin/xccl-bind" --preload "$_xr_preload" ${_xr_bind:+--bind "$_xr_bind"} \
        ${_xr_gpus:+--gpus "$_xr_gpus"} ${_xr_site:+--site "$_xr_site"} ${_xr_map:+--map "$_xr_map"} \
        ${_xr_topology:+--topology "$_xr_topology"} ${_xr_report:+--report} ${_xr_explain:+--explain} -- "$@"
}

# Sets _xr_count to how many of these words make one option of Open MPI's mpirun with its values. An option that is not
# known has one, unless another option follows.
count_words() { # option, words behind it
    _xr_count=2
    case $1 in
        --mca | -mca | --gmca | -gmca | --omca | --opalmca | --prtemca | --pmixmca) _xr_count=3 ;;
        --*=*) _xr_count=1 ;;
        --oversubscribe | --nooversubscribe | --allow-run-as-root | --report-bindings | --tag-output | --display-map | \
            --use-hwthread-cpus | --nolocal | --verbose | --quiet | -oversubscribe | -nooversubscribe | \
            -allow-run-as-root | -report-bindings | -tag-output | -display-map | -use-hwthread-cpus | -nolocal | -v | -q)
            _xr_count=1 ;;
        -x) ;;
        *)
            case ${2-} in
                -*) _xr_count=1 ;;
            esac ;;
    esac
    [ "$_xr_count" -le $# ] || _xr_count=$#
}

# Sets _xr_given to the variables that the user hands to all ranks: Open MPI's -x NAME or -x NAME=VALUE. Sets
# _xr_their_list if a list of them stands on the command line.
find_given() { # arguments of the launcher
    _xr_given='' _xr_their_list=''
    while [ $# -gt 0 ]; do
        case $1 in
            :) shift && continue ;;
            -*) ;;
            *) # the program: its arguments are its own; behind a colon another one may follow
                while [ $# -gt 0 ] && [ "$1" != : ]; do
                    shift
                done
                continue ;;
        esac
        _xr_name=${2-}
        _xr_name=${_xr_name%%=*}
        case $1:$_xr_name in
            -x: | -x:[0-9]* | -x:*[!A-Za-z0-9_]*) ;;
            -x:*) _xr_given="$_xr_given $_xr_name" ;;
            *mca:mca_base_env_list) _xr_their_list=yes ;;
        esac
        count_words "$@"
        shift "$_xr_count"
    done
}

# Sets _xr_of_site to the variables of the site and of its routes, as its module or script sets them: keys of "resolved" in
# site.json. Those of other routes are there too, and a module is no variable; both matter only where they are exported.
list_of_site() {
    _xr_of_site='' _xr_resolved=
    [ -n "${_xr_site_dir-}" ] && [ -r "$_xr_site_dir/site.json" ] || return 0
    while read -r _xr_line; do
        case $_xr_resolved$_xr_line in
            '"resolved":'*) _xr_resolved=yes ;;
            yes'"'[A-Z]*'": "'*)
                _xr_line=${_xr_line#?}
                _xr_of_site="$_xr_of_site ${_xr_line%%\"*}" ;;
        esac
    done <"$_xr_site_dir/site.json"
}

# Sets _xr_names to what xccl needs on every host: what xccl-run has set, the user's settings of xccl, and what the modules or
# scripts of site and route have set. Without those a rank elsewhere has half a site and half a route.
list_needed() {
    list_of_site
    _xr_names=LD_PRELOAD
    [ -z "$_xr_sim" ] ||
        _xr_names="$_xr_names LD_LIBRARY_PATH ${CCL_PLUGIN+CCL_PLUGIN} ${MSCCLPP_NCCL_LIB_PATH+MSCCLPP_NCCL_LIB_PATH}"
    while read -r _xr_line; do
        case $_xr_line in
            "export XCCL_"*=* | "declare -x XCCL_"*=* | "typeset -x XCCL_"*=*)
                _xr_name=${_xr_line%%=*}
                _xr_names="$_xr_names ${_xr_name##* }" ;;
            "export "*=* | "declare -x "*=* | "typeset -x "*=*)
                _xr_name=${_xr_line%%=*}
                _xr_name=${_xr_name##* }
                case "$_xr_of_site " in
                    *" $_xr_name "*) _xr_names="$_xr_names $_xr_name" ;;
                esac ;;
        esac
    done <<END
$(export -p)
END
}

# Open MPI hands ranks on other hosts nothing of this environment but what it is told to; others hand on all
# of it. Sets _xr_forward to options for the launcher where the user has such: 4.1 takes no options beside a list.
forward_variables() { # launcher and its arguments
    _xr_forward=
    case ${1##*/} in
        mpirun | mpiexec | mpirun.openmpi | mpiexec.openmpi | orterun | prterun) ;;
        *) return 0 ;;
    esac
    shift
    find_given "$@"
    list_needed
    if [ -n "$_xr_their_list" ]; then
        explain mca_base_env_list "on the command line" "left as it is; ranks on other hosts need these, too: $_xr_names"
        return 0
    fi
    _xr_list=${OMPI_MCA_mca_base_env_list-}
    for _xr_name in $_xr_names; do
        case " $_xr_given :;$_xr_list;" in
            *" $_xr_name "* | *";$_xr_name;"* | *";$_xr_name="*) continue ;;
        esac
        _xr_forward="$_xr_forward -x $_xr_name"
        eval "_xr_value=\${$_xr_name-}"
        _xr_entry=$_xr_name
        # Of a name alone Open MPI takes the value apart at its first =.
        case $_xr_value in
            *';'*) ;;
            *=*) _xr_entry=$_xr_name=$_xr_value ;;
        esac
        _xr_list=$_xr_list${_xr_list:+;}$_xr_entry
    done
    if [ -n "$_xr_given" ] && [ -z "${OMPI_MCA_mca_base_env_list-}" ]; then
        explain "${_xr_forward# }" "" "ranks on other hosts get these variables, too"
        return 0
    fi
    _xr_forward=
    OMPI_MCA_mca_base_env_list=$_xr_list
    export OMPI_MCA_mca_base_env_list
    explain OMPI_MCA_mca_base_env_list "$_xr_list" "Open MPI hands these variables to ranks on other hosts, too"
}
