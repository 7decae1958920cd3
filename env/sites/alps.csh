# SPDX-License-Identifier: BSD-3-Clause
# Rendered by site-configs/tools/render from site-configs/alps/site.yaml; do not edit.
# Alps (GH200 clusters): names, and values each behind a "=", for env/xccl.csh to set and take back.
switch ($_xccl_route:q)
case xccl:
    breaksw
case ucc:
    set _xccl_refused = 'UCC needs UCX, and Slingshot has libfabric only; Cray MPICH has no UCC either'
    breaksw
case ucc-ccl:
    set _xccl_refused = 'UCC needs UCX, and Slingshot has libfabric only; Cray MPICH has no UCC either'
    breaksw
case mpi:
    breaksw
default:
    set _xccl_refused = 'there is no such route; routes: xccl ucc ucc-ccl mpi'
endsw
# rings stay on one port; faster than 1 with Slingshot host software 13.1 (CSCS documentation, daint, change
# log of 2026-06-17 (container engine default, SHS 13.1.0))
set _xccl_names = ($_xccl_names NCCL_CROSS_NIC); set _xccl_values = ($_xccl_values:q '=0')
# GPU and port talk directly when they share a host bridge (CSCS documentation, NCCL)
set _xccl_names = ($_xccl_names NCCL_NET_GDR_LEVEL); set _xccl_values = ($_xccl_values:q '=PHB')
# no detour through another GPU's port (CSCS documentation, daint, change log of 2026-06-17 (container engine
# default, SHS 13.1.0))
set _xccl_names = ($_xccl_names NCCL_PXN_DISABLE); set _xccl_values = ($_xccl_values:q '=1')
# peer access over NVLink only (CSCS documentation, daint, change log of 2026-06-17 (container engine default,
# SHS 13.1.0))
set _xccl_names = ($_xccl_names NCCL_P2P_LEVEL); set _xccl_values = ($_xccl_values:q '=NVL')
# the port reaches the GPU's memory through Grace (CSCS documentation, daint, change log of 2026-06-17
# (container engine default, SHS 13.1.0))
set _xccl_names = ($_xccl_names NCCL_NET_GDR_C2C); set _xccl_values = ($_xccl_values:q '=1')
# the port reads the GPU's memory directly (CSCS documentation, daint, change log of 2026-06-17 (container
# engine default, SHS 13.1.0))
set _xccl_names = ($_xccl_names NCCL_NET_GDR_READ); set _xccl_values = ($_xccl_values:q '=1')
# LL128 is slow on Slingshot since NCCL 2.27 (CSCS documentation, NCCL); until an NCCL that measures LL128
# before choosing it
set _xccl_names = ($_xccl_names NCCL_PROTO); set _xccl_values = ($_xccl_values:q '=^LL128')
# more channels for point-to-point collectives such as alltoall (CSCS documentation, daint, change log of
# 2026-06-17 (container engine default, SHS 13.1.0))
set _xccl_names = ($_xccl_names NCCL_NCHANNELS_PER_NET_PEER); set _xccl_values = ($_xccl_values:q '=4')
switch ($_xccl_route:q)
case xccl:
    # what xccl leaves to MPI must not open a second set of NCCL communicators on the same GPU, which can
    # deadlock (NCCL issues 195 and 1174)
    set _xccl_names = ($_xccl_names OMPI_MCA_coll_ucc_enable); set _xccl_values = ($_xccl_values:q '=0')
    breaksw
case mpi:
    # plain Open MPI, the baseline of JSC's blog (JSC blog, "MPI, UCC and NCCL on JUWELS Booster")
    set _xccl_names = ($_xccl_names OMPI_MCA_coll_ucc_enable); set _xccl_values = ($_xccl_values:q '=0')
    breaksw
endsw
