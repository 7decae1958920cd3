# SPDX-License-Identifier: BSD-3-Clause
# Rendered by site-configs/tools/render from site-configs/*/site.yaml; do not edit.
# Which site this is: sets _xccl_site, or leaves it empty. What the environment says beats names, names beat devices.
set -g _xccl_sites alps dgx-a100 dgx-h100 frontier generic-amd generic-nvidia isambard-ai jupiter jureca-dc juwels-booster lumi-g perlmutter sim

function _xccl_detect
    set -l try
    set try "$XCCL_SIM"
    string match -qr -- '^..*$' $try; and set -g _xccl_site sim; and return
    set try "$CLUSTER_NAME"
    string match -qr -- '^daint$' $try; and set -g _xccl_site alps; and return
    string match -qr -- '^clariden$' $try; and set -g _xccl_site alps; and return
    string match -qr -- '^santis$' $try; and set -g _xccl_site alps; and return
    set try "$LMOD_SYSTEM_NAME"
    string match -qr -- '^frontier$' $try; and set -g _xccl_site frontier; and return
    string match -qr -- '^jupiter$' $try; and set -g _xccl_site jupiter; and return
    string match -qr -- '^jurecadc$' $try; and set -g _xccl_site jureca-dc; and return
    string match -qr -- '^juwelsbooster$' $try; and set -g _xccl_site juwels-booster; and return
    set try "$NERSC_HOST"
    string match -qr -- '^perlmutter$' $try; and set -g _xccl_site perlmutter; and return
    set try "$SYSTEMNAME"
    string match -qr -- '^jupiter$' $try; and set -g _xccl_site jupiter; and return
    string match -qr -- '^jurecadc$' $try; and set -g _xccl_site jureca-dc; and return
    string match -qr -- '^juwelsbooster$' $try; and set -g _xccl_site juwels-booster; and return
    set try "$SLURM_CLUSTER_NAME"
    string match -qr -- '^daint$' $try; and set -g _xccl_site alps; and return
    string match -qr -- '^clariden$' $try; and set -g _xccl_site alps; and return
    string match -qr -- '^santis$' $try; and set -g _xccl_site alps; and return
    string match -qr -- '^frontier$' $try; and set -g _xccl_site frontier; and return
    string match -qr -- '^isambard\-ai.*$' $try; and set -g _xccl_site isambard-ai; and return
    string match -qr -- '^aip[12]$' $try; and set -g _xccl_site isambard-ai; and return
    string match -qr -- '^jupiter$' $try; and set -g _xccl_site jupiter; and return
    string match -qr -- '^jurecadc$' $try; and set -g _xccl_site jureca-dc; and return
    string match -qr -- '^juwelsbooster$' $try; and set -g _xccl_site juwels-booster; and return
    string match -qr -- '^lumi$' $try; and set -g _xccl_site lumi-g; and return
    string match -qr -- '^perlmutter$' $try; and set -g _xccl_site perlmutter; and return
    set try ''
    test -r /etc/FZJ/systemname; and read try </etc/FZJ/systemname
    string match -qr -- '^jupiter$' $try; and set -g _xccl_site jupiter; and return
    string match -qr -- '^jurecadc$' $try; and set -g _xccl_site jureca-dc; and return
    string match -qr -- '^juwelsbooster$' $try; and set -g _xccl_site juwels-booster; and return
    set -l host
    read host </proc/sys/kernel/hostname
    for try in "$SLURMD_NODENAME" $host
        string match -qr -- '^frontier[0-9].*$' $try; and set -g _xccl_site frontier; and return
        string match -qr -- '^login.*\.frontier\.olcf\.ornl\.gov$' $try; and set -g _xccl_site frontier; and return
        string match -qr -- '^jwb[0-9].*$' $try; and set -g _xccl_site juwels-booster; and return
end
    set try ''
    test -r /sys/class/dmi/id/product_name; and read try </sys/class/dmi/id/product_name
    string match -qr -- '^DGXA100.*$' $try; and set -g _xccl_site dgx-a100; and return
    string match -qr -- '^NVIDIA DGX A100.*$' $try; and set -g _xccl_site dgx-a100; and return
    string match -qr -- '^DGXH100.*$' $try; and set -g _xccl_site dgx-h100; and return
    string match -qr -- '^DGXH200.*$' $try; and set -g _xccl_site dgx-h100; and return
    string match -qr -- '^NVIDIA DGX H100.*$' $try; and set -g _xccl_site dgx-h100; and return
    string match -qr -- '^NVIDIA DGX H200.*$' $try; and set -g _xccl_site dgx-h100; and return
    test -e /proc/driver/nvidia/version; and set -g _xccl_site generic-nvidia; and return
    test -e /dev/kfd; and set -g _xccl_site generic-amd; and return
end
