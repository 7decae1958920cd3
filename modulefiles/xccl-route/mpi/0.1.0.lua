-- SPDX-License-Identifier: BSD-3-Clause
-- Rendered by site-configs/tools/render from site-configs/routes.yaml; do not edit.
help([[
Route mpi of xccl: MPI alone.
Loading another xccl-route replaces this one. It is of release 0.1.0 of xccl.
]])
whatis("Name: xccl-route/mpi")
whatis("Version: 0.1.0")
whatis("Category: settings")
whatis("Keywords: xccl, MPI, collectives, route")
whatis("Description: MPI serves every collective; xccl-run still preloads the interposer, which carries device memory where MPI cannot take it")
family("xccl_route")

if mode() == "load" then
   -- the variables of another release may be others
   for _, module in ipairs(loaded_modules()) do
      local release = module.fullName:match("^xccl/(%d[%w.]*)")
      if release and release ~= "0.1.0" then
         LmodError(myModuleFullName() .. " is of another release than xccl/" .. release .. ", which is loaded; load its own:\n" ..
                   "    module load " .. myModuleName() .. "/" .. release)
      end
   end
end

pushenv("XCCL_ROUTE", "mpi")
-- plain Open MPI, the baseline of JSC's blog (JSC blog, "MPI, UCC and NCCL on JUWELS Booster")
pushenv("OMPI_MCA_coll_ucc_enable", "0")
