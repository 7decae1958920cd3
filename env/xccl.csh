# SPDX-License-Identifier: BSD-3-Clause
# The environment of xccl for csh and tcsh; see env/xccl.sh, with which it shares the state it keeps.
#
#   source env/xccl.csh [site] [--route xccl|ucc|ucc-ccl|mpi]
#   source env/xccl.csh off
#   source env/xccl.csh --list | --status | --help              sites and routes; what is on and what it set; this
#   xccl_env ...                                                the same, from then on
#
# csh does not tell a script where a sourced file lies: set XCCL_ROOT first where the installation was moved. In a script
# that has arguments of its own, source it as "source env/xccl.csh --". The message of a failure stays in $xccl_error.

set _xccl_last = ($_:q)
set _xccl_argv = ($argv:q)
set _xccl_prefix = '@prefix@' # filled in at install
set _xccl_default_site = '@site@'
set _xccl_lib = '@lib@'
if ("$_xccl_lib" =~ @*) set _xccl_lib = lib
set _xccl_error = ""
set _xccl_site = ""
set _xccl_route = ""
set _xccl_off = 0
set _xccl_say = ""
set _xccl_restore = 0
set _xccl_begin = 0
set _xccl_refused = ""
set _xccl_names = ()
set _xccl_values = ()

# Arguments
@ _xccl_i = 1
while ($_xccl_i <= $#_xccl_argv)
    switch ($_xccl_argv[$_xccl_i]:q)
    case --:
        @ _xccl_i = $#_xccl_argv
        breaksw
    case --route:
        @ _xccl_i++
        if ($_xccl_i > $#_xccl_argv) then
            set _xccl_error = "--route needs a value: xccl, ucc, ucc-ccl or mpi"
        else
            set _xccl_route = $_xccl_argv[$_xccl_i]:q
        endif
        breaksw
    case --route=*:
        set _xccl_route = $_xccl_argv[$_xccl_i]:q:s/--route=//
        breaksw
    case off:
        set _xccl_off = 1
        breaksw
    case --list:
    case --status:
    case --help:
    case -h:
        set _xccl_say = $_xccl_argv[$_xccl_i]:q
        breaksw
    case -*:
        set _xccl_error = "unknown option '$_xccl_argv[$_xccl_i]'; usage: source xccl.csh [site] [--route xccl|ucc|ucc-ccl|mpi] | off | --list | --status | --help"
        breaksw
    default:
        if ("$_xccl_site" != "") then
            set _xccl_error = "one site only: '$_xccl_site' or '$_xccl_argv[$_xccl_i]'?"
        endif
        set _xccl_site = $_xccl_argv[$_xccl_i]:q
    endsw
    @ _xccl_i++
end

# Where this file lies
set _xccl_dir = ""
if ("$_xccl_error" == "" && ! $_xccl_off) then
    set _xccl_tries = ()
    if ($?_XCCL_ENV_DIR) then
        set _xccl_tries = ($_XCCL_ENV_DIR:q)
    endif
    if ($#_xccl_last >= 2) then
        set _xccl_word = $_xccl_last[2]:q
        if ("$_xccl_word" =~ */*) then
            if ("$_xccl_word" !~ /*) set _xccl_word = "${cwd}/$_xccl_word"
            set _xccl_tries = ($_xccl_tries:q $_xccl_word:h:q)
        endif
    endif
    set _xccl_tries = ($_xccl_tries:q "$_xccl_prefix/share/xccl/env")
    if ($?XCCL_ROOT) then
        set _xccl_tries = ($_xccl_tries:q "$XCCL_ROOT/share/xccl/env")
    endif
    set _xccl_tries = ($_xccl_tries:q "$cwd/env")
    foreach _xccl_try ($_xccl_tries:q)
        if ("$_xccl_dir" == "" && -r "$_xccl_try/xccl.csh") set _xccl_dir = $_xccl_try:q
    end
    if ("$_xccl_dir" == "") set _xccl_error = "csh does not say where xccl.csh lies: set XCCL_ROOT to the prefix of the installation"
endif

# What is only said; nothing else is done then
if ("$_xccl_error" == "" && "$_xccl_say" != "") then
    switch ($_xccl_say:q)
    case --list:
        set _xccl_site = ""
        source "$_xccl_dir/sites/detect.csh"
        echo "sites: $_xccl_sites"
        if ("$_xccl_site" == "") set _xccl_site = none
        echo "recognised here: $_xccl_site"
        if ("$_xccl_default_site" != "" && "$_xccl_default_site" !~ @*) echo "site of this installation: $_xccl_default_site"
        echo "routes: xccl ucc ucc-ccl mpi"
        breaksw
    case --status:
        if ($?_XCCL_ENV_ON) then
            set _xccl_on = ($_XCCL_ENV_ON)
            echo "xccl is on: site $_xccl_on[1], route $_xccl_on[2], in $_XCCL_ENV_ROOT"
            foreach _xccl_item ($_XCCL_ENV_VARS)
                set _xccl_name = $_xccl_item:s,:,/,
                set _xccl_name = $_xccl_name:h
                if ($_xccl_name !~ *PATH) eval 'echo "  '$_xccl_name'=$'$_xccl_name'"'
            end
        else
            echo "xccl is off"
        endif
        breaksw
    default:
        echo "usage: source xccl.csh [site] [--route xccl|ucc|ucc-ccl|mpi]   switch on; the site is detected when not named"
        echo "       source xccl.csh off                                     everything as it was before"
        echo "       source xccl.csh --list | --status | --help              sites and routes; what is on and what it set; this"
        echo "       xccl_env ...                                            the same, while it is on"
    endsw
endif

# What is asked for
if ("$_xccl_say" == "" && "$_xccl_error" == "" && ! $_xccl_off) then
    if ("$_xccl_site" == "" && $?XCCL_SITE) then
        set _xccl_site = $XCCL_SITE:q
    endif
    if ("$_xccl_route" == "" && $?XCCL_ROUTE) then
        set _xccl_route = $XCCL_ROUTE:q
    endif
    if ("$_xccl_route" == "") set _xccl_route = xccl
    if ("$_xccl_site" == "" && "$_xccl_default_site" !~ @*) set _xccl_site = $_xccl_default_site:q
    set _xccl_sites = ""
    if ("$_xccl_site" == "") then
        source "$_xccl_dir/sites/detect.csh"
        if ("$_xccl_site" == "") set _xccl_error = "no site recognised here; name one of: $_xccl_sites (generic-nvidia and generic-amd fit any machine with such GPUs); for example: source xccl.csh generic-nvidia"
    endif
    if ("$_xccl_error" == "") then
        if ("$_xccl_site" =~ */* || "$_xccl_site" == detect || ! -r "$_xccl_dir/sites/$_xccl_site.csh") then
            set _xccl_wanted = $_xccl_site:q
            source "$_xccl_dir/sites/detect.csh"
            set _xccl_error = "unknown site '$_xccl_wanted'; sites: $_xccl_sites"
            set _xccl_try = `echo $_xccl_wanted:q $_xccl_sites | awk '{ for (n = length($1); n > 3; n--) for (i = 2; i <= NF; i++) if (index($i, substr($1, 1, n)) == 1) { print $i; exit } }'`
            if ("$_xccl_try" != "") set _xccl_error = "$_xccl_error; did you mean '$_xccl_try'?"
            if ($?XCCL_SITE) then
                if ("$XCCL_SITE" == "$_xccl_wanted") set _xccl_error = "$_xccl_error; XCCL_SITE names it: correct it or unset it"
            endif
        endif
    endif
endif

# The prefix of the installation
set _xccl_root = ""
if ("$_xccl_say" == "" && "$_xccl_error" == "" && ! $_xccl_off) then
    if ("$_xccl_dir" =~ */share/xccl/env) then
        set _xccl_root = "$_xccl_dir:h"
        set _xccl_root = "$_xccl_root:h"
        set _xccl_root = "$_xccl_root:h"
    else
        if ($?XCCL_ROOT) then
            if (-d "$XCCL_ROOT/lib") set _xccl_root = $XCCL_ROOT:q
        endif
        foreach _xccl_try (release/stage install/stage demo/prefix)
            if ("$_xccl_root" == "" && -d "$_xccl_dir:h/build/$_xccl_try/lib") set _xccl_root = "$_xccl_dir:h/build/$_xccl_try"
        end
        if ("$_xccl_root" == "") set _xccl_error = "nothing is built beside ${_xccl_dir}: run make demo, or set XCCL_ROOT to an installation"
    endif
    # as xccl-run does; search paths cannot hold a colon either
    if ("$_xccl_root" =~ *[:\ ]*) set _xccl_error = "LD_PRELOAD cannot hold a path with a colon or a blank: '$_xccl_root'; install elsewhere"
endif

# What the site sets on this route
if ("$_xccl_say" == "" && "$_xccl_error" == "" && ! $_xccl_off) then
    set _xccl_begin = 1
    if ($?_XCCL_ENV_ON) then
        if ("$_XCCL_ENV_ON|$_XCCL_ENV_ROOT" == "$_xccl_site $_xccl_route|$_xccl_root") set _xccl_begin = 0
    endif
    if ($_xccl_begin) then
        source "$_xccl_dir/sites/$_xccl_site.csh"
        if ("$_xccl_refused" != "") then
            set _xccl_error = "route '$_xccl_route' on site '$_xccl_site': $_xccl_refused"
            set _xccl_begin = 0
        endif
    endif
endif

# Back to what was there before
if ("$_xccl_say" == "" && "$_xccl_error" == "" && ($_xccl_off || $_xccl_begin) && $?_XCCL_ENV_ON) then
    set _xccl_restore = 1
endif
if ($_xccl_restore) then
    foreach _xccl_item ($_XCCL_ENV_VARS)
        set _xccl_item = $_xccl_item:s,:,/,
        set _xccl_name = $_xccl_item:h
        set _xccl_kind = $_xccl_item:t
        switch ($_xccl_kind)
        case u:
            unsetenv $_xccl_name
            breaksw
        case [ELU]:
            set _xccl_entry = "$_XCCL_ENV_ROOT"
            if ($_xccl_name == PATH) set _xccl_entry = "$_XCCL_ENV_ROOT/bin"
            if ($_xccl_name == LD_LIBRARY_PATH) set _xccl_entry = "$_XCCL_ENV_ROOT/$_xccl_lib"
            if ($_xccl_name == MANPATH) set _xccl_entry = "$_XCCL_ENV_ROOT/share/man"
            if ($_xccl_name == PKG_CONFIG_PATH) set _xccl_entry = "$_XCCL_ENV_ROOT/$_xccl_lib/pkgconfig"
            set _xccl_old = ""
            eval 'set _xccl_is = $?'$_xccl_name
            if ($_xccl_is) eval 'set _xccl_old = $'$_xccl_name':q'
            if ("$_xccl_old" == "$_xccl_entry") then
                set _xccl_old = ""
            else if ("$_xccl_old" =~ "${_xccl_entry}:"*) then
                eval 'set _xccl_old = "$_xccl_old:s|'"$_xccl_entry"':||"'
            else
                # others put something in front: rare enough to let sed do it
                set _xccl_old = "`echo $_xccl_old:q | sed -e 's|:${_xccl_entry}:|:|' -e 's|:${_xccl_entry}"'$'"||'`"
            endif
            if (("$_xccl_old" == "" && $_xccl_kind == U) || $_xccl_kind == L) then
                unsetenv $_xccl_name
            else
                setenv $_xccl_name "$_xccl_old"
            endif
            breaksw
        case l:
            unsetenv $_xccl_name
            unsetenv _XCCL_OLD_$_xccl_name
            breaksw
        default:
            eval 'setenv '$_xccl_name' $_XCCL_OLD_'$_xccl_name':q'
            unsetenv _XCCL_OLD_$_xccl_name
        endsw
    end
    unsetenv _XCCL_ENV_VARS
    unsetenv _XCCL_ENV_ON
    unsetenv _XCCL_ENV_ROOT
    unsetenv _XCCL_ENV_DIR
    unalias xccl_env
endif

# Set it, remembering what was there: u unset, e set; U and E for search paths (sh: l, L, not exported)
if ($_xccl_begin) then
    setenv _XCCL_ENV_ON "$_xccl_site $_xccl_route"
    setenv _XCCL_ENV_ROOT "$_xccl_root"
    setenv _XCCL_ENV_DIR "$_xccl_dir"
    set _xccl_state = ""
    set _xccl_names = (XCCL_ROOT XCCL_SITE XCCL_ROUTE $_xccl_names)
    set _xccl_values = ("=$_xccl_root" "=$_xccl_site" "=$_xccl_route" $_xccl_values:q)
    @ _xccl_i = 1
    while ($_xccl_i <= 3)
        set _xccl_name = $_xccl_names[$_xccl_i]
        source "$_xccl_dir/xccl-set.csh"
        @ _xccl_i++
    end
    set _xccl_paths = (PATH LD_LIBRARY_PATH PKG_CONFIG_PATH CMAKE_PREFIX_PATH)
    if ($?MANPATH) then
        # man looks beside PATH by itself, unless MANPATH is set and has no empty part that stands for that search
        if (":${MANPATH}:" !~ *::*) set _xccl_paths = ($_xccl_paths MANPATH)
    endif
    foreach _xccl_name ($_xccl_paths)
        set _xccl_entry = "$_xccl_root"
        if ($_xccl_name == PATH) set _xccl_entry = "$_xccl_root/bin"
        if ($_xccl_name == LD_LIBRARY_PATH) set _xccl_entry = "$_xccl_root/$_xccl_lib"
        if ($_xccl_name == MANPATH) set _xccl_entry = "$_xccl_root/share/man"
        if ($_xccl_name == PKG_CONFIG_PATH) set _xccl_entry = "$_xccl_root/$_xccl_lib/pkgconfig"
        set _xccl_old = ""
        set _xccl_kind = U
        eval 'set _xccl_is = $?'$_xccl_name
        if ($_xccl_is) then
            set _xccl_kind = E
            eval 'set _xccl_old = $'$_xccl_name':q'
        endif
        if (":${_xccl_old}:" !~ *":${_xccl_entry}:"*) then
            set _xccl_state = "$_xccl_state${_xccl_name}:$_xccl_kind "
            if ("$_xccl_old" == "") then
                setenv $_xccl_name "$_xccl_entry"
            else
                setenv $_xccl_name "${_xccl_entry}:$_xccl_old"
            endif
        endif
    end
    while ($_xccl_i <= $#_xccl_names)
        set _xccl_name = $_xccl_names[$_xccl_i]
        source "$_xccl_dir/xccl-set.csh"
        @ _xccl_i++
    end
    setenv _XCCL_ENV_VARS "$_xccl_state"
    alias xccl_env 'source "$_XCCL_ENV_DIR/xccl.csh" \!*:q'
endif

# What is only needed while this file runs goes again. The last command, not in a block, is what $status tells of source.
set xccl_error = "$_xccl_error"
unset _xccl_*
if ("$xccl_error" != "") sh -c 'echo "xccl: $1" >&2; exit 1' sh "$xccl_error"
