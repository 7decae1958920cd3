# SPDX-License-Identifier: BSD-3-Clause
# Rendered by site-configs/tools/render from site-configs/isambard-ai/site.yaml; do not edit.
# Isambard-AI: names, and values each behind a "=", for env/xccl.csh to set and take back.
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
set _xccl_loaded = ""
if ($?LOADEDMODULES) then
    set _xccl_loaded = "$LOADEDMODULES"
endif
if (":${_xccl_loaded}:" !~ *:brics/nccl[/:]*) then # the module sets these itself
    # the bootstrap must not run over the management network (BriCS documentation, NCCL guide, env_vars.sh)
    set _xccl_names = ($_xccl_names NCCL_SOCKET_IFNAME); set _xccl_values = ($_xccl_values:q '=hsn')
    # GPU and port talk directly when they share a host bridge (BriCS documentation, NCCL guide, env_vars.sh)
    set _xccl_names = ($_xccl_names NCCL_NET_GDR_LEVEL); set _xccl_values = ($_xccl_values:q '=PHB')
    # rings may use different ports on different nodes (BriCS documentation, NCCL guide, env_vars.sh)
    set _xccl_names = ($_xccl_names NCCL_CROSS_NIC); set _xccl_values = ($_xccl_values:q '=1')
    # one channel a port at least (BriCS documentation, NCCL guide, env_vars.sh)
    set _xccl_names = ($_xccl_names NCCL_MIN_NCHANNELS); set _xccl_values = ($_xccl_values:q '=4')
    # small copies to the GPU by the CPU through GDRCopy (BriCS documentation, NCCL guide, env_vars.sh)
    set _xccl_names = ($_xccl_names NCCL_GDRCOPY_ENABLE); set _xccl_values = ($_xccl_values:q '=1')
    # GH200 needs no flush after a receive into device memory (BriCS documentation, NCCL guide, env_vars.sh)
    set _xccl_names = ($_xccl_names NCCL_NET_FORCE_FLUSH); set _xccl_values = ($_xccl_values:q '=0')
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
