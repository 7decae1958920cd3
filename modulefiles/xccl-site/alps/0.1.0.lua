-- SPDX-License-Identifier: BSD-3-Clause
-- Rendered by site-configs/tools/render from site-configs/alps/site.yaml; do not edit.
help([[
Alps (GH200 clusters) (CSCS) for xccl: MPI family mpich over ofi, vendor library nccl.
Facts last checked on 2026-11-21. Maintainer: the xccl project, from public documents (one at the site is wanted). Loaded by "module load xccl" where it is detected.
]])
whatis("Name: xccl-site/alps")
whatis("Version: 0.1.0")
whatis("Category: settings")
whatis("Keywords: xccl, Alps (GH200 clusters)")
whatis("Description: settings of xccl for Alps (GH200 clusters)")
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
   if isloaded("xccl-route/ucc") then
      LmodError("route ucc cannot work on Alps (GH200 clusters): UCC needs UCX, and Slingshot has libfabric only; Cray MPICH has no UCC either.\nLoad another first, for example\n    module load xccl-route/xccl")
   end
   if isloaded("xccl-route/ucc-ccl") then
      LmodError("route ucc-ccl cannot work on Alps (GH200 clusters): UCC needs UCX, and Slingshot has libfabric only; Cray MPICH has no UCC either.\nLoad another first, for example\n    module load xccl-route/xccl")
   end
   for _, other in ipairs({"frontier", "isambard-ai", "lumi-g", "perlmutter"}) do
      if isloaded("xccl-settings/" .. other) then
         LmodError("xccl-settings/" .. other .. " is loaded, which holds network settings of another site than Alps (GH200 clusters);\n" ..
                   "unload it first:\n    module unload xccl-settings/" .. other)
      end
   end
   local library = os.getenv("_XCCL_ROUTE_CCL")
   if library and library ~= "nccl" then
      LmodError("xccl-route/ucc-ccl was loaded for a site with " .. library .. ", Alps (GH200 clusters) has nccl;\n" ..
                "unload the route first:\n    module unload xccl-route/ucc-ccl")
   end
end

pushenv("XCCL_SITE", "alps")
-- rings stay on one port; faster than 1 with Slingshot host software 13.1 (CSCS documentation, daint, change
-- log of 2026-06-17 (container engine default, SHS 13.1.0))
pushenv("NCCL_CROSS_NIC", "0")
-- GPU and port talk directly when they share a host bridge (CSCS documentation, NCCL)
pushenv("NCCL_NET_GDR_LEVEL", "PHB")
-- no detour through another GPU's port (CSCS documentation, daint, change log of 2026-06-17 (container engine
-- default, SHS 13.1.0))
pushenv("NCCL_PXN_DISABLE", "1")
-- peer access over NVLink only (CSCS documentation, daint, change log of 2026-06-17 (container engine
-- default, SHS 13.1.0))
pushenv("NCCL_P2P_LEVEL", "NVL")
-- the port reaches the GPU's memory through Grace (CSCS documentation, daint, change log of 2026-06-17
-- (container engine default, SHS 13.1.0))
pushenv("NCCL_NET_GDR_C2C", "1")
-- the port reads the GPU's memory directly (CSCS documentation, daint, change log of 2026-06-17 (container
-- engine default, SHS 13.1.0))
pushenv("NCCL_NET_GDR_READ", "1")
-- LL128 is slow on Slingshot since NCCL 2.27 (CSCS documentation, NCCL); until an NCCL that measures LL128
-- before choosing it
pushenv("NCCL_PROTO", "^LL128")
-- more channels for point-to-point collectives such as alltoall (CSCS documentation, daint, change log of
-- 2026-06-17 (container engine default, SHS 13.1.0))
pushenv("NCCL_NCHANNELS_PER_NET_PEER", "4")
