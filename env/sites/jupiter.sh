# SPDX-License-Identifier: BSD-3-Clause
# Rendered by site-configs/tools/render from site-configs/jupiter/site.yaml; do not edit.
# shellcheck shell=sh disable=SC2154
# JUPITER Booster: sourced by env/xccl.sh, which gives _xccl_set and takes everything back.
case $_xccl_route in
xccl | ucc | ucc-ccl | mpi) ;;
*) _xccl_refused='there is no such route; routes: xccl ucc ucc-ccl mpi' ;;
esac
[ -z "$_xccl_refused" ] || return 1
_xccl_begin
# pml/ob1 knows nothing of the GPU's memory beside InfiniBand; JSC's OpenMPI-settings choose the same (JSC
# easyconfigs, Overlays/jupiter_overlay)
_xccl_set OMPI_MCA_pml 'ucx'
case $_xccl_route in
xccl)
    # what xccl leaves to MPI must not open a second set of NCCL communicators on the same GPU, which can
    # deadlock (NCCL issues 195 and 1174)
    _xccl_set OMPI_MCA_coll_ucc_enable '0'
    ;;
ucc)
    # UCC is off by default in Open MPI (Open MPI pull request 9009)
    _xccl_set OMPI_MCA_coll_ucc_enable '1'
    # UCC's default of 10 loses against coll/accelerator (78) and coll/tuned (30) (Open MPI issue 9885)
    _xccl_set OMPI_MCA_coll_ucc_priority '100'
    # HCOLL is called beside UCC where both are installed (UCC issue 1197); until HPC-X without HCOLL
    _xccl_set OMPI_MCA_coll_hcoll_enable '0'
    # an installed or personal ucc.conf may choose transports, this one chooses nothing (an empty name is as
    # good, but Lmod cannot take it back) (UCC sources, src/core/ucc_constructor.c, src/components/cl/ucc_cl.c
    # and contrib/ucc.conf)
    _xccl_set UCC_CONFIG_FILE '/dev/null'
    # without it UCC may pick NCCL or RCCL on its own (the blog unloads the NCCL module for this); excluding
    # needs UCC 1.1 (JSC blog, "MPI, UCC and NCCL on JUWELS Booster")
    _xccl_set UCC_TLS '^nccl,rccl'
    ;;
ucc-ccl)
    # UCC is off by default in Open MPI (Open MPI pull request 9009)
    _xccl_set OMPI_MCA_coll_ucc_enable '1'
    # UCC's default of 10 loses against coll/accelerator (78) and coll/tuned (30) (Open MPI issue 9885)
    _xccl_set OMPI_MCA_coll_ucc_priority '100'
    # HCOLL is called beside UCC where both are installed (UCC issue 1197); until HPC-X without HCOLL
    _xccl_set OMPI_MCA_coll_hcoll_enable '0'
    # the ucc.conf that UCC can install hides NCCL (UCC_CL_BASIC_TLS=^sharp,nccl); this one hides nothing (UCC
    # sources, src/core/ucc_constructor.c, src/components/cl/ucc_cl.c and contrib/ucc.conf)
    _xccl_set UCC_CONFIG_FILE '/dev/null'
    # UCC scores its CUDA transport (40) and may score UCP over NCCL (20) (JSC blog, "MPI, UCC and NCCL on
    # JUWELS Booster")
    _xccl_set UCC_TL_NCCL_TUNE 'allreduce:cuda:inf#bcast:cuda:inf#reduce:cuda:inf#reduce_scatter:cuda:inf#allgather:cuda:inf#allgatherv:cuda:inf#alltoall:cuda:inf#alltoallv:cuda:inf#gather:cuda:inf#gatherv:cuda:inf#scatter:cuda:inf#scatterv:cuda:inf'
    ;;
mpi)
    # plain Open MPI, the baseline of JSC's blog (JSC blog, "MPI, UCC and NCCL on JUWELS Booster")
    _xccl_set OMPI_MCA_coll_ucc_enable '0'
    ;;
esac
