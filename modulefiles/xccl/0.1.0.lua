-- SPDX-License-Identifier: BSD-3-Clause
-- Rendered by site-configs/tools/render from site-configs; do not edit.
help([[
xccl runs the MPI collectives of unmodified GPU programs at the speed of the vendor's library, and often faster.

    module load xccl                                   load your MPI and CUDA or ROCm first
    srun -N 1 -n 4 --gpus-per-node=4 --cpus-per-task=8 --gpu-bind=none xccl-run ./app
                                                       run with it; --cpus-per-task: cores per GPU
    export XCCL_LOG=info                               before it: see that it is active
    xccl-doctor                                        see what is wrong

    module load xccl-route/mpi                         to compare: MPI alone; also ucc, ucc-ccl, and xccl again
    module load xccl-auto                              preload it into every program: no xccl-run is needed
    module load xccl-site/<site>                       if this machine is not recognised; module avail xccl-site

More: man 7 xccl, and $XCCL_ROOT/share/doc/xccl
]])
whatis("Name: xccl")
whatis("Version: 0.1.0")
whatis("Category: runtime library, MPI, GPU")
whatis("Keywords: MPI, collectives, NCCL, RCCL, UCC, GPU")
whatis("Description: xccl runs the MPI collectives of unmodified GPU programs at the speed of the vendor's library, and often faster.")

local root = "@prefix@" -- filled in at install
local lib = "@lib@"
local default_site = "@site@" -- a site, or nothing to detect it

local sites = {
   "alps",
   "dgx-a100",
   "dgx-h100",
   "frontier",
   "generic-amd",
   "generic-nvidia",
   "isambard-ai",
   "jupiter",
   "jureca-dc",
   "juwels-booster",
   "lumi-g",
   "perlmutter",
   "sim",
}
local routes = {
   "xccl",
   "ucc",
   "ucc-ccl",
   "mpi",
}
local detectors = { -- tried in this order: kind, what to look at, patterns, site
   {"env", "XCCL_SIM", "^..*$", "sim"},
   {"env", "CLUSTER_NAME", "^daint$", "alps"},
   {"env", "CLUSTER_NAME", "^clariden$", "alps"},
   {"env", "CLUSTER_NAME", "^santis$", "alps"},
   {"env", "LMOD_SYSTEM_NAME", "^frontier$", "frontier"},
   {"env", "LMOD_SYSTEM_NAME", "^jupiter$", "jupiter"},
   {"env", "LMOD_SYSTEM_NAME", "^jurecadc$", "jureca-dc"},
   {"env", "LMOD_SYSTEM_NAME", "^juwelsbooster$", "juwels-booster"},
   {"env", "NERSC_HOST", "^perlmutter$", "perlmutter"},
   {"env", "SYSTEMNAME", "^jupiter$", "jupiter"},
   {"env", "SYSTEMNAME", "^jurecadc$", "jureca-dc"},
   {"env", "SYSTEMNAME", "^juwelsbooster$", "juwels-booster"},
   {"env", "SLURM_CLUSTER_NAME", "^daint$", "alps"},
   {"env", "SLURM_CLUSTER_NAME", "^clariden$", "alps"},
   {"env", "SLURM_CLUSTER_NAME", "^santis$", "alps"},
   {"env", "SLURM_CLUSTER_NAME", "^frontier$", "frontier"},
   {"env", "SLURM_CLUSTER_NAME", "^isambard%-ai.*$", "isambard-ai"},
   {"env", "SLURM_CLUSTER_NAME", "^aip[12]$", "isambard-ai"},
   {"env", "SLURM_CLUSTER_NAME", "^jupiter$", "jupiter"},
   {"env", "SLURM_CLUSTER_NAME", "^jurecadc$", "jureca-dc"},
   {"env", "SLURM_CLUSTER_NAME", "^juwelsbooster$", "juwels-booster"},
   {"env", "SLURM_CLUSTER_NAME", "^lumi$", "lumi-g"},
   {"env", "SLURM_CLUSTER_NAME", "^perlmutter$", "perlmutter"},
   {"file", "/etc/FZJ/systemname", "^jupiter$", "jupiter"},
   {"file", "/etc/FZJ/systemname", "^jurecadc$", "jureca-dc"},
   {"file", "/etc/FZJ/systemname", "^juwelsbooster$", "juwels-booster"},
   {"env", "SLURMD_NODENAME", "^frontier[0-9].*$", "frontier"},
   {"file", "/proc/sys/kernel/hostname", "^frontier[0-9].*$", "frontier"},
   {"env", "SLURMD_NODENAME", "^login.*%.frontier%.olcf%.ornl%.gov$", "frontier"},
   {"file", "/proc/sys/kernel/hostname", "^login.*%.frontier%.olcf%.ornl%.gov$", "frontier"},
   {"env", "SLURMD_NODENAME", "^jwb[0-9].*$", "juwels-booster"},
   {"file", "/proc/sys/kernel/hostname", "^jwb[0-9].*$", "juwels-booster"},
   {"file", "/sys/class/dmi/id/product_name", "^DGXA100.*$", "dgx-a100"},
   {"file", "/sys/class/dmi/id/product_name", "^NVIDIA DGX A100.*$", "dgx-a100"},
   {"file", "/sys/class/dmi/id/product_name", "^DGXH100.*$", "dgx-h100"},
   {"file", "/sys/class/dmi/id/product_name", "^DGXH200.*$", "dgx-h100"},
   {"file", "/sys/class/dmi/id/product_name", "^NVIDIA DGX H100.*$", "dgx-h100"},
   {"file", "/sys/class/dmi/id/product_name", "^NVIDIA DGX H200.*$", "dgx-h100"},
   {"exists", "/proc/driver/nvidia/version", "", "generic-nvidia"},
   {"exists", "/dev/kfd", "", "generic-amd"},
}
local mpi_modules = { -- module, family
   {"OpenMPI", "openmpi"},
   {"openmpi", "openmpi"},
   {"openmpi4", "openmpi"},
   {"openmpi5", "openmpi"},
   {"hpcx", "openmpi"},
   {"hpcx-mpi", "openmpi"},
   {"MPICH", "mpich"},
   {"mpich", "mpich"},
   {"cray-mpich", "mpich"},
   {"cray-mpich-abi", "mpich"},
   {"ParaStationMPI", "mpich"},
   {"psmpi", "mpich"},
   {"MVAPICH2", "mpich"},
   {"mvapich2", "mpich"},
   {"mvapich", "mpich"},
   {"mvapich-plus", "mpich"},
   {"impi", "mpich"},
   {"intel-mpi", "mpich"},
   {"intel-oneapi-mpi", "mpich"},
}

local function first_line(path)
   local file = io.open(path)
   if not file then
      return ""
   end
   local line = file:read("*l") or ""
   file:close()
   return line
end

local function detected(detector)
   local kind, what, pattern = detector[1], detector[2], detector[3]
   if kind == "exists" then
      return isFile(what) or isDir(what) or io.open(what) ~= nil
   end
   local text = kind == "env" and (os.getenv(what) or "") or first_line(what)
   return text:find(pattern) ~= nil
end

-- The site that is named, by the user or the installation, or else detected; nil where neither is.
local function pick_site()
   local wanted = os.getenv("XCCL_SITE") or ""
   if wanted == "" and not default_site:find("^@") then
      wanted = default_site
   end
   if wanted ~= "" then
      return wanted
   end
   for _, detector in ipairs(detectors) do
      if detected(detector) then
         return detector[4]
      end
   end
   return nil
end

-- Of several that exclude each other, the one that is loaded; with the release, or without.
local function loaded_of(kind, names)
   for _, name in ipairs(names) do
      if isloaded(kind .. "/" .. name) then
         return name
      end
   end
   return nil
end

-- A site has its own modules only, so not all that there are need be installed.
local function installed(kind, names)
   local found = {}
   for _, name in ipairs(names) do
      if isAvail(kind .. "/" .. name .. "/0.1.0") then
         found[#found + 1] = name
      end
   end
   return table.concat(found, ", ")
end

local function of_this_release(kind, name)
   depends_on(kind .. "/" .. name .. "/0.1.0")
end

-- A swap unloads the old release, and with it the site and route that it had loaded, before it loads the new one.
-- Both files run in one call of Lmod and share its globals: the choice passes through one, and is gone after the call.
local function keep_choice()
   if mode() == "unload" then
      xccl_choice = {release = "0.1.0", site = loaded_of("xccl-site", sites), route = loaded_of("xccl-route", routes)}
   end
end

local function kept_choice()
   local choice = xccl_choice
   return choice and choice.release ~= "0.1.0" and choice or {}
end

local function load_site()
   local site = loaded_of("xccl-site", sites)
   if not site and mode() == "load" then
      site = kept_choice().site or pick_site()
      if site and not isAvail("xccl-site/" .. site .. "/0.1.0") then
         LmodError("XCCL_SITE names the unknown site '" .. site .. "'; sites: " .. installed("xccl-site", sites))
      end
   end
   if site then
      of_this_release("xccl-site", site)
   elseif mode() == "load" then
      LmodMessage("xccl: no site is recognised on this host; where one of these fits, load it, as module load xccl-site/generic-nvidia\n    sites: " ..
                  installed("xccl-site", sites))
   end
end

local function load_route()
   local route = loaded_of("xccl-route", routes)
   if not route and mode() == "load" then
      route = kept_choice().route or os.getenv("XCCL_ROUTE") or ""
      route = route ~= "" and route or "xccl"
      if not isAvail("xccl-route/" .. route .. "/0.1.0") then
         LmodError("XCCL_ROUTE names the unknown route '" .. route .. "'; routes: " .. installed("xccl-route", routes))
      end
   end
   if route then
      of_this_release("xccl-route", route)
   end
end

-- Settings and xccl-auto that are loaded follow to this release: those of another one have its variables, and its library.
local function bring_along()
   for _, module in ipairs(mode() == "load" and loaded_modules() or {}) do
      local name, release = module.fullName:match("^(xccl%-auto)/([^/]+)$")
      if not name then
         name, release = module.fullName:match("^(xccl%-settings/[^/]+)/([^/]+)$")
      end
      if name and release ~= "0.1.0" then
         if not isAvail(name .. "/0.1.0") then
            LmodError(module.fullName .. " is loaded, and release 0.1.0 has no such module; unload it first:\n" ..
                      "    module unload " .. name)
         end
         load(name .. "/0.1.0")
      end
   end
end

local function on_path(program)
   for folder in (os.getenv("PATH") or ""):gmatch("[^:]+") do
      if isFile(pathJoin(folder, program)) then
         return true
      end
   end
   return false
end

-- The interposer must have been built for the family of the MPI that is loaded.
local function check_mpi()
   local builds = {}
   for _, family in ipairs({"openmpi", "mpich"}) do
      if isFile(pathJoin(root, lib, "xccl/libxccl-mpi-" .. family .. ".so")) then
         builds[#builds + 1] = family
         builds[family] = true
      end
   end
   for _, entry in ipairs(mpi_modules) do
      if isloaded(entry[1]) then
         if not builds[entry[2]] then
            LmodError(entry[1] .. " is loaded, but this xccl was built for: " ..
                      (#builds > 0 and table.concat(builds, ", ") or "no MPI at all") ..
                      "\nLoad an MPI of that kind instead, or have xccl installed with XCCL_MPICC naming the compiler of " ..
                      entry[1])
         end
         return
      end
   end
   if not (on_path("mpicc") or on_path("mpiexec") or on_path("mpirun")) then
      LmodMessage("xccl: warning: no MPI is loaded yet; before you run, load it, for example\n    module load openmpi")
   end
end

if mode() == "load" and root:find("^@") then
   LmodError("this module file is a source; install xccl (make install PREFIX=...) and use its share/xccl/modulefiles")
end
if mode() == "load" and not isDir(pathJoin(root, "share/xccl")) then
   LmodError("xccl was installed in " .. root .. ", which is not there any more; where it was moved, write the modules again,\n" ..
             "from the sources of xccl 0.1.0:\n    ci/install-tree PREFIX\nand give PREFIX/share/xccl/modulefiles to module use")
end

pushenv("XCCL_ROOT", root)
prepend_path("PATH", pathJoin(root, "bin"))
prepend_path("LD_LIBRARY_PATH", pathJoin(root, lib))
prepend_path("PKG_CONFIG_PATH", pathJoin(root, lib, "pkgconfig"))
prepend_path("CMAKE_PREFIX_PATH", root)
-- man looks beside PATH by itself, unless MANPATH is set and has no empty part that stands for that search; an empty
-- part may come after load, so at unload what counts is whether the folder is there
local man = pathJoin(root, "share/man")
local searched = ":" .. (os.getenv("MANPATH") or "") .. ":"
if mode() == "unload" and searched:find(":" .. man .. ":", 1, true) or mode() ~= "unload" and not searched:find("::") then
   prepend_path("MANPATH", man)
end

-- what the tools complete in bash, and gone with them
local completions = pathJoin(root, "share/bash-completion/completions")
if myShellName() == "bash" and isFile(pathJoin(completions, "xccl-run")) then
   for _, tool in ipairs({"xccl-run", "xccl-bind", "xccl-info", "xccl-perf", "xccl-tune", "xccl-compare", "xccl-doctor"}) do
      execute{cmd="[ ! -r '" .. pathJoin(completions, tool) .. "' ] || . '" .. pathJoin(completions, tool) .. "'",
              modeA={"load"}}
      execute{cmd="complete -r " .. tool .. " 2>/dev/null; unset -f _" .. tool:gsub("-", "_"), modeA={"unload"}}
   end
end

if mode() == "load" then
   check_mpi()
end
keep_choice()
load_site()
load_route()
bring_along()
