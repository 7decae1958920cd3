# SPDX-License-Identifier: BSD-3-Clause
# Rendered by site-configs/tools/render from site-configs/jupiter/site.yaml; do not edit.
# JUPITER Booster: names, and values each behind a "=", for env/xccl.csh to set and take back.
switch ($_xccl_route:q)
case xccl:
    breaksw
case ucc:
    breaksw
case ucc-ccl:
    breaksw
case mpi:
    breaksw
default:
    set _xccl_refused = 'there is no such route; routes: xccl ucc ucc-ccl mpi'
endsw
# pml/ob1 knows nothing of the GPU's memory beside InfiniBand; JSC's OpenMPI-settings choose the same (JSC
# easyconfigs, Overlays/jupiter_overlay)
set _xccl_names = ($_xccl_names OMPI_MCA_pml); set _xccl_values = ($_xccl_values:q '=ucx')
switch ($_xccl_route:q)
case xccl:
    # what xccl leaves to MPI must not open a second set of NCCL communicators on the same GPU, which can
    # deadlock (NCCL issues 195 and 1174)
    set _xccl_names = ($_xccl_names OMPI_MCA_coll_ucc_enable); set _xccl_values = ($_xccl_values:q '=0')
    breaksw
case ucc:
    # UCC is off by default in Open MPI (Open MPI pull request 9009)
    set _xccl_names = ($_xccl_names OMPI_MCA_coll_ucc_enable); set _xccl_values = ($_xccl_values:q '=1')
    # UCC's default of 10 loses against coll/accelerator (78) and coll/tuned (30) (Open MPI issue 9885)
    set _xccl_names = ($_xccl_names OMPI_MCA_coll_ucc_priority); set _xccl_values = ($_xccl_values:q '=100')
    # HCOLL is called beside UCC where both are installed (UCC issue 1197); until HPC-X without HCOLL
    set _xccl_names = ($_xccl_names OMPI_MCA_coll_hcoll_enable); set _xccl_values = ($_xccl_values:q '=0')
    # an installed or personal ucc.conf may choose transports, this one chooses nothing (an empty name is as
    # good, but Lmod cannot take it back) (UCC sources, src/core/ucc_constructor.c, src/components/cl/ucc_cl.c
    # and contrib/ucc.conf)
    set _xccl_names = ($_xccl_names UCC_CONFIG_FILE); set _xccl_values = ($_xccl_values:q '=/dev/null')
    # without it UCC may pick NCCL or RCCL on its own (the blog unloads the NCCL module for this); excluding
    # needs UCC 1.1 (JSC blog, "MPI, UCC and NCCL on JUWELS Booster")
    set _xccl_names = ($_xccl_names UCC_TLS); set _xccl_values = ($_xccl_values:q '=^nccl,rccl')
    breaksw
case ucc-ccl:
    # UCC is off by default in Open MPI (Open MPI pull request 9009)
    set _xccl_names = ($_xccl_names OMPI_MCA_coll_ucc_enable); set _xccl_values = ($_xccl_values:q '=1')
    # UCC's default of 10 loses against coll/accelerator (78) and coll/tuned (30) (Open MPI issue 9885)
    set _xccl_names = ($_xccl_names OMPI_MCA_coll_ucc_priority); set _xccl_values = ($_xccl_values:q '=100')
    # HCOLL is called beside UCC where both are installed (UCC issue 1197); until HPC-X without HCOLL
    set _xccl_names = ($_xccl_names OMPI_MCA_coll_hcoll_enable); set _xccl_values = ($_xccl_values:q '=0')
    # the ucc.conf that UCC can install hides NCCL (UCC_CL_BASIC_TLS=^sharp,nccl); this one hides nothing (UCC
    # sources, src/core/ucc_constructor.c, src/components/cl/ucc_cl.c and contrib/ucc.conf)
    set _xccl_names = ($_xccl_names UCC_CONFIG_FILE); set _xccl_values = ($_xccl_values:q '=/dev/null')
    # UCC scores its CUDA transport (40) and may score UCP over NCCL (20) (JSC blog, "MPI, UCC and NCCL on
    # JUWELS Booster")
    set _xccl_names = ($_xccl_names UCC_TL_NCCL_TUNE); set _xccl_values = ($_xccl_values:q '=allreduce:cuda:inf#bcast:cuda:inf#reduce:cuda:inf#reduce_scatter:cuda:inf#allgather:cuda:inf#allgatherv:cuda:inf#alltoall:cuda:inf#alltoallv:cuda:inf#gather:cuda:inf#gatherv:cuda:inf#scatter:cuda:inf#scatterv:cuda:inf')
    breaksw
case mpi:
    # plain Open MPI, the baseline of JSC's blog (JSC blog, "MPI, UCC and NCCL on JUWELS Booster")
    set _xccl_names = ($_xccl_names OMPI_MCA_coll_ucc_enable); set _xccl_values = ($_xccl_values:q '=0')
    breaksw
endsw
