-- SPDX-License-Identifier: BSD-3-Clause
-- Rendered by site-configs/tools/render from site-configs/alps/site.yaml; do not edit.
help([[
Network settings of Alps (GH200 clusters) for programs started without xccl-run, on more than one node.
xccl-run sets them for each launch, on route xccl only, because libfabric serves MPI too and some may slow it down.
]])
whatis("Name: xccl-settings/alps")
whatis("Version: 0.1.0")
whatis("Category: settings")
whatis("Keywords: xccl, settings, Alps (GH200 clusters)")
whatis("Description: network settings of Alps (GH200 clusters) for programs started without xccl-run")

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
if mode() == "load" and not isloaded("xccl-site/alps") then
   LmodError("these are settings of Alps (GH200 clusters), whose site is not loaded; load it first, for example\n" ..
             "    module load xccl-site/alps xccl xccl-settings/alps")
end
-- the memhooks monitor deadlocks with NCCL (CSCS documentation, NCCL)
pushenv("FI_MR_CACHE_MONITOR", "userfaultfd")
-- registrations are never evicted by size (CSCS documentation, daint, change log of 2026-06-17 (container
-- engine default, SHS 13.1.0))
pushenv("FI_MR_CACHE_MAX_SIZE", "-1")
-- registrations are rarely evicted by count (CSCS documentation, daint, change log of 2026-06-17 (container
-- engine default, SHS 13.1.0))
pushenv("FI_MR_CACHE_MAX_COUNT", "524288")
-- allocation on the device deadlocks in cxi otherwise (CSCS documentation, NCCL)
pushenv("FI_CXI_DISABLE_HOST_REGISTER", "1")
-- completion queues overflow at scale (CSCS documentation, NCCL)
pushenv("FI_CXI_DEFAULT_CQ_SIZE", "131072")
-- transmit queues run dry at scale (CSCS documentation, NCCL)
pushenv("FI_CXI_DEFAULT_TX_SIZE", "16384")
-- the NIC's match list is exhausted at scale (CSCS documentation, NCCL)
pushenv("FI_CXI_RX_MATCH_MODE", "software")
-- copies of device memory below this size go through the CPU (CSCS documentation, daint, change log of
-- 2026-06-17 (container engine default, SHS 13.1.0))
pushenv("FI_CXI_SAFE_DEVMEM_COPY_THRESHOLD", "16777216")
-- the rendezvous that NCCL needs; goes with --network=disable_rdzv_get of the job (CSCS documentation, daint,
-- change log of 2026-06-17 (container engine default, SHS 13.1.0))
pushenv("FI_CXI_RDZV_PROTO", "alt_read")
-- eager transfers ended in hangs seen by the watchdog (CSCS documentation, daint, change log of 2026-06-17
-- (container engine default, SHS 13.1.0))
pushenv("FI_CXI_RDZV_EAGER_SIZE", "0")
-- eager transfers ended in hangs seen by the watchdog (CSCS documentation, daint, change log of 2026-06-17
-- (container engine default, SHS 13.1.0))
pushenv("FI_CXI_RDZV_GET_MIN", "0")
-- eager transfers ended in hangs seen by the watchdog (CSCS documentation, daint, change log of 2026-06-17
-- (container engine default, SHS 13.1.0))
pushenv("FI_CXI_RDZV_THRESHOLD", "0")
-- abort rather than fall back silently to TCP sockets when the plugin is not found (CSCS documentation, NCCL)
pushenv("NCCL_NET", "AWS Libfabric")
