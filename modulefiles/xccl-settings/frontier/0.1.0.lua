-- SPDX-License-Identifier: BSD-3-Clause
-- Rendered by site-configs/tools/render from site-configs/frontier/site.yaml; do not edit.
help([[
Network settings of Frontier for programs started without xccl-run, on more than one node.
xccl-run sets them for each launch, on route xccl only, because libfabric serves MPI too and some may slow it down.
]])
whatis("Name: xccl-settings/frontier")
whatis("Version: 0.1.0")
whatis("Category: settings")
whatis("Keywords: xccl, settings, Frontier")
whatis("Description: network settings of Frontier for programs started without xccl-run")

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
if mode() == "load" and not isloaded("xccl-site/frontier") then
   LmodError("these are settings of Frontier, whose site is not loaded; load it first, for example\n" ..
             "    module load xccl-site/frontier xccl xccl-settings/frontier")
end

-- rccl-net-plugin sets these itself; what was true at load holds at unload
local plugin
if mode() == "unload" then
   plugin = os.getenv("_XCCL_SETTINGS_PLUGIN") == "rccl-net-plugin"
else
   plugin = isloaded("rccl-net-plugin")
end
setenv("_XCCL_SETTINGS_PLUGIN", plugin and "rccl-net-plugin" or "none")
if plugin then
   return
end
-- the memhooks monitor deadlocks with RCCL (OLCF, PyTorch on Frontier (RCCL over Slingshot), as of
-- 2026-07-22)
pushenv("FI_MR_CACHE_MONITOR", "kdreg2")
-- allocation on the device deadlocks in cxi otherwise (OLCF, PyTorch on Frontier (RCCL over Slingshot), as of
-- 2026-07-22)
pushenv("FI_CXI_DISABLE_HOST_REGISTER", "1")
-- completion queues overflow at scale (OLCF, PyTorch on Frontier (RCCL over Slingshot), as of 2026-07-22)
pushenv("FI_CXI_DEFAULT_CQ_SIZE", "131072")
-- transmit queues run dry at scale (OLCF, PyTorch on Frontier (RCCL over Slingshot), as of 2026-07-22)
pushenv("FI_CXI_DEFAULT_TX_SIZE", "2048")
-- the NIC's match list is exhausted at scale (OLCF, PyTorch on Frontier (RCCL over Slingshot), as of
-- 2026-07-22)
pushenv("FI_CXI_RX_MATCH_MODE", "hybrid")
-- the rendezvous RCCL needs; goes with --network=disable_rdzv_get of the job, and may slow MPI (OLCF, PyTorch
-- on Frontier (RCCL over Slingshot), as of 2026-07-22)
pushenv("FI_CXI_RDZV_PROTO", "alt_read")
-- eager transfers ended in hangs seen by the watchdog (OLCF, PyTorch on Frontier (RCCL over Slingshot), as of
-- 2026-07-22)
pushenv("FI_CXI_RDZV_EAGER_SIZE", "0")
-- eager transfers ended in hangs seen by the watchdog (OLCF, PyTorch on Frontier (RCCL over Slingshot), as of
-- 2026-07-22)
pushenv("FI_CXI_RDZV_THRESHOLD", "0")
-- eager transfers ended in hangs seen by the watchdog (OLCF, PyTorch on Frontier (RCCL over Slingshot), as of
-- 2026-07-22)
pushenv("FI_CXI_RDZV_GET_MIN", "0")
-- abort rather than fall back silently to TCP sockets when the plugin is not found (OLCF, PyTorch on Frontier
-- (RCCL over Slingshot), as of 2026-07-22)
pushenv("NCCL_NET", "OFI")
