-- SPDX-License-Identifier: BSD-3-Clause
-- Rendered by site-configs/tools/render from site-configs/routes.yaml; do not edit.
help([[
Programs that drive several communicators on one GPU at once. Sets:
    NCCL_LAUNCH_ORDER_IMPLICIT=1: NCCL 2.26 and later order kernels of several communicators, which deadlock otherwise
]])
whatis("Name: xccl-settings/many-comms")
whatis("Version: 0.1.0")
whatis("Category: settings")
whatis("Keywords: xccl, settings")
whatis("Description: Programs that drive several communicators on one GPU at once")

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
-- NCCL 2.26 and later order kernels of several communicators, which deadlock otherwise (NCCL user guide,
-- environment variables)
pushenv("NCCL_LAUNCH_ORDER_IMPLICIT", "1")
