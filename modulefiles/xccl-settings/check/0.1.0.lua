-- SPDX-License-Identifier: BSD-3-Clause
-- Rendered by site-configs/tools/render from site-configs/routes.yaml; do not edit.
help([[
Compare the arguments of all ranks in blocking collectives, and end a hang early. Sets:
    XCCL_CHECK=1: name the rank whose arguments differ in a blocking collective
    XCCL_TIMEOUT=120: end a collective that hangs after two minutes; without it the wait is only warned of
]])
whatis("Name: xccl-settings/check")
whatis("Version: 0.1.0")
whatis("Category: settings")
whatis("Keywords: xccl, settings")
whatis("Description: Compare the arguments of all ranks in blocking collectives, and end a hang early")

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
-- name the rank whose arguments differ in a blocking collective (xccl's own variables (xccl-info -c))
pushenv("XCCL_CHECK", "1")
-- end a collective that hangs after two minutes; without it the wait is only warned of (xccl's own variables
-- (xccl-info -c))
pushenv("XCCL_TIMEOUT", "120")
