-- SPDX-License-Identifier: BSD-3-Clause
-- Rendered by site-configs/tools/render from site-configs/routes.yaml; do not edit.
help([[
Route xccl of xccl: xccl picks direct, ccl or mpi for each call.
Loading another xccl-route replaces this one. It is of release 0.1.0 of xccl.
]])
whatis("Name: xccl-route/xccl")
whatis("Version: 0.1.0")
whatis("Category: settings")
whatis("Keywords: xccl, MPI, collectives, route")
whatis("Description: collectives on GPU buffers are taken over by xccl, the default")
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

pushenv("XCCL_ROUTE", "xccl")
-- what xccl leaves to MPI must not open a second set of NCCL communicators on the same GPU, which can
-- deadlock (NCCL issues 195 and 1174)
pushenv("OMPI_MCA_coll_ucc_enable", "0")
