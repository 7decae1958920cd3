-- SPDX-License-Identifier: BSD-3-Clause
-- Rendered by site-configs/tools/render from site-configs/routes.yaml; do not edit.
help([[
Log which library and network carry the collectives. Sets:
    XCCL_LOG=info: one line for every path decision of xccl
    NCCL_DEBUG=INFO: NCCL and RCCL say which network plugin they use
    UCC_LOG_LEVEL=INFO: UCC prints its score map
    UCC_COLL_TRACE=INFO: UCC 1.2 and later name the transport of every collective
    OMPI_MCA_coll_ucc_verbose=3: Open MPI says what coll/ucc does
]])
whatis("Name: xccl-settings/debug")
whatis("Version: 0.1.0")
whatis("Category: settings")
whatis("Keywords: xccl, settings")
whatis("Description: Log which library and network carry the collectives")

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
-- one line for every path decision of xccl (xccl's own variables (xccl-info -c))
pushenv("XCCL_LOG", "info")
-- NCCL and RCCL say which network plugin they use (NCCL user guide, environment variables)
pushenv("NCCL_DEBUG", "INFO")
-- UCC prints its score map (JSC blog, "MPI, UCC and NCCL on JUWELS Booster")
pushenv("UCC_LOG_LEVEL", "INFO")
-- UCC 1.2 and later name the transport of every collective (UCC user guide)
pushenv("UCC_COLL_TRACE", "INFO")
-- Open MPI says what coll/ucc does (JSC blog, "MPI, UCC and NCCL on JUWELS Booster")
pushenv("OMPI_MCA_coll_ucc_verbose", "3")
