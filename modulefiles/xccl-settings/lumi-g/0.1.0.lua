-- SPDX-License-Identifier: BSD-3-Clause
-- Rendered by site-configs/tools/render from site-configs/lumi-g/site.yaml; do not edit.
help([[
Network settings of LUMI-G for programs started without xccl-run, on more than one node.
xccl-run sets them for each launch, on route xccl only, because libfabric serves MPI too and some may slow it down.
]])
whatis("Name: xccl-settings/lumi-g")
whatis("Version: 0.1.0")
whatis("Category: settings")
whatis("Keywords: xccl, settings, LUMI-G")
whatis("Description: network settings of LUMI-G for programs started without xccl-run")

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
if mode() == "load" and not isloaded("xccl-site/lumi-g") then
   LmodError("these are settings of LUMI-G, whose site is not loaded; load it first, for example\n" ..
             "    module load xccl-site/lumi-g xccl xccl-settings/lumi-g")
end
-- over the plugin or not at all; where it is missing, xccl leaves collectives to GPU-aware MPI and says so,
-- instead of TCP sockets in silence (HPE, shs-ccl-docs, ccl_env.sh of 2026-04-30)
pushenv("NCCL_NET", "AWS Libfabric")
