# SPDX-License-Identifier: BSD-3-Clause
# Rendered by site-configs/tools/render from site-configs/perlmutter/site.yaml; do not edit.
# Perlmutter: sourced by env/xccl.fish, which gives _xccl_set and takes everything back.
switch $_xccl_route
    case ucc ucc-ccl
        set -g _xccl_refused 'UCC needs UCX, and Slingshot has libfabric only; Cray MPICH has no UCC either'
    case xccl mpi
    case '*'
        set -g _xccl_refused 'there is no such route; routes: xccl ucc ucc-ccl mpi'
end
test -z "$_xccl_refused"; and _xccl_begin
# Cray MPICH crashes on GPU buffers without it (NERSC, Perlmutter architecture)
_xccl_set MPICH_GPU_SUPPORT_ENABLED '1'
# each rank uses the port nearest to its GPU (WarpX pull request 4223 (NIC policy))
_xccl_set MPICH_OFI_NIC_POLICY 'GPU'
switch $_xccl_route
    case xccl
        # what xccl leaves to MPI must not open a second set of NCCL communicators on the same GPU, which can
        # deadlock (NCCL issues 195 and 1174)
        _xccl_set OMPI_MCA_coll_ucc_enable '0'
    case mpi
        # plain Open MPI, the baseline of JSC's blog (JSC blog, "MPI, UCC and NCCL on JUWELS Booster")
        _xccl_set OMPI_MCA_coll_ucc_enable '0'
end
