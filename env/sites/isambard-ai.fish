# SPDX-License-Identifier: BSD-3-Clause
# Rendered by site-configs/tools/render from site-configs/isambard-ai/site.yaml; do not edit.
# Isambard-AI: sourced by env/xccl.fish, which gives _xccl_set and takes everything back.
switch $_xccl_route
    case ucc ucc-ccl
        set -g _xccl_refused 'UCC needs UCX, and Slingshot has libfabric only; Cray MPICH has no UCC either'
    case xccl mpi
    case '*'
        set -g _xccl_refused 'there is no such route; routes: xccl ucc ucc-ccl mpi'
end
test -z "$_xccl_refused"; and _xccl_begin
if _xccl_without brics/nccl # the module sets these itself
    # the bootstrap must not run over the management network (BriCS documentation, NCCL guide, env_vars.sh)
    _xccl_set NCCL_SOCKET_IFNAME 'hsn'
    # GPU and port talk directly when they share a host bridge (BriCS documentation, NCCL guide, env_vars.sh)
    _xccl_set NCCL_NET_GDR_LEVEL 'PHB'
    # rings may use different ports on different nodes (BriCS documentation, NCCL guide, env_vars.sh)
    _xccl_set NCCL_CROSS_NIC '1'
    # one channel a port at least (BriCS documentation, NCCL guide, env_vars.sh)
    _xccl_set NCCL_MIN_NCHANNELS '4'
    # small copies to the GPU by the CPU through GDRCopy (BriCS documentation, NCCL guide, env_vars.sh)
    _xccl_set NCCL_GDRCOPY_ENABLE '1'
    # GH200 needs no flush after a receive into device memory (BriCS documentation, NCCL guide, env_vars.sh)
    _xccl_set NCCL_NET_FORCE_FLUSH '0'
end
switch $_xccl_route
    case xccl
        # what xccl leaves to MPI must not open a second set of NCCL communicators on the same GPU, which can
        # deadlock (NCCL issues 195 and 1174)
        _xccl_set OMPI_MCA_coll_ucc_enable '0'
    case mpi
        # plain Open MPI, the baseline of JSC's blog (JSC blog, "MPI, UCC and NCCL on JUWELS Booster")
        _xccl_set OMPI_MCA_coll_ucc_enable '0'
end
