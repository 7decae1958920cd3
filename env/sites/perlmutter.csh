# SPDX-License-Identifier: BSD-3-Clause
# Rendered by site-configs/tools/render from site-configs/perlmutter/site.yaml; do not edit.
# Perlmutter: names, and values each behind a "=", for env/xccl.csh to set and take back.
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
# Cray MPICH crashes on GPU buffers without it (NERSC, Perlmutter architecture)
set _xccl_names = ($_xccl_names MPICH_GPU_SUPPORT_ENABLED); set _xccl_values = ($_xccl_values:q '=1')
# each rank uses the port nearest to its GPU (WarpX pull request 4223 (NIC policy))
set _xccl_names = ($_xccl_names MPICH_OFI_NIC_POLICY); set _xccl_values = ($_xccl_values:q '=GPU')
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
