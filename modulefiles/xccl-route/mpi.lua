-- SPDX-License-Identifier: BSD-3-Clause
-- Rendered by site-configs/tools/render from site-configs/routes.yaml; do not edit.
help([[
Route mpi of xccl: MPI alone.
Loading another xccl-route replaces this one.
]])
whatis("Name: xccl-route/mpi")
whatis("Category: settings")
whatis("Keywords: xccl, MPI, collectives, route")
whatis("Description: collectives stay in MPI as it was installed, nothing is preloaded")
family("xccl_route")

local site = os.getenv("XCCL_SITE") or ""
if mode() == "load" then
   if not isloaded("xccl-site") then
      LmodError("xccl-route/mpi needs a site; load it first, for example\n    module load xccl xccl-route/mpi")
   end
end

depends_on("xccl-site")
pushenv("XCCL_ROUTE", "mpi")
-- plain Open MPI, the baseline of the first seed (JSC blog, "MPI, UCC and NCCL on JUWELS Booster" (first
-- seed))
pushenv("OMPI_MCA_coll_ucc_enable", "0")
