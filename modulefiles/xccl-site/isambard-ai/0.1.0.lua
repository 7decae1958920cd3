-- SPDX-License-Identifier: BSD-3-Clause
-- Rendered by site-configs/tools/render from site-configs/isambard-ai/site.yaml; do not edit.
help([[
Isambard-AI (Bristol Centre for Supercomputing) for xccl: MPI family mpich over ofi, vendor library nccl.
Facts last checked on 2026-11-22. Maintainer: the xccl project, from public documents (one at the site is wanted). Loaded by "module load xccl" where it is detected.
]])
whatis("Name: xccl-site/isambard-ai")
whatis("Version: 0.1.0")
whatis("Category: settings")
whatis("Keywords: xccl, Isambard-AI")
whatis("Description: settings of xccl for Isambard-AI")
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
   if not (isloaded("brics/nccl") or isAvail("brics/nccl")) then -- loaded below, where it is
      LmodMessage("xccl: warning: NCCL with the plugin for Slingshot is not loaded yet (brics/nccl); before you run, load it, for example\n    module load brics/nccl")
   end
   if isloaded("xccl-route/ucc") then
      LmodError("route ucc cannot work on Isambard-AI: UCC needs UCX, and Slingshot has libfabric only; Cray MPICH has no UCC either.\nLoad another first, for example\n    module load xccl-route/xccl")
   end
   if isloaded("xccl-route/ucc-ccl") then
      LmodError("route ucc-ccl cannot work on Isambard-AI: UCC needs UCX, and Slingshot has libfabric only; Cray MPICH has no UCC either.\nLoad another first, for example\n    module load xccl-route/xccl")
   end
   for _, other in ipairs({"alps", "frontier", "lumi-g", "perlmutter"}) do
      if isloaded("xccl-settings/" .. other) then
         LmodError("xccl-settings/" .. other .. " is loaded, which holds network settings of another site than Isambard-AI;\n" ..
                   "unload it first:\n    module unload xccl-settings/" .. other)
      end
   end
   local library = os.getenv("_XCCL_ROUTE_CCL")
   if library and library ~= "nccl" then
      LmodError("xccl-route/ucc-ccl was loaded for a site with " .. library .. ", Isambard-AI has nccl;\n" ..
                "unload the route first:\n    module unload xccl-route/ucc-ccl")
   end
end

-- Lmod does not quote a leading =, and zsh takes such a word for the name of a command (until Lmod quotes it): in zsh
-- such a value has a blank in front on the way through Lmod, and so has one of the user's, which comes back at unload.
local function push_equals(name, value)
   if myShellName() ~= "zsh" or mode() == "show" then
      pushenv(name, value)
      return
   end
   local own = os.getenv(name) or ""
   -- in base64; new Lmods leave the user's value there at unload
   local stack = os.getenv("__LMOD_STACK_" .. name) or ""
   if mode() == "load" and own:find("^=") and (stack == "" or stack:find("^P[Q-Za-f][^:]*$")) then
      pushenv(name, " " .. own)
   end
   pushenv(name, value:find("^=") and " " .. value or value)
   execute{cmd="case ${" .. name .. "-} in ' ='*) export " .. name .. "=\"${" .. name .. "# }\" ;; esac",
           modeA={"load", "unload"}}
end

pushenv("XCCL_SITE", "isambard-ai")

-- brics/nccl sets the variables of the plugin itself; what was true at load holds at unload
local plugin
if mode() == "unload" then
   plugin = os.getenv("_XCCL_SITE_PLUGIN") == "brics/nccl"
else
   plugin = isloaded("brics/nccl")
   if not plugin and isAvail("brics/nccl") then
      plugin = true
   end
end
setenv("_XCCL_SITE_PLUGIN", plugin and "brics/nccl" or "none")
if plugin then
   depends_on("brics/nccl")
end
if not plugin then
   -- the bootstrap must not run over the management network (BriCS documentation, NCCL guide, env_vars.sh)
   push_equals("NCCL_SOCKET_IFNAME", "hsn")
   -- GPU and port talk directly when they share a host bridge (BriCS documentation, NCCL guide, env_vars.sh)
   pushenv("NCCL_NET_GDR_LEVEL", "PHB")
   -- rings may use different ports on different nodes (BriCS documentation, NCCL guide, env_vars.sh)
   pushenv("NCCL_CROSS_NIC", "1")
   -- one channel a port at least (BriCS documentation, NCCL guide, env_vars.sh)
   pushenv("NCCL_MIN_NCHANNELS", "4")
   -- small copies to the GPU by the CPU through GDRCopy (BriCS documentation, NCCL guide, env_vars.sh)
   pushenv("NCCL_GDRCOPY_ENABLE", "1")
   -- GH200 needs no flush after a receive into device memory (BriCS documentation, NCCL guide, env_vars.sh)
   pushenv("NCCL_NET_FORCE_FLUSH", "0")
end
