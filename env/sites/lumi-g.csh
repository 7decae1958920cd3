# SPDX-License-Identifier: BSD-3-Clause
# Rendered by site-configs/tools/render from site-configs/lumi-g/site.yaml; do not edit.
# LUMI-G: names, and values each behind a "=", for env/xccl.csh to set and take back.
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
# Cray MPICH crashes on GPU buffers without it (LUMI user guide, distribution and binding)
set _xccl_names = ($_xccl_names MPICH_GPU_SUPPORT_ENABLED); set _xccl_values = ($_xccl_values:q '=1')
# the default (BLOCK) gives a rank a port far from its GPU (LUMI training material, 2024-05-02 (lstopo) and
# 2026-04-22 (Slurm, binding))
set _xccl_names = ($_xccl_names MPICH_OFI_NIC_POLICY); set _xccl_values = ($_xccl_values:q '=GPU')
# the bootstrap must not run over the management network (LUMI user guide, distribution and binding)
set _xccl_names = ($_xccl_names NCCL_SOCKET_IFNAME); set _xccl_values = ($_xccl_values:q '=hsn0,hsn1,hsn2,hsn3')
# GPU and port talk directly when they share a host bridge (LUMI user guide, distribution and binding)
set _xccl_names = ($_xccl_names NCCL_NET_GDR_LEVEL); set _xccl_values = ($_xccl_values:q '=PHB')
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
