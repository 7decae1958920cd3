-- SPDX-License-Identifier: BSD-3-Clause
-- Rendered by site-configs/tools/render from site-configs/jupiter/site.yaml; do not edit.
help([[
JUPITER Booster (Jülich Supercomputing Centre) for xccl: MPI family openmpi over ucx, vendor library nccl.
Facts last checked on 2026-11-21. Maintainer: the xccl project, from public documents (one at the site is wanted). Loaded by "module load xccl" where it is detected.
]])
whatis("Name: xccl-site/jupiter")
whatis("Version: 0.1.0")
whatis("Category: settings")
whatis("Keywords: xccl, JUPITER Booster")
whatis("Description: settings of xccl for JUPITER Booster")
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
   if not (isloaded("OpenMPI") or isloaded("ParaStationMPI") or isloaded("psmpi")) then
      LmodMessage("xccl: warning: MPI is not loaded yet (OpenMPI or ParaStationMPI or psmpi); before you run, load it, for example\n    module load Stages/2025 GCC OpenMPI")
   end
   if not (isloaded("NCCL")) then
      LmodMessage("xccl: warning: NCCL is not loaded yet (NCCL); before you run, load it, for example\n    module load Stages/2025 GCC OpenMPI NCCL")
   end
   for _, other in ipairs({"alps", "frontier", "isambard-ai", "lumi-g", "perlmutter"}) do
      if isloaded("xccl-settings/" .. other) then
         LmodError("xccl-settings/" .. other .. " is loaded, which holds network settings of another site than JUPITER Booster;\n" ..
                   "unload it first:\n    module unload xccl-settings/" .. other)
      end
   end
   local library = os.getenv("_XCCL_ROUTE_CCL")
   if library and library ~= "nccl" then
      LmodError("xccl-route/ucc-ccl was loaded for a site with " .. library .. ", JUPITER Booster has nccl;\n" ..
                "unload the route first:\n    module unload xccl-route/ucc-ccl")
   end
end

pushenv("XCCL_SITE", "jupiter")
-- pml/ob1 knows nothing of the GPU's memory beside InfiniBand; JSC's OpenMPI-settings choose the same (JSC
-- easyconfigs, Overlays/jupiter_overlay)
pushenv("OMPI_MCA_pml", "ucx")
