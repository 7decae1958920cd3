# SPDX-License-Identifier: BSD-3-Clause
# Rendered by site-configs/tools/render from site-configs/*/site.yaml; do not edit.
# Which site this is: sets _xccl_site, or leaves it empty. What the environment says beats names, names beat devices.
set _xccl_sites = 'alps dgx-a100 dgx-h100 frontier generic-amd generic-nvidia isambard-ai jupiter jureca-dc juwels-booster lumi-g perlmutter sim'
if ($?XCCL_SIM) then
    set _xccl_try = $XCCL_SIM:q
    if ("$_xccl_site" == "") then
        switch ($_xccl_try:q)
        case ?*:
            set _xccl_site = sim
            breaksw
        endsw
    endif
endif
if ($?CLUSTER_NAME) then
    set _xccl_try = $CLUSTER_NAME:q
    if ("$_xccl_site" == "") then
        switch ($_xccl_try:q)
        case daint:
        case clariden:
        case santis:
            set _xccl_site = alps
            breaksw
        endsw
    endif
endif
if ($?LMOD_SYSTEM_NAME) then
    set _xccl_try = $LMOD_SYSTEM_NAME:q
    if ("$_xccl_site" == "") then
        switch ($_xccl_try:q)
        case frontier:
            set _xccl_site = frontier
            breaksw
        case jupiter:
            set _xccl_site = jupiter
            breaksw
        case jurecadc:
            set _xccl_site = jureca-dc
            breaksw
        case juwelsbooster:
            set _xccl_site = juwels-booster
            breaksw
        endsw
    endif
endif
if ($?NERSC_HOST) then
    set _xccl_try = $NERSC_HOST:q
    if ("$_xccl_site" == "") then
        switch ($_xccl_try:q)
        case perlmutter:
            set _xccl_site = perlmutter
            breaksw
        endsw
    endif
endif
if ($?SYSTEMNAME) then
    set _xccl_try = $SYSTEMNAME:q
    if ("$_xccl_site" == "") then
        switch ($_xccl_try:q)
        case jupiter:
            set _xccl_site = jupiter
            breaksw
        case jurecadc:
            set _xccl_site = jureca-dc
            breaksw
        case juwelsbooster:
            set _xccl_site = juwels-booster
            breaksw
        endsw
    endif
endif
if ($?SLURM_CLUSTER_NAME) then
    set _xccl_try = $SLURM_CLUSTER_NAME:q
    if ("$_xccl_site" == "") then
        switch ($_xccl_try:q)
        case daint:
        case clariden:
        case santis:
            set _xccl_site = alps
            breaksw
        case frontier:
            set _xccl_site = frontier
            breaksw
        case isambard-ai*:
        case aip[12]:
            set _xccl_site = isambard-ai
            breaksw
        case jupiter:
            set _xccl_site = jupiter
            breaksw
        case jurecadc:
            set _xccl_site = jureca-dc
            breaksw
        case juwelsbooster:
            set _xccl_site = juwels-booster
            breaksw
        case lumi:
            set _xccl_site = lumi-g
            breaksw
        case perlmutter:
            set _xccl_site = perlmutter
            breaksw
        endsw
    endif
endif
if (-r /etc/FZJ/systemname) then
    set _xccl_try = "`head -n 1 /etc/FZJ/systemname`"
    if ("$_xccl_site" == "") then
        switch ($_xccl_try:q)
        case jupiter:
            set _xccl_site = jupiter
            breaksw
        case jurecadc:
            set _xccl_site = jureca-dc
            breaksw
        case juwelsbooster:
            set _xccl_site = juwels-booster
            breaksw
        endsw
    endif
endif
set _xccl_tries = ("`uname -n`")
if ($?SLURMD_NODENAME) then
    set _xccl_tries = ($SLURMD_NODENAME:q $_xccl_tries:q)
endif
foreach _xccl_try ($_xccl_tries:q)
    if ("$_xccl_site" == "") then
        switch ($_xccl_try:q)
        case frontier[0-9]*:
        case login*.frontier.olcf.ornl.gov:
            set _xccl_site = frontier
            breaksw
        case jwb[0-9]*:
            set _xccl_site = juwels-booster
            breaksw
        endsw
    endif
end
if (-r /sys/class/dmi/id/product_name) then
    set _xccl_try = "`head -n 1 /sys/class/dmi/id/product_name`"
    if ("$_xccl_site" == "") then
        switch ($_xccl_try:q)
        case DGXA100*:
        case NVIDIA\ DGX\ A100*:
            set _xccl_site = dgx-a100
            breaksw
        case DGXH100*:
        case DGXH200*:
        case NVIDIA\ DGX\ H100*:
        case NVIDIA\ DGX\ H200*:
            set _xccl_site = dgx-h100
            breaksw
        endsw
    endif
endif
if ("$_xccl_site" == "" && -e /proc/driver/nvidia/version) set _xccl_site = generic-nvidia
if ("$_xccl_site" == "" && -e /dev/kfd) set _xccl_site = generic-amd
