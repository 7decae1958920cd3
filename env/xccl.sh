# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=sh disable=SC2317,SC2154,SC3044 # functions and variables are shared with the sourced files
# The environment of xccl for sh, dash, bash, zsh and ksh. To be sourced:
#
#   . env/xccl.sh [site] [--route xccl|ucc|ucc-ccl|mpi]    the site is detected when not named
#   . env/xccl.sh off                                      everything as it was before
#   . env/xccl.sh --list | --status | --help               sites and routes; what is on and what it set; this
#   xccl_env ...                                           the same, from then on
#
# dash hands no arguments to a sourced file: there, XCCL_ENV_ARGS has them, and is unset by this file. In a script that
# has arguments of its own, bash, zsh and ksh would hand over those: source it as ". env/xccl.sh --" there.
# One subshell is forked, to see that nothing is read-only; more only if a variable or search path (but PATH) that is to
# be set has a value already. The environment remembers what was there in _XCCL_OLD_<name>, so that a child shell can
# switch off, too.

_xccl_allexport= # IFS and the functions below stay out of the environment
case $- in
*a*) _xccl_allexport=1 && set +a ;;
esac
_xccl_prefix='@prefix@' # filled in at install
_xccl_default_site='@site@'
_xccl_lib='@lib@'

_xccl_error() { echo "xccl: $*" >&2; }

# Where this file lies: bash, zsh and ksh know; elsewhere the prefix of the installation or the working directory.
_xccl_find() {
    _xccl_dir=
    if [ -n "${BASH_VERSION-}" ]; then
        eval '_xccl_dir=${BASH_SOURCE[0]}'
    elif [ -n "${ZSH_VERSION-}" ]; then
        eval '_xccl_dir=${functions_source[_xccl_find]-}'
    else
        case ${KSH_VERSION-} in
        *93*) eval '_xccl_dir=${.sh.file}' ;; # mksh has no such thing
        esac
    fi
    case $_xccl_dir in
    /*/*) _xccl_dir=${_xccl_dir%/*} ;;
    */*) _xccl_dir=$(CDPATH='' cd -- "${_xccl_dir%/*}" >/dev/null && pwd) ;; # without "." and ".."
    ?*) _xccl_dir=$PWD ;;
    esac
    for _xccl_try in "$_xccl_dir" "${_XCCL_ENV_DIR-}" "$_xccl_prefix/share/xccl/env" \
        "${XCCL_ROOT-}/share/xccl/env" "$PWD/env"; do
        if [ -r "$_xccl_try/xccl.sh" ]; then
            _xccl_dir=$_xccl_try
            return 0
        fi
    done
    _xccl_error "this shell does not say where xccl.sh lies: set XCCL_ROOT to the prefix of the installation"
    return 1
}

# The prefix: of the installation this file belongs to, else XCCL_ROOT, else what was built in this checkout.
_xccl_find_root() {
    case $_xccl_dir in
    */share/xccl/env)
        _xccl_root=${_xccl_dir%/share/xccl/env}
        return 0
        ;;
    esac
    _xccl_try=${_xccl_dir%/*}/build
    for _xccl_root in "${XCCL_ROOT-}" "$_xccl_try/release/stage" "$_xccl_try/install/stage" "$_xccl_try/demo/prefix"; do
        [ -z "$_xccl_root" ] || [ ! -d "$_xccl_root/lib" ] || return 0
    done
    _xccl_error "nothing is built beside $_xccl_dir: run make demo, or set XCCL_ROOT to an installation"
    return 1
}

# As xccl-run does. Search paths cannot hold a colon either.
_xccl_check_root() {
    case $_xccl_root in
    *[:\ ]*)
        _xccl_error "LD_PRELOAD cannot hold a path with a colon or a blank: '$_xccl_root'; install elsewhere"
        return 1
        ;;
    esac
}

_xccl_arguments() {
    while [ $# -gt 0 ]; do
        case $1 in
        --) return 0 ;;
        --route)
            [ $# -ge 2 ] || { _xccl_error "--route needs a value: xccl, ucc, ucc-ccl or mpi"; return 1; }
            _xccl_route=$2
            shift
            ;;
        --route=*) _xccl_route=${1#--route=} ;;
        off) _xccl_off=1 ;;
        --list | --status | --help) _xccl_say=${1#--} ;;
        -h) _xccl_say=help ;;
        -*)
            _xccl_error "unknown option '$1'; usage: . xccl.sh [site] [--route xccl|ucc|ucc-ccl|mpi] | off | --list | --status | --help"
            return 1
            ;;
        *)
            [ -z "$_xccl_site" ] || { _xccl_error "one site only: '$_xccl_site' or '$1'?"; return 1; }
            _xccl_site=$1
            ;;
        esac
        shift
    done
}

# The arguments of XCCL_ENV_ARGS. Blanks part them; the shell must not take one for a pattern of files.
_xccl_words() {
    case $XCCL_ENV_ARGS in
    *[*?[]*)
        _xccl_error "XCCL_ENV_ARGS='$XCCL_ENV_ARGS': expected arguments as of xccl_env, such as --help"
        return 1
        ;;
    esac
    # shellcheck disable=SC2086 # to be split
    _xccl_arguments $XCCL_ENV_ARGS
}

# Sets _xccl_hint to a question with the site that begins like a mistyped one, or to nothing.
_xccl_near() {
    _xccl_hint=
    _xccl_stem=$1
    [ ${#1} -le 64 ] || return 0 # no slip is longer
    while [ ${#_xccl_stem} -gt 3 ]; do
        for _xccl_try in $_xccl_sites; do
            case $_xccl_try in
            "$_xccl_stem"*) _xccl_hint="; did you mean '$_xccl_try'?" && return 0 ;;
            esac
        done
        _xccl_stem=${_xccl_stem%?}
    done
}

_xccl_unrecognised() {
    _xccl_error "no site recognised here; name one of: $_xccl_sites (generic-nvidia and generic-amd fit any machine with such GPUs)"
    if [ -n "$_xccl_called" ]; then
        _xccl_error "for example: xccl_env generic-nvidia"
    elif [ -n "${BASH_VERSION-}${ZSH_VERSION-}${KSH_VERSION-}" ]; then
        _xccl_error "for example: . $_xccl_dir/xccl.sh generic-nvidia"
    else
        _xccl_error "this shell hands no arguments to a sourced file: set XCCL_SITE first, as XCCL_SITE=generic-nvidia, or all of them, as XCCL_ENV_ARGS=--help"
    fi
}

# What is asked for: an argument, else the variable, else the site of the installation, else the site detected.
_xccl_request() {
    : "${_xccl_site:=${XCCL_SITE-}}" "${_xccl_route:=${XCCL_ROUTE-}}"
    case $_xccl_default_site in
    @* | '') ;;
    *) : "${_xccl_site:=$_xccl_default_site}" ;;
    esac
    if [ -z "$_xccl_site" ]; then
        # shellcheck source=/dev/null
        . "$_xccl_dir/sites/detect.sh"
        _xccl_detect
        [ -n "$_xccl_site" ] || { _xccl_unrecognised; return 1; }
    fi
    case $_xccl_site in
    detect | *[!A-Za-z0-9._-]*) _xccl_known= ;;
    *) _xccl_known=$_xccl_dir/sites/$_xccl_site.sh ;;
    esac
    if [ -z "$_xccl_known" ] || [ ! -r "$_xccl_known" ]; then
        # shellcheck source=/dev/null
        . "$_xccl_dir/sites/detect.sh"
        _xccl_near "$_xccl_site"
        _xccl_error "unknown site '$_xccl_site'; sites: $_xccl_sites$_xccl_hint"
        if [ "$_xccl_site" = "${XCCL_SITE-}" ]; then
            _xccl_error "XCCL_SITE names it: correct it or unset it"
        elif [ -z "$_xccl_called" ]; then
            _xccl_error "(an argument of your own script? then: . xccl.sh --)"
        fi
        return 1
    fi
}

_xccl_list() {
    # shellcheck source=/dev/null
    . "$_xccl_dir/sites/detect.sh"
    _xccl_site=
    _xccl_detect || :
    echo "sites: $_xccl_sites"
    echo "recognised here: ${_xccl_site:-none}"
    case $_xccl_default_site in
    @* | '') ;;
    *) echo "site of this installation: $_xccl_default_site" ;;
    esac
    echo "routes: xccl ucc ucc-ccl mpi"
}

_xccl_status_text() {
    if [ -z "${_XCCL_ENV_ON-}" ]; then
        echo "xccl is off"
        return
    fi
    echo "xccl is on: site ${_XCCL_ENV_ON% *}, route ${_XCCL_ENV_ON##* }, in $_XCCL_ENV_ROOT"
    _xccl_rest="${_XCCL_ENV_VARS-} "
    while [ -n "$_xccl_rest" ]; do
        _xccl_name=${_xccl_rest%%:*}
        _xccl_rest=${_xccl_rest#* }
        case $_xccl_name in
        *[!A-Za-z0-9_]* | [0-9]* | '' | *PATH) ;;
        *) eval "echo \"  $_xccl_name=\${$_xccl_name-}\"" ;;
        esac
    done
}

_xccl_help() {
    echo "usage: . xccl.sh [site] [--route xccl|ucc|ucc-ccl|mpi]   switch on; the site is detected when not named"
    echo "       . xccl.sh off                                     everything as it was before"
    echo "       . xccl.sh --list | --status | --help              sites and routes; what is on and what it set; this"
    echo "       xccl_env ...                                      the same, while it is on"
    echo "       XCCL_ENV_ARGS='...'; . xccl.sh                    the same in dash, which hands a sourced file no arguments"
}

_xccl_without() { # true where module $1 is not loaded
    case ":${LOADEDMODULES-}:" in
    *":$1/"* | *":$1:"*) return 1 ;;
    esac
}

# Sets _xccl_exported to the names of the environment, each between blanks: values may hold anything, also such a name.
_xccl_list_exported() {
    while read -r _xccl_line; do
        _xccl_line=${_xccl_line%%=*}
        case $_xccl_line in
        "export "* | "declare -"* | "typeset -"*) _xccl_exported="$_xccl_exported ${_xccl_line##* }" ;;
        esac
    done <<EOF
$(export -p)
EOF
    _xccl_exported="$_xccl_exported "
}

_xccl_is_exported() {
    [ -n "$_xccl_exported" ] || _xccl_list_exported
    case $_xccl_exported in
    *" $1 "*) return 0 ;;
    esac
    return 1
}

# Remember how variable $1 is: u unset, e in the environment, l set in this shell only.
_xccl_remember() {
    eval "_xccl_kind=\${$1+set}"
    if [ -z "$_xccl_kind" ]; then
        _xccl_kind=u
    else
        _xccl_kind=l
        ! _xccl_is_exported "$1" || _xccl_kind=e
        eval "_XCCL_OLD_$1=\$$1"
        export "_XCCL_OLD_${1?}"
    fi
    _XCCL_ENV_VARS="${_XCCL_ENV_VARS-}$1:$_xccl_kind "
    export _XCCL_ENV_VARS
}

_xccl_set() { # name value
    [ -z "$_xccl_planning" ] || { _xccl_names="$_xccl_names $1"; return 0; }
    _xccl_remember "$1"
    eval "$1=\$2"
    export "${1?}"
}

# Put folder $2 in front of the search path $1, unless it is there; E, U, L as e, u, l above.
_xccl_path() {
    eval "_xccl_old=\${$1-}"
    case ":$_xccl_old:" in
    *":$2:"*) return 0 ;;
    esac
    eval "_xccl_kind=\${$1+set}"
    if [ -z "$_xccl_kind" ]; then
        _xccl_kind=U
    else
        _xccl_kind=E
        [ "$1" = PATH ] || _xccl_is_exported "$1" || _xccl_kind=L
    fi
    _XCCL_ENV_VARS="${_XCCL_ENV_VARS-}$1:$_xccl_kind "
    export _XCCL_ENV_VARS
    eval "$1=\$2\${_xccl_old:+:\$_xccl_old}"
    export "${1?}"
}

# Folder that search path $1 gets below prefix $2.
_xccl_folder() {
    case $1 in
    PATH) _xccl_entry=$2/bin ;;
    LD_LIBRARY_PATH) _xccl_entry=$2/$_xccl_lib ;;
    MANPATH) _xccl_entry=$2/share/man ;;
    PKG_CONFIG_PATH) _xccl_entry=$2/$_xccl_lib/pkgconfig ;;
    CMAKE_PREFIX_PATH) _xccl_entry=$2 ;;
    esac
}

_xccl_unpath() { # name kind: take our folder out of a search path, wherever others have moved it
    _xccl_folder "$1" "$_XCCL_ENV_ROOT"
    eval "_xccl_old=\${$1-}"
    case $_xccl_old in
    "$_xccl_entry") _xccl_old= ;;
    "$_xccl_entry:"*) _xccl_old=${_xccl_old#"$_xccl_entry:"} ;;
    *":$_xccl_entry:"*) _xccl_old=${_xccl_old%%":$_xccl_entry:"*}:${_xccl_old#*":$_xccl_entry:"} ;;
    *":$_xccl_entry") _xccl_old=${_xccl_old%":$_xccl_entry"} ;;
    esac
    if [ -z "$_xccl_old" ] && [ "$2" = U ]; then
        unset "$1"
    else
        [ "$2" != L ] || unset "$1"
        eval "$1=\$_xccl_old"
    fi
}

_xccl_restore() {
    _xccl_rest="${_XCCL_ENV_VARS-} " # ends in a blank, whatever others made of it
    while [ -n "$_xccl_rest" ]; do
        _xccl_item=${_xccl_rest%% *}
        _xccl_rest=${_xccl_rest#* }
        _xccl_name=${_xccl_item%:*}
        _xccl_kind=${_xccl_item##*:}
        case $_xccl_name in
        *[!A-Za-z0-9_]* | [0-9]* | '') continue ;;
        esac
        case $_xccl_kind in
        u) unset "$_xccl_name" ;;
        [ELU]) _xccl_unpath "$_xccl_name" "$_xccl_kind" ;;
        *)
            eval "_xccl_old=\${_XCCL_OLD_$_xccl_name-}"
            [ "$_xccl_kind" = e ] || unset "$_xccl_name"
            eval "$_xccl_name=\$_xccl_old"
            unset "_XCCL_OLD_$_xccl_name"
            ;;
        esac
    done
    unset _XCCL_ENV_VARS _XCCL_ENV_ON _XCCL_ENV_ROOT _XCCL_ENV_DIR
}

# Said before anything changes: halfway, the names and the settings of two sites would be mixed. Looks at what is to be
# set, in _xccl_names, and at what is on and will be restored.
_xccl_check_writable() {
    for _xccl_item in ${_XCCL_ENV_VARS-}; do
        case ${_xccl_item%:*} in
        *[!A-Za-z0-9_]* | [0-9]* | '') ;;
        *) _xccl_names="$_xccl_names ${_xccl_item%:*}" ;;
        esac
    done
    _xccl_item=
    for _xccl_name in $_xccl_names; do
        _xccl_item="$_xccl_item $_xccl_name="
    done
    ! (eval "$_xccl_item") 2>/dev/null || return 0
    for _xccl_name in $_xccl_names; do
        if ! (eval "$_xccl_name=") 2>/dev/null; then
            _xccl_error "$_xccl_name is read-only in this shell; start another one, where it is not"
            return 1
        fi
    done
}

# The search paths that get a folder. man looks beside PATH by itself, unless MANPATH is set and has no empty part that
# stands for that search.
_xccl_list_searched() {
    _xccl_searched="PATH LD_LIBRARY_PATH PKG_CONFIG_PATH CMAKE_PREFIX_PATH"
    case ":${MANPATH-}:" in
    *::*) ;;
    *) _xccl_searched="$_xccl_searched MANPATH" ;;
    esac
}

# Called by the file of the site once it has accepted the route: from here on the environment changes, unless the file
# is only asked for the names of what it sets.
_xccl_begin() {
    if [ -n "$_xccl_planning" ]; then
        _xccl_list_searched
        _xccl_names="XCCL_ROOT XCCL_SITE XCCL_ROUTE $_xccl_searched"
        return 0
    fi
    [ -z "${_XCCL_ENV_ON-}" ] || _xccl_restore
    _xccl_exported=
    export _XCCL_ENV_ON="$_xccl_site $_xccl_route" _XCCL_ENV_ROOT="$_xccl_root" _XCCL_ENV_DIR="$_xccl_dir"
    _xccl_set XCCL_ROOT "$_xccl_root"
    _xccl_set XCCL_SITE "$_xccl_site"
    _xccl_set XCCL_ROUTE "$_xccl_route"
    _xccl_list_searched
    for _xccl_name in $_xccl_searched; do
        _xccl_folder "$_xccl_name" "$_xccl_root"
        _xccl_path "$_xccl_name" "$_xccl_entry"
    done
}

# Started as a program it would change a shell that ends at once: it ends here.
_xccl_check_sourced() {
    _xccl_try=${ZSH_EVAL_CONTEXT-$0}
    [ -z "${BASH_VERSION-}" ] || eval '_xccl_try=${BASH_SOURCE[0]#"$0"}' # nothing is left of the same file
    case ${BASH_VERSION+bash}${ZSH_VERSION+zsh}:$_xccl_try in
    zsh:*:file*) return 0 ;;
    bash: | zsh:toplevel:* | :*env/xccl.sh | :*env/xccl.ksh) ;;
    *) return 0 ;;
    esac
    _xccl_error "this changes the shell that sources it: . xccl.sh (with a dot in front)"
    exit 1
}

_xccl_main() {
    [ -z "${ZSH_VERSION-}" ] || emulate -L sh
    _xccl_site='' _xccl_route='' _xccl_off='' _xccl_say='' _xccl_refused='' _xccl_names='' IFS=' '
    case $_xccl_lib in
    @*) _xccl_lib=lib ;;
    esac
    if [ -z "$_xccl_called" ] && [ -n "${XCCL_ENV_ARGS-}" ]; then
        _xccl_words || return 1
    elif [ -n "$_xccl_called" ] || [ -n "${BASH_VERSION-}${ZSH_VERSION-}${KSH_VERSION-}" ]; then
        _xccl_arguments "$@" || return 1
    fi
    case $_xccl_say in
    list) _xccl_find && _xccl_list; return ;;
    status) _xccl_status_text; return ;;
    help) _xccl_help; return ;;
    esac
    if [ -n "$_xccl_off" ]; then
        [ -n "${_XCCL_ENV_ON-}" ] || return 0
        _xccl_check_writable && _xccl_restore
        return
    fi
    _xccl_check_sourced && _xccl_find && _xccl_request && _xccl_find_root && _xccl_check_root || return 1
    : "${_xccl_route:=xccl}"
    [ "${_XCCL_ENV_ON-}|${_XCCL_ENV_ROOT-}" != "$_xccl_site $_xccl_route|$_xccl_root" ] || return 0
    for _xccl_planning in 1 ''; do
        # shellcheck source=/dev/null
        . "$_xccl_known" || { _xccl_error "route '$_xccl_route' on site '$_xccl_site': $_xccl_refused"; return 1; }
        [ -z "$_xccl_planning" ] || _xccl_check_writable || return 1
    done
}

# What is only needed while this file runs goes again; while switched on, the function xccl_env stays.
_xccl_leave() {
    if [ -n "${_XCCL_ENV_ON-}" ]; then
        xccl_env() {
            _xccl_called=1
            # shellcheck source=/dev/null
            . "$_XCCL_ENV_DIR/xccl.sh"
        }
    else
        unset -f xccl_env 2>/dev/null || :
    fi
    unset _xccl_prefix _xccl_default_site _xccl_lib _xccl_dir _xccl_root _xccl_site _xccl_route _xccl_off _xccl_say _xccl_refused _xccl_try \
        _xccl_known _xccl_kind _xccl_old _xccl_entry _xccl_rest _xccl_item _xccl_name _xccl_exported _xccl_line _xccl_sites _xccl_called \
        _xccl_hint _xccl_stem _xccl_names _xccl_searched _xccl_planning XCCL_ENV_ARGS
    unset -f _xccl_error _xccl_find _xccl_find_root _xccl_check_root _xccl_arguments _xccl_words _xccl_request _xccl_unrecognised _xccl_near _xccl_without _xccl_list_exported _xccl_is_exported _xccl_remember _xccl_set \
        _xccl_path _xccl_folder _xccl_unpath _xccl_restore _xccl_begin _xccl_main _xccl_check_sourced _xccl_check_writable _xccl_list_searched _xccl_detect _xccl_leave \
        _xccl_list _xccl_status_text _xccl_help 2>/dev/null || :
}

_xccl_called=${_xccl_called-}
_xccl_ifs=${IFS-unset}
_xccl_nocase= # bash only: patterns below tell E from e
if [ -n "${BASH_VERSION-}" ] && shopt -q nocasematch; then
    _xccl_nocase=1
    shopt -u nocasematch
fi
if _xccl_main "$@"; then
    _xccl_status=0
else
    _xccl_status=1
fi
IFS=$_xccl_ifs
[ "$_xccl_ifs" != unset ] || unset IFS
[ -z "$_xccl_nocase" ] || shopt -s nocasematch
_xccl_leave
[ -z "$_xccl_allexport" ] || set -a
unset _xccl_ifs _xccl_nocase _xccl_allexport
if [ "$_xccl_status" = 0 ]; then
    unset _xccl_status
else
    unset _xccl_status
    return 1
fi
