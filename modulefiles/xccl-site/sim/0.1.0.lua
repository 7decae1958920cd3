-- SPDX-License-Identifier: BSD-3-Clause
-- Rendered by site-configs/tools/render from site-configs/sim/site.yaml; do not edit.
help([[
Simulated accelerators (any) for xccl: MPI family any over any, vendor library nccl.
Facts last checked on 2026-11-21. Maintainer: the xccl project. Loaded by "module load xccl" where it is detected.
]])
whatis("Name: xccl-site/sim")
whatis("Version: 0.1.0")
whatis("Category: settings")
whatis("Keywords: xccl, Simulated accelerators")
whatis("Description: settings of xccl for Simulated accelerators")
family("xccl_site")

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
if mode() == "load" then
   for _, other in ipairs({"alps", "frontier", "isambard-ai", "lumi-g", "perlmutter"}) do
      if isloaded("xccl-settings/" .. other) then
         LmodError("xccl-settings/" .. other .. " is loaded, which holds network settings of another site than Simulated accelerators;\n" ..
                   "unload it first:\n    module unload xccl-settings/" .. other)
      end
   end
   local library = os.getenv("_XCCL_ROUTE_CCL")
   if library and library ~= "nccl" then
      LmodError("xccl-route/ucc-ccl was loaded for a site with " .. library .. ", Simulated accelerators has nccl;\n" ..
                "unload the route first:\n    module unload xccl-route/ucc-ccl")
   end
end

pushenv("XCCL_SITE", "sim")
