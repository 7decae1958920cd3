-- SPDX-License-Identifier: BSD-3-Clause
-- Rendered by site-configs/tools/render from site-configs/dgx-a100/site.yaml; do not edit.
help([[
NVIDIA DGX A100 (any) for xccl: MPI family any over ucx, vendor library nccl.
Facts last checked on 2026-11-21. Maintainer: the xccl project, from public documents (one at the site is wanted). Loaded by "module load xccl" where it is detected.
]])
whatis("Name: xccl-site/dgx-a100")
whatis("Version: 0.1.0")
whatis("Category: settings")
whatis("Keywords: xccl, NVIDIA DGX A100")
whatis("Description: settings of xccl for NVIDIA DGX A100")
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
         LmodError("xccl-settings/" .. other .. " is loaded, which holds network settings of another site than NVIDIA DGX A100;\n" ..
                   "unload it first:\n    module unload xccl-settings/" .. other)
      end
   end
   local library = os.getenv("_XCCL_ROUTE_CCL")
   if library and library ~= "nccl" then
      LmodError("xccl-route/ucc-ccl was loaded for a site with " .. library .. ", NVIDIA DGX A100 has nccl;\n" ..
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

pushenv("XCCL_SITE", "dgx-a100")
-- the storage adapters mlx5_4 and mlx5_5 must not carry collectives ("=" makes NCCL match whole names) (NCCL
-- issue 1505 (NUMA node of GPUs 4 and 5; storage adapters))
push_equals("NCCL_IB_HCA", "=mlx5_0,mlx5_1,mlx5_2,mlx5_3,mlx5_6,mlx5_7,mlx5_8,mlx5_9")
