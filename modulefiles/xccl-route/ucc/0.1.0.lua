-- SPDX-License-Identifier: BSD-3-Clause
-- Rendered by site-configs/tools/render from site-configs/routes.yaml; do not edit.
help([[
Route ucc of xccl: UCC under Open MPI, with its own transports.
Loading another xccl-route replaces this one. It is of release 0.1.0 of xccl.
]])
whatis("Name: xccl-route/ucc")
whatis("Version: 0.1.0")
whatis("Category: settings")
whatis("Keywords: xccl, MPI, collectives, route")
whatis("Description: Open MPI hands collectives to UCC, NCCL and RCCL excluded")
family("xccl_route")

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
local site = os.getenv("XCCL_SITE") or "" -- may be empty: a site can be loaded later
if mode() == "load" then
   local refused = {
      ["alps"] = "UCC needs UCX, and Slingshot has libfabric only; Cray MPICH has no UCC either",
      ["frontier"] = "UCC needs UCX, and Slingshot has libfabric only; Cray MPICH has no UCC either",
      ["isambard-ai"] = "UCC needs UCX, and Slingshot has libfabric only; Cray MPICH has no UCC either",
      ["lumi-g"] = "UCC needs UCX, and Slingshot has libfabric only; Cray MPICH has no UCC either",
      ["perlmutter"] = "UCC needs UCX, and Slingshot has libfabric only; Cray MPICH has no UCC either",
   }
   if refused[site] then
      LmodError("route ucc cannot work on site " .. site .. ": " .. refused[site] ..
                ".\nUse the default instead:\n    module load xccl-route/xccl")
   end
   for _, module in ipairs({"MPICH", "mpich", "cray-mpich", "cray-mpich-abi", "ParaStationMPI", "psmpi", "MVAPICH2", "mvapich2", "mvapich", "mvapich-plus", "impi", "intel-mpi", "intel-oneapi-mpi"}) do
      if isloaded(module) then
         LmodError("route ucc goes through Open MPI, but " .. module .. " is loaded; load Open MPI first, for example\n" ..
                   "    module load openmpi")
      end
   end
end

pushenv("XCCL_ROUTE", "ucc")
-- UCC is off by default in Open MPI (Open MPI pull request 9009)
pushenv("OMPI_MCA_coll_ucc_enable", "1")
-- UCC's default of 10 loses against coll/accelerator (78) and coll/tuned (30) (Open MPI issue 9885)
pushenv("OMPI_MCA_coll_ucc_priority", "100")
-- HCOLL is called beside UCC where both are installed (UCC issue 1197); until HPC-X without HCOLL
pushenv("OMPI_MCA_coll_hcoll_enable", "0")
-- an installed or personal ucc.conf may choose transports, this one chooses nothing (an empty name is as
-- good, but Lmod cannot take it back) (UCC sources, src/core/ucc_constructor.c, src/components/cl/ucc_cl.c
-- and contrib/ucc.conf)
pushenv("UCC_CONFIG_FILE", "/dev/null")
-- without it UCC may pick NCCL or RCCL on its own (the blog unloads the NCCL module for this); excluding
-- needs UCC 1.1 (JSC blog, "MPI, UCC and NCCL on JUWELS Booster")
pushenv("UCC_TLS", "^nccl,rccl")
