-- SPDX-License-Identifier: BSD-3-Clause
-- Rendered by site-configs/tools/render from site-configs/routes.yaml; do not edit.
help([[
Route ucc-ccl of xccl: UCC under Open MPI, over NCCL or RCCL.
Loading another xccl-route replaces this one. It is of release 0.1.0 of xccl.
]])
whatis("Name: xccl-route/ucc-ccl")
whatis("Version: 0.1.0")
whatis("Category: settings")
whatis("Keywords: xccl, MPI, collectives, route")
whatis("Description: Open MPI hands collectives to UCC, which runs them on NCCL or RCCL")
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
local library_of = { -- site, vendor library
   ["alps"] = "nccl",
   ["dgx-a100"] = "nccl",
   ["dgx-h100"] = "nccl",
   ["frontier"] = "rccl",
   ["generic-amd"] = "rccl",
   ["generic-nvidia"] = "nccl",
   ["isambard-ai"] = "nccl",
   ["jupiter"] = "nccl",
   ["jureca-dc"] = "nccl",
   ["juwels-booster"] = "nccl",
   ["lumi-g"] = "rccl",
   ["perlmutter"] = "nccl",
   ["sim"] = "nccl",
}
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
      LmodError("route ucc-ccl cannot work on site " .. site .. ": " .. refused[site] ..
                ".\nUse the default instead:\n    module load xccl-route/xccl")
   end
   for _, module in ipairs({"MPICH", "mpich", "cray-mpich", "cray-mpich-abi", "ParaStationMPI", "psmpi", "MVAPICH2", "mvapich2", "mvapich", "mvapich-plus", "impi", "intel-mpi", "intel-oneapi-mpi"}) do
      if isloaded(module) then
         LmodError("route ucc-ccl goes through Open MPI, but " .. module .. " is loaded; load Open MPI first, for example\n" ..
                   "    module load openmpi")
      end
   end
end

pushenv("XCCL_ROUTE", "ucc-ccl")
-- UCC is off by default in Open MPI (Open MPI pull request 9009)
pushenv("OMPI_MCA_coll_ucc_enable", "1")
-- UCC's default of 10 loses against coll/accelerator (78) and coll/tuned (30) (Open MPI issue 9885)
pushenv("OMPI_MCA_coll_ucc_priority", "100")
-- HCOLL is called beside UCC where both are installed (UCC issue 1197); until HPC-X without HCOLL
pushenv("OMPI_MCA_coll_hcoll_enable", "0")
-- the ucc.conf that UCC can install hides NCCL (UCC_CL_BASIC_TLS=^sharp,nccl); this one hides nothing (UCC
-- sources, src/core/ucc_constructor.c, src/components/cl/ucc_cl.c and contrib/ucc.conf)
pushenv("UCC_CONFIG_FILE", "/dev/null")

-- the vendor library of the site at load holds at unload
local library = library_of[site] or "nccl"
if mode() == "unload" then
   library = os.getenv("_XCCL_ROUTE_CCL")
end
setenv("_XCCL_ROUTE_CCL", library or "nccl")
if library == "nccl" then
   -- UCC scores its CUDA transport (40) and may score UCP over NCCL (20) (JSC blog, "MPI, UCC and NCCL on
   -- JUWELS Booster")
   pushenv("UCC_TL_NCCL_TUNE",
           "allreduce:cuda:inf#bcast:cuda:inf#reduce:cuda:inf#reduce_scatter:cuda:inf#allgather:cuda:inf#allgatherv:cuda:inf#alltoall:cuda:inf#alltoallv:cuda:inf#gather:cuda:inf#gatherv:cuda:inf#scatter:cuda:inf#scatterv:cuda:inf")
end
if library == "rccl" then
   -- UCC may score UCP over RCCL (20) (UCC user guide)
   pushenv("UCC_TL_RCCL_TUNE",
           "allreduce:rocm:inf#bcast:rocm:inf#reduce:rocm:inf#reduce_scatter:rocm:inf#allgather:rocm:inf#allgatherv:rocm:inf#alltoall:rocm:inf#alltoallv:rocm:inf#gather:rocm:inf#gatherv:rocm:inf#scatter:rocm:inf#scatterv:rocm:inf")
end
