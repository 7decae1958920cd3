# SPDX-License-Identifier: BSD-3-Clause
# Rendered by site-configs/tools/render from site-configs/*/site.yaml; do not edit.
# shellcheck shell=sh disable=SC2034
# Which site this is: sets _xccl_site, or leaves it empty. What the environment says beats names, names beat devices.
_xccl_sites='alps dgx-a100 dgx-h100 frontier generic-amd generic-nvidia isambard-ai jupiter jureca-dc juwels-booster lumi-g perlmutter sim'

_xccl_detect() {
    case ${XCCL_SIM-} in
    ?*) _xccl_site=sim && return 0 ;;
    esac
    case ${CLUSTER_NAME-} in
    daint | clariden | santis) _xccl_site=alps && return 0 ;;
    esac
    case ${LMOD_SYSTEM_NAME-} in
    frontier) _xccl_site=frontier && return 0 ;;
    jupiter) _xccl_site=jupiter && return 0 ;;
    jurecadc) _xccl_site=jureca-dc && return 0 ;;
    juwelsbooster) _xccl_site=juwels-booster && return 0 ;;
    esac
    case ${NERSC_HOST-} in
    perlmutter) _xccl_site=perlmutter && return 0 ;;
    esac
    case ${SYSTEMNAME-} in
    jupiter) _xccl_site=jupiter && return 0 ;;
    jurecadc) _xccl_site=jureca-dc && return 0 ;;
    juwelsbooster) _xccl_site=juwels-booster && return 0 ;;
    esac
    case ${SLURM_CLUSTER_NAME-} in
    daint | clariden | santis) _xccl_site=alps && return 0 ;;
    frontier) _xccl_site=frontier && return 0 ;;
    isambard-ai* | aip[12]) _xccl_site=isambard-ai && return 0 ;;
    jupiter) _xccl_site=jupiter && return 0 ;;
    jurecadc) _xccl_site=jureca-dc && return 0 ;;
    juwelsbooster) _xccl_site=juwels-booster && return 0 ;;
    lumi) _xccl_site=lumi-g && return 0 ;;
    perlmutter) _xccl_site=perlmutter && return 0 ;;
    esac
    _xccl_try=
    if [ -r /etc/FZJ/systemname ]; then
        read -r _xccl_try </etc/FZJ/systemname || :
    fi
    case $_xccl_try in
    jupiter) _xccl_site=jupiter && return 0 ;;
    jurecadc) _xccl_site=jureca-dc && return 0 ;;
    juwelsbooster) _xccl_site=juwels-booster && return 0 ;;
    esac
    _xccl_try=
    read -r _xccl_try </proc/sys/kernel/hostname || :
    for _xccl_try in "${SLURMD_NODENAME-}" "$_xccl_try"; do
        case $_xccl_try in
        frontier[0-9]* | login*.frontier.olcf.ornl.gov) _xccl_site=frontier && return 0 ;;
        jwb[0-9]*) _xccl_site=juwels-booster && return 0 ;;
        esac
    done
    _xccl_try=
    if [ -r /sys/class/dmi/id/product_name ]; then
        read -r _xccl_try </sys/class/dmi/id/product_name || :
    fi
    case $_xccl_try in
    DGXA100* | NVIDIA\ DGX\ A100*) _xccl_site=dgx-a100 && return 0 ;;
    DGXH100* | DGXH200* | NVIDIA\ DGX\ H100* | NVIDIA\ DGX\ H200*) _xccl_site=dgx-h100 && return 0 ;;
    esac
    [ ! -e /proc/driver/nvidia/version ] || { _xccl_site=generic-nvidia && return 0; }
    [ ! -e /dev/kfd ] || { _xccl_site=generic-amd && return 0; }
}
