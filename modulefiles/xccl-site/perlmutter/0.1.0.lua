-- SPDX-License-Identifier: BSD-3-Clause
-- Rendered by site-configs/tools/render from site-configs/perlmutter/site.yaml; do not edit.
help([[
Perlmutter (NERSC) for xccl: MPI family mpich over ofi, vendor library nccl.
Facts last checked on 2026-11-21. Maintainer: the xccl project, from public documents (one at the site is wanted). Loaded by "module load xccl" where it is detected.
]])
whatis("Name: xccl-site/perlmutter")
whatis("Version: 0.1.0")
whatis("Category: settings")
whatis("Keywords: xccl, Perlmutter")
whatis("Description: settings of xccl for Perlmutter")
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
   if not (isloaded("cray-mpich")) then
      LmodMessage("xccl: warning: MPI is not loaded yet (cray-mpich); before you run, load it, for example\n    module load PrgEnv-gnu cray-mpich")
   end
   if not (isloaded("nccl") or isloaded("cudatoolkit")) then
      LmodMessage("xccl: warning: NCCL is not loaded yet (nccl or cudatoolkit); before you run, load it, for example\n    module load cudatoolkit nccl")
   end
   if isloaded("xccl-route/ucc") then
      LmodError("route ucc cannot work on Perlmutter: UCC needs UCX, and Slingshot has libfabric only; Cray MPICH has no UCC either.\nLoad another first, for example\n    module load xccl-route/xccl")
   end
   if isloaded("xccl-route/ucc-ccl") then
      LmodError("route ucc-ccl cannot work on Perlmutter: UCC needs UCX, and Slingshot has libfabric only; Cray MPICH has no UCC either.\nLoad another first, for example\n    module load xccl-route/xccl")
   end
   for _, other in ipairs({"alps", "frontier", "isambard-ai", "lumi-g"}) do
      if isloaded("xccl-settings/" .. other) then
         LmodError("xccl-settings/" .. other .. " is loaded, which holds network settings of another site than Perlmutter;\n" ..
                   "unload it first:\n    module unload xccl-settings/" .. other)
      end
   end
   local library = os.getenv("_XCCL_ROUTE_CCL")
   if library and library ~= "nccl" then
      LmodError("xccl-route/ucc-ccl was loaded for a site with " .. library .. ", Perlmutter has nccl;\n" ..
                "unload the route first:\n    module unload xccl-route/ucc-ccl")
   end
end

pushenv("XCCL_SITE", "perlmutter")
-- Cray MPICH crashes on GPU buffers without it (NERSC, Perlmutter architecture)
pushenv("MPICH_GPU_SUPPORT_ENABLED", "1")
-- each rank uses the port nearest to its GPU (WarpX pull request 4223 (NIC policy))
pushenv("MPICH_OFI_NIC_POLICY", "GPU")
