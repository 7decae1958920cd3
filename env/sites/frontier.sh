# SPDX-License-Identifier: BSD-3-Clause
# Rendered by site-configs/tools/render from site-configs/frontier/site.yaml; do not edit.
# shellcheck shell=sh disable=SC2154
# Frontier: sourced by env/xccl.sh, which gives _xccl_set and takes everything back.
case $_xccl_route in
ucc | ucc-ccl) _xccl_refused='UCC needs UCX, and Slingshot has libfabric only; Cray MPICH has no UCC either' ;;
esac
case $_xccl_route in
xccl | ucc | ucc-ccl | mpi) ;;
*) _xccl_refused='there is no such route; routes: xccl ucc ucc-ccl mpi' ;;
esac
[ -z "$_xccl_refused" ] || return 1
_xccl_begin
# Cray MPICH crashes on GPU buffers without it (OLCF, Frontier user guide, as of 2026-07-22)
_xccl_set MPICH_GPU_SUPPORT_ENABLED '1'
if _xccl_without rccl-net-plugin; then # the module sets these itself
    # rings may use different ports on different nodes (OLCF, PyTorch on Frontier (RCCL over Slingshot), as of
    # 2026-07-22)
    _xccl_set NCCL_CROSS_NIC '1'
    # GPU and port talk directly when they share a host bridge (OLCF, PyTorch on Frontier (RCCL over
    # Slingshot), as of 2026-07-22)
    _xccl_set NCCL_NET_GDR_LEVEL 'PHB'
    # the bootstrap must not run over the management network (OLCF, PyTorch on Frontier (RCCL over Slingshot),
    # as of 2026-07-22)
    _xccl_set NCCL_SOCKET_IFNAME 'hsn0,hsn1,hsn2,hsn3'
    # GPUs of a node reach each other's memory (OLCF, PyTorch on Frontier (RCCL over Slingshot), as of
    # 2026-07-22)
    _xccl_set HSA_FORCE_FINE_GRAIN_PCIE '1'
fi
case $_xccl_route in
xccl)
    # what xccl leaves to MPI must not open a second set of NCCL communicators on the same GPU, which can
    # deadlock (NCCL issues 195 and 1174)
    _xccl_set OMPI_MCA_coll_ucc_enable '0'
    ;;
mpi)
    # plain Open MPI, the baseline of JSC's blog (JSC blog, "MPI, UCC and NCCL on JUWELS Booster")
    _xccl_set OMPI_MCA_coll_ucc_enable '0'
    ;;
esac
