# SPDX-License-Identifier: BSD-3-Clause
# Rendered by site-configs/tools/render from site-configs/frontier/site.yaml; do not edit.
# Frontier: names, and values each behind a "=", for env/xccl.csh to set and take back.
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
# Cray MPICH crashes on GPU buffers without it (OLCF, Frontier user guide, as of 2026-07-22)
set _xccl_names = ($_xccl_names MPICH_GPU_SUPPORT_ENABLED); set _xccl_values = ($_xccl_values:q '=1')
set _xccl_loaded = ""
if ($?LOADEDMODULES) then
    set _xccl_loaded = "$LOADEDMODULES"
endif
if (":${_xccl_loaded}:" !~ *:rccl-net-plugin[/:]*) then # the module sets these itself
    # rings may use different ports on different nodes (OLCF, PyTorch on Frontier (RCCL over Slingshot), as of
    # 2026-07-22)
    set _xccl_names = ($_xccl_names NCCL_CROSS_NIC); set _xccl_values = ($_xccl_values:q '=1')
    # GPU and port talk directly when they share a host bridge (OLCF, PyTorch on Frontier (RCCL over
    # Slingshot), as of 2026-07-22)
    set _xccl_names = ($_xccl_names NCCL_NET_GDR_LEVEL); set _xccl_values = ($_xccl_values:q '=PHB')
    # the bootstrap must not run over the management network (OLCF, PyTorch on Frontier (RCCL over Slingshot),
    # as of 2026-07-22)
    set _xccl_names = ($_xccl_names NCCL_SOCKET_IFNAME); set _xccl_values = ($_xccl_values:q '=hsn0,hsn1,hsn2,hsn3')
    # GPUs of a node reach each other's memory (OLCF, PyTorch on Frontier (RCCL over Slingshot), as of
    # 2026-07-22)
    set _xccl_names = ($_xccl_names HSA_FORCE_FINE_GRAIN_PCIE); set _xccl_values = ($_xccl_values:q '=1')
endif
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
