# SPDX-License-Identifier: BSD-3-Clause
# Rendered by site-configs/tools/render from site-configs/alps/site.yaml; do not edit.
# shellcheck shell=sh disable=SC2154
# Alps (GH200 clusters): sourced by env/xccl.sh, which gives _xccl_set and takes everything back.
case $_xccl_route in
ucc | ucc-ccl) _xccl_refused='UCC needs UCX, and Slingshot has libfabric only; Cray MPICH has no UCC either' ;;
esac
case $_xccl_route in
xccl | ucc | ucc-ccl | mpi) ;;
*) _xccl_refused='there is no such route; routes: xccl ucc ucc-ccl mpi' ;;
esac
[ -z "$_xccl_refused" ] || return 1
_xccl_begin
# rings stay on one port; faster than 1 with Slingshot host software 13.1 (CSCS documentation, daint, change
# log of 2026-06-17 (container engine default, SHS 13.1.0))
_xccl_set NCCL_CROSS_NIC '0'
# GPU and port talk directly when they share a host bridge (CSCS documentation, NCCL)
_xccl_set NCCL_NET_GDR_LEVEL 'PHB'
# no detour through another GPU's port (CSCS documentation, daint, change log of 2026-06-17 (container engine
# default, SHS 13.1.0))
_xccl_set NCCL_PXN_DISABLE '1'
# peer access over NVLink only (CSCS documentation, daint, change log of 2026-06-17 (container engine default,
# SHS 13.1.0))
_xccl_set NCCL_P2P_LEVEL 'NVL'
# the port reaches the GPU's memory through Grace (CSCS documentation, daint, change log of 2026-06-17
# (container engine default, SHS 13.1.0))
_xccl_set NCCL_NET_GDR_C2C '1'
# the port reads the GPU's memory directly (CSCS documentation, daint, change log of 2026-06-17 (container
# engine default, SHS 13.1.0))
_xccl_set NCCL_NET_GDR_READ '1'
# LL128 is slow on Slingshot since NCCL 2.27 (CSCS documentation, NCCL); until an NCCL that measures LL128
# before choosing it
_xccl_set NCCL_PROTO '^LL128'
# more channels for point-to-point collectives such as alltoall (CSCS documentation, daint, change log of
# 2026-06-17 (container engine default, SHS 13.1.0))
_xccl_set NCCL_NCHANNELS_PER_NET_PEER '4'
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
