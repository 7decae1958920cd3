-- SPDX-License-Identifier: BSD-3-Clause
-- Rendered by site-configs/tools/render from site-configs/generic-amd/site.yaml; do not edit.
help([[
Any machine with AMD GPUs (any) for xccl: MPI family any over any, vendor library rccl.
Facts last checked on 2026-11-21. Loaded by "module load xccl" where it is detected.
]])
whatis("Name: xccl-site/generic-amd")
whatis("Category: settings")
whatis("Keywords: xccl, Any machine with AMD GPUs")
whatis("Description: settings of xccl for Any machine with AMD GPUs")
family("xccl_site")

if mode() == "load" then
   local library = os.getenv("_XCCL_ROUTE_CCL")
   if library and library ~= "rccl" then
      LmodError("xccl-route/ucc-ccl was loaded for a site with " .. library .. ", Any machine with AMD GPUs has rccl;\n" ..
                "unload the route first:\n    module unload xccl-route")
   end
end

pushenv("XCCL_SITE", "generic-amd")
