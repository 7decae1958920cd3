-- SPDX-License-Identifier: BSD-3-Clause
-- Rendered by site-configs/tools/render from site-configs/routes.yaml; do not edit.
help([[
Route xccl of xccl: MPI to libxccl-mpi to a tuned choice of {direct, ccl, mpi}.
Loading another xccl-route replaces this one.
]])
whatis("Name: xccl-route/xccl")
whatis("Category: settings")
whatis("Keywords: xccl, MPI, collectives, route")
whatis("Description: collectives on GPU buffers are taken over by xccl, the default")
family("xccl_route")

local site = os.getenv("XCCL_SITE") or ""
if mode() == "load" then
   if not isloaded("xccl-site") then
      LmodError("xccl-route/xccl needs a site; load it first, for example\n    module load xccl xccl-route/xccl")
   end
end

depends_on("xccl-site")
pushenv("XCCL_ROUTE", "xccl")
-- what xccl leaves to MPI must not open a second set of NCCL communicators on the same GPU, which can
-- deadlock (NCCL issues 195 and 1174)
pushenv("OMPI_MCA_coll_ucc_enable", "0")
