-- SPDX-License-Identifier: BSD-3-Clause
-- Rendered by site-configs/tools/render from site-configs/isambard-ai/site.yaml; do not edit.
help([[
Network settings of Isambard-AI for programs started without xccl-run, on more than one node.
xccl-run sets them for each launch, on route xccl only, because libfabric serves MPI too and some may slow it down.
]])
whatis("Name: xccl-settings/isambard-ai")
whatis("Version: 0.1.0")
whatis("Category: settings")
whatis("Keywords: xccl, settings, Isambard-AI")
whatis("Description: network settings of Isambard-AI for programs started without xccl-run")

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
if mode() == "load" and not isloaded("xccl-site/isambard-ai") then
   LmodError("these are settings of Isambard-AI, whose site is not loaded; load it first, for example\n" ..
             "    module load xccl-site/isambard-ai xccl xccl-settings/isambard-ai")
end

-- brics/nccl sets these itself; what was true at load holds at unload
local plugin
if mode() == "unload" then
   plugin = os.getenv("_XCCL_SETTINGS_PLUGIN") == "brics/nccl"
else
   plugin = isloaded("brics/nccl")
end
setenv("_XCCL_SETTINGS_PLUGIN", plugin and "brics/nccl" or "none")
if plugin then
   return
end
-- completion queues overflow at scale (BriCS documentation, NCCL guide, env_vars.sh)
pushenv("FI_CXI_DEFAULT_CQ_SIZE", "131072")
-- transmit queues run dry at scale (BriCS documentation, NCCL guide, env_vars.sh)
pushenv("FI_CXI_DEFAULT_TX_SIZE", "2048")
-- device memory is not copied into commands by the CPU (BriCS documentation, NCCL guide, env_vars.sh)
pushenv("FI_CXI_DISABLE_NON_INJECT_MSG_IDC", "1")
-- libfabric copies device memory through GDRCopy (BriCS documentation, NCCL guide, env_vars.sh)
pushenv("FI_HMEM_CUDA_USE_GDRCOPY", "1")
-- allocation on the device deadlocks in cxi otherwise (BriCS documentation, NCCL guide, env_vars.sh)
pushenv("FI_CXI_DISABLE_HOST_REGISTER", "1")
-- the memhooks monitor deadlocks with NCCL (BriCS documentation, NCCL guide, env_vars.sh)
pushenv("FI_MR_CACHE_MONITOR", "userfaultfd")
-- the rendezvous that NCCL needs; goes with --network=disable_rdzv_get of the job (BriCS documentation, NCCL
-- guide, env_vars.sh)
pushenv("FI_CXI_RDZV_PROTO", "alt_read")
-- eager transfers ended in hangs seen by the watchdog (BriCS documentation, NCCL guide, env_vars.sh)
pushenv("FI_CXI_RDZV_THRESHOLD", "0")
-- eager transfers ended in hangs seen by the watchdog (BriCS documentation, NCCL guide, env_vars.sh)
pushenv("FI_CXI_RDZV_GET_MIN", "0")
-- eager transfers ended in hangs seen by the watchdog (BriCS documentation, NCCL guide, env_vars.sh)
pushenv("FI_CXI_RDZV_EAGER_SIZE", "0")
-- the NIC's match list is exhausted at scale (BriCS documentation, NCCL guide, env_vars.sh)
pushenv("FI_CXI_RX_MATCH_MODE", "hybrid")
-- abort rather than fall back silently to TCP sockets when the plugin is not found (BriCS documentation, NCCL
-- guide, env_vars.sh)
pushenv("NCCL_NET", "AWS Libfabric")
