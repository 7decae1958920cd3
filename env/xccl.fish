# SPDX-License-Identifier: BSD-3-Clause
# The environment of xccl for fish; see env/xccl.sh, with which it shares the state it keeps.
#
#   source env/xccl.fish [site] [--route xccl|ucc|ucc-ccl|mpi]
#   source env/xccl.fish off
#   source env/xccl.fish --list | --status | --help              sites and routes; what is on and what it set; this
#   xccl_env ...                                                 the same, from then on

function _xccl_error
    echo "xccl: $argv" >&2
end

function _xccl_without # true where module $argv[1] is not loaded
    not string match -qr "(^|:)"(string escape --style=regex -- $argv[1])"(/|:|\$)" -- "$LOADEDMODULES"
end

# Remember how a variable is: u unset, e in the environment, l set in this shell only; then set it.
function _xccl_set -a name value
    test -z "$_xccl_refused"; or return # fish's return leaves the caller of a sourced file, too
    if not set -q $name
        set -gx _XCCL_ENV_VARS "$_XCCL_ENV_VARS$name:u "
    else
        set -l kind l
        set -qx $name; and set kind e
        set -gx _XCCL_OLD_$name "$$name"
        set -gx _XCCL_ENV_VARS "$_XCCL_ENV_VARS$name:$kind "
    end
    set -gx $name $value
end

function _xccl_folder -a name root
    set -l lib '@lib@' # filled in at install
    string match -q '@*' -- $lib; and set lib lib
    switch $name
        case PATH
            echo $root/bin
        case LD_LIBRARY_PATH
            echo $root/$lib
        case MANPATH
            echo $root/share/man
        case PKG_CONFIG_PATH
            echo $root/$lib/pkgconfig
        case CMAKE_PREFIX_PATH
            echo $root
    end
end

# Put a folder in front of a search path, unless it is there (fish makes a list of every variable named *PATH).
function _xccl_path -a name entry
    contains -- $entry $$name; and return
    set -l kind U
    set -q $name; and set kind L
    set -qx $name; and set kind E
    set -gx _XCCL_ENV_VARS "$_XCCL_ENV_VARS$name:$kind "
    if test -z "$$name"
        set -gx --path $name $entry
    else
        set -gx --path $name $entry $$name
    end
end

# Set a variable back, unless the user's universal one of that value comes to light without it.
function _xccl_give_back -a flags name
    set -l value $argv[3..-1]
    set -eg $name
    if not set (string replace -- -g -qU $flags) $name
        or test (string join : -- "" $$name) != (string join : -- "" $value)
        set $flags $name $value
    end
end

function _xccl_unpath -a name kind
    set -l entry (_xccl_folder $name $_XCCL_ENV_ROOT)
    if set -l at (contains -i -- $entry $$name)
        set -e $name\[$at\]
    end
    if test -z "$$name" -a $kind = U
        set -e $name
    else if test $kind = L
        set -l value $$name
        set -e $name
        set -g --path $name $value
    else
        _xccl_give_back -gx $name $$name
    end
end

function _xccl_restore
    for item in (string split -n ' ' -- $_XCCL_ENV_VARS)
        set -l part (string split : -- $item)
        set -l name $part[1]
        set -l old _XCCL_OLD_$name
        string match -qr '^[A-Za-z_][A-Za-z0-9_]*$' -- $name; or continue
        switch $part[2]
            case u
                set -e $name
            case E L U
                _xccl_unpath $name $part[2]
            case l
                set -e $name
                _xccl_give_back -g $name $$old
                set -e $old
            case '*'
                _xccl_give_back -gx $name $$old
                set -e $old
        end
    end
    set -e _XCCL_ENV_VARS _XCCL_ENV_ON _XCCL_ENV_ROOT _XCCL_ENV_DIR
end

# Called by the file of the site once it has accepted the route: from here on the environment changes.
function _xccl_begin
    set -q _XCCL_ENV_ON; and _xccl_restore
    set -gx _XCCL_ENV_ON "$_xccl_site $_xccl_route"
    set -gx _XCCL_ENV_ROOT $_xccl_root
    set -gx _XCCL_ENV_DIR $_xccl_dir
    set -gx _XCCL_ENV_VARS
    _xccl_set XCCL_ROOT $_xccl_root
    _xccl_set XCCL_SITE $_xccl_site
    _xccl_set XCCL_ROUTE $_xccl_route
    set -l paths PATH LD_LIBRARY_PATH PKG_CONFIG_PATH CMAKE_PREFIX_PATH
    # man looks beside PATH by itself, unless MANPATH is set and has no empty part that stands for that search
    string match -q '*::*' ":$MANPATH:"; or set -a paths MANPATH
    for name in $paths
        _xccl_path $name (_xccl_folder $name $_xccl_root)
    end
end

function _xccl_arguments
    while set -q argv[1]
        switch $argv[1]
            case --
                return
            case --route
                if not set -q argv[2]
                    _xccl_error "--route needs a value: xccl, ucc, ucc-ccl or mpi"
                    return 1
                end
                set -g _xccl_route $argv[2]
                set -e argv[1]
            case '--route=*'
                set -g _xccl_route (string replace -- --route= '' $argv[1])
            case off
                set -g _xccl_off 1
            case --list --status --help -h
                set -g _xccl_say $argv[1]
            case '-*'
                _xccl_error "unknown option '$argv[1]'; usage: source xccl.fish [site] [--route xccl|ucc|ucc-ccl|mpi] | off | --list | --status | --help"
                return 1
            case '*'
                if set -q _xccl_site
                    _xccl_error "one site only: '$_xccl_site' or '$argv[1]'?"
                    return 1
                end
                set -g _xccl_site $argv[1]
        end
        set -e argv[1]
    end
end

# A question with the site that begins like a mistyped one, or nothing.
function _xccl_near -a stem
    if test (string length -- $stem) -gt 64 # no slip is longer
        echo
        return
    end
    while test (string length -- $stem) -gt 3
        for site in (string split ' ' -- $_xccl_sites)
            if test (string sub -l (string length -- $stem) -- $site) = $stem
                echo "; did you mean '$site'?"
                return
            end
        end
        set stem (string sub -l (math (string length -- $stem) - 1) -- $stem)
    end
    echo
end

# What is asked for: an argument, else the variable, else the site of the installation, else the site detected.
function _xccl_request
    set -l default_site '@site@' # filled in at install
    test -n "$_xccl_site"; or set -g _xccl_site "$XCCL_SITE"
    test -n "$_xccl_route"; or set -g _xccl_route "$XCCL_ROUTE"
    test -n "$_xccl_route"; or set -g _xccl_route xccl
    if test -z "$_xccl_site"; and not string match -q '@*' -- $default_site
        set -g _xccl_site $default_site
    end
    source $_xccl_dir/sites/detect.fish
    if test -z "$_xccl_site"
        _xccl_detect
        if test -z "$_xccl_site"
            _xccl_error "no site recognised here; name one of: $_xccl_sites (generic-nvidia and generic-amd fit any machine with such GPUs); for example: source xccl.fish generic-nvidia"
            return 1
        end
    end
    set -l file $_xccl_dir/sites/(string replace -a / . -- $_xccl_site).fish
    if test $_xccl_site = detect; or not test -r $file
        _xccl_error "unknown site '$_xccl_site'; sites: $_xccl_sites"(_xccl_near $_xccl_site)
        if test "$_xccl_site" = "$XCCL_SITE"
            _xccl_error "XCCL_SITE names it: correct it or unset it"
        end
        return 1
    end
end

function _xccl_find_root
    if string match -q '*/share/xccl/env' -- $_xccl_dir
        set -g _xccl_root (string replace -r '/share/xccl/env$' '' -- $_xccl_dir)
        return
    end
    set -l checkout (string replace -r "/[^/]*\$" "" -- $_xccl_dir)
    for root in $XCCL_ROOT $checkout/build/{release/stage,install/stage,demo/prefix}
        if test -d $root/lib
            set -g _xccl_root $root
            return
        end
    end
    _xccl_error "nothing is built beside $_xccl_dir: run make demo, or set XCCL_ROOT to an installation"
    return 1
end

# As xccl-run does. Search paths cannot hold a colon either.
function _xccl_check_root
    string match -qr '[: ]' -- $_xccl_root; or return 0
    _xccl_error "LD_PRELOAD cannot hold a path with a colon or a blank: '$_xccl_root'; install elsewhere"
    return 1
end

function _xccl_tell
    switch $_xccl_say
        case --list
            source $_xccl_dir/sites/detect.fish
            set -e _xccl_site
            _xccl_detect
            echo "sites: $_xccl_sites"
            echo "recognised here: "(test -n "$_xccl_site"; and echo $_xccl_site; or echo none)
            set -l default_site '@site@' # filled in at install
            string match -q '@*' -- $default_site; or test -z "$default_site"; or echo "site of this installation: $default_site"
            echo "routes: xccl ucc ucc-ccl mpi"
        case --status
            if not set -q _XCCL_ENV_ON
                echo "xccl is off"
                return
            end
            set -l on (string split ' ' -- $_XCCL_ENV_ON)
            echo "xccl is on: site $on[1], route $on[2], in $_XCCL_ENV_ROOT"
            for item in (string split -n ' ' -- $_XCCL_ENV_VARS)
                set -l name (string split : -- $item)[1]
                string match -q '*PATH' -- $name; or echo "  $name=$$name"
            end
        case '*'
            echo "usage: source xccl.fish [site] [--route xccl|ucc|ucc-ccl|mpi]   switch on; the site is detected when not named"
            echo "       source xccl.fish off                                     everything as it was before"
            echo "       source xccl.fish --list | --status | --help              sites and routes; what is on and what it set; this"
            echo "       xccl_env ...                                             the same, while it is on"
    end
end

function _xccl_main
    _xccl_arguments $argv; or return 1
    if set -q _xccl_say
        _xccl_tell
        return 0
    end
    if set -q _xccl_off
        set -q _XCCL_ENV_ON; and _xccl_restore
        return 0
    end
    _xccl_request; and _xccl_find_root; and _xccl_check_root; or return 1
    if test "$_XCCL_ENV_ON|$_XCCL_ENV_ROOT" = "$_xccl_site $_xccl_route|$_xccl_root"
        return 0
    end
    set -g _xccl_refused
    source $_xccl_dir/sites/$_xccl_site.fish
    if test -n "$_xccl_refused"
        _xccl_error "route '$_xccl_route' on site '$_xccl_site': $_xccl_refused"
        return 1
    end
end

# What is only needed while this file runs goes again; while switched on, the function xccl_env stays.
function _xccl_leave -a result
    functions -e _xccl_error _xccl_without _xccl_set _xccl_folder _xccl_path _xccl_unpath _xccl_restore _xccl_begin _xccl_give_back
    functions -e _xccl_arguments _xccl_request _xccl_find_root _xccl_check_root _xccl_main _xccl_detect _xccl_leave _xccl_tell _xccl_near
    set -e _xccl_dir _xccl_root _xccl_site _xccl_route _xccl_off _xccl_say _xccl_refused _xccl_sites
    if set -q _XCCL_ENV_ON
        function xccl_env -d "Change or switch off the environment of xccl"
            source $_XCCL_ENV_DIR/xccl.fish $argv
        end
    else
        functions -q xccl_env; and functions -e xccl_env
    end
    return $result
end

set -g _xccl_dir (string replace -r "/?[^/]*\$" "" -- (status filename))
string match -q '/*' -- $_xccl_dir; or set -g _xccl_dir $PWD/$_xccl_dir
_xccl_main $argv
_xccl_leave $status
