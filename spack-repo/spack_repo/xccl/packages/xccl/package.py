# SPDX-License-Identifier: BSD-3-Clause
import json
import os
import re

from spack_repo.builtin.build_systems.cmake import CMakePackage
from spack_repo.builtin.build_systems.cuda import CudaPackage
from spack_repo.builtin.build_systems.rocm import ROCmPackage

from spack.package import *

# site-configs/tools/render writes this list: one folder there is one site.
SITES = (
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
)


class Xccl(CMakePackage, CudaPackage, ROCmPackage):
    """MPI collectives on GPU buffers through the vendor's library (NCCL, RCCL), in unmodified
    programs: an MPI interposer, one C API over the vendors' libraries, a simulated accelerator,
    and the tools to measure them."""

    homepage = "https://xccl.example.org"
    url = "https://xccl.example.org/releases/xccl-0.1.0.tar.gz"
    git = "https://xccl.example.org/xccl.git"

    maintainers("xccl-maintainers")
    license("BSD-3-Clause", checked_by="xccl-maintainers")
    executables = ("^xccl-info$",)
    test_requires_compiler = False

    version("main", branch="main")
    version("0.1.0", sha256="2be4f52f8f00b22784b9e05d5fdab9216bc4112987db73d22aa5e297b1922729")

    variant("mpi", default=True, description="Build the interposer and xccl-perf for the MPI")
    variant("hwloc", default=True, description="Bind by hwloc where no site's map applies")
    variant("sim", default=True, description="Build the simulated accelerator")
    variant(
        "vendor",
        values=any_combination_of("nccl", "rccl").with_default("nccl"),
        when="+cuda",
        description="Vendor's library whose path is built in",
    )
    variant(
        "vendor",
        values=any_combination_of("nccl", "rccl").with_default("rccl"),
        when="+rocm",
        description="Vendor's library whose path is built in",
    )
    variant(
        "site",
        default="detect",
        values=("detect",) + SITES,
        multi=False,
        description="Site whose settings are used; detect: where the environment is made",
    )

    depends_on("c", type="build")
    depends_on("cmake@3.20:", type="build")
    depends_on("mpi", when="+mpi")
    depends_on("hwloc@2:", when="+hwloc")
    depends_on("pkgconfig", type="build", when="+hwloc")

    # Opened with dlopen, so needed to run, not to link; a process that has loaded one keeps it.
    depends_on("nccl@2.10:", type="run", when="vendor=nccl")
    for _arch in CudaPackage.cuda_arch_values:
        depends_on(f"nccl cuda_arch={_arch}", type="run", when=f"vendor=nccl cuda_arch={_arch}")
    depends_on("rccl", type="run", when="vendor=rccl")
    for _arch in ROCmPackage.amdgpu_targets:
        depends_on(
            f"rccl amdgpu_target={_arch}", type="run", when=f"vendor=rccl amdgpu_target={_arch}"
        )

    conflicts(
        "+cuda",
        when="+rocm",
        msg="one of +cuda and +rocm: the builtin recipes of their libraries exclude each other. "
        "xccl itself needs neither to be built and serves both at run time: use ~cuda~rocm and "
        "XCCL_CCL_LIBRARY",
    )
    conflicts("vendor=rccl", when="+cuda", msg="vendor=rccl needs +rocm")
    conflicts("vendor=nccl", when="+rocm", msg="vendor=nccl needs +cuda")
    conflicts(
        "cuda_arch=none",
        when="+cuda vendor=nccl",
        msg="say the architecture of the GPUs that NCCL is built for, for example cuda_arch=80",
    )
    for _platform in ("darwin", "windows", "freebsd"):
        conflicts(f"platform={_platform}", msg="the vendors' libraries exist on Linux only")

    root_cmakelists_dir = "libxccl"

    @classmethod
    def determine_version(cls, exe):
        output = Executable(exe)("--version", output=str, error=str, fail_on_error=False)
        match = re.match(r"xccl-info (\S+)", output)
        return match.group(1) if match else None

    @classmethod
    def determine_variants(cls, exes, version):
        text = Executable(exes[0])("--json", output=str, error=os.devnull, fail_on_error=False)
        try:
            found = json.loads(text)["installation"]
        except (ValueError, KeyError):
            return None
        variants = "+mpi" if any(mpi["interposer"] for mpi in found["mpi"]) else "~mpi"
        variants += "+sim" if any(found["simulated"].values()) else "~sim"
        if "nccl=" in found["ccl_path"]:
            return variants + " +cuda~rocm vendor=nccl"
        if "rccl=" in found["ccl_path"]:
            return variants + " ~cuda+rocm vendor=rccl"
        return variants + " ~cuda~rocm"

    def cmake_args(self):
        spec = self.spec
        args = [
            # Modules, scripts and the programs themselves find lib/ beside bin/.
            self.define("CMAKE_INSTALL_LIBDIR", "lib"),
            self.define_from_variant("XCCL_MPI", "mpi"),
            self.define_from_variant("XCCL_SIM", "sim"),
            self.define("XCCL_TESTS", self.run_tests),
            # hwloc is looked for through pkg-config only; a stray one must not be found.
            self.define("CMAKE_DISABLE_FIND_PACKAGE_PkgConfig", self.spec.satisfies("~hwloc")),
        ]
        if spec.satisfies("+mpi"):
            args.append(self.define("XCCL_MPICC", spec["mpi"].mpicc))
        paths = []
        if spec.satisfies("vendor=nccl"):
            paths.append("nccl=" + join_path(self._libdir("nccl"), "libnccl.so.2"))
        if spec.satisfies("vendor=rccl"):
            paths.append("rccl=" + join_path(self._libdir("rccl"), "librccl.so.1"))
        args.append(self.define("XCCL_CCL_PATH", ";".join(paths)))
        return args

    def _libdir(self, name):
        """Folder of a library, without asking whether an external one can be read here."""
        prefix = self.spec[name].prefix
        return prefix.lib64 if os.path.isdir(prefix.lib64) else prefix.lib

    @run_after("install")
    def install_site_files(self):
        site = self.spec.variants["site"].value
        arguments = [] if site == "detect" else ["--site", site]
        with working_dir(self.stage.source_path):
            Executable(join_path("ci", "install-packaged"))(*arguments, self.prefix)

    # The environment of a user: what modulefiles/xccl and env/xccl.sh set, from the same facts.

    def setup_run_environment(self, env: EnvironmentModifications) -> None:
        env.set("XCCL_ROOT", self.prefix)
        env.prepend_path("LD_LIBRARY_PATH", self.prefix.lib)
        site = self._site()
        if not site:
            return
        env.set("XCCL_SITE", site)
        facts = join_path(self.prefix.share, "xccl", "sites", site, "site.json")
        with open(facts, encoding="utf-8") as file:
            facts = json.load(file)
        route = os.environ.get("XCCL_ROUTE") or "xccl"
        routes = facts["resolved"]["routes"]
        if route not in routes:
            raise RuntimeError(
                f"XCCL_ROUTE names the unknown route '{route}'; routes: {' '.join(routes)}"
            )
        if routes[route]["refused"]:
            raise RuntimeError(
                f"XCCL_ROUTE={route} cannot work on site {site}: {routes[route]['refused']}"
            )
        env.set("XCCL_ROUTE", route)
        loaded = [name.split("/")[0] for name in os.environ.get("LOADEDMODULES", "").split(":")]
        guards = {v["name"]: v.get("unless_module") for v in facts["variables"]}
        for name, value in facts["resolved"]["shell"].items():
            if guards.get(name) not in loaded:
                env.set(name, value)
        for name, value in routes[route]["variables"].items():
            env.set(name, value)

    def _site(self):
        """What XCCL_SITE names; else the site of the variant; else what is recognised here."""
        folder = join_path(self.prefix.share, "xccl")
        if not os.path.isdir(join_path(folder, "sites")):
            return ""  # an installation of the library alone
        site = os.environ.get("XCCL_SITE", "")
        if site and site not in os.listdir(join_path(folder, "sites")):
            raise RuntimeError(f"XCCL_SITE names the unknown site '{site}'")
        if not site and self.spec.satisfies("site=detect"):
            detect = join_path(folder, "env", "sites", "detect.sh")
            site = Executable("/bin/sh")(
                "-c",
                '_xccl_site=; . "$0" && _xccl_detect; echo "$_xccl_site"',
                detect,
                output=str,
                fail_on_error=False,
            ).strip()
        elif not site:
            site = self.spec.variants["site"].value
        if not site:
            tty.debug("xccl: no site is recognised here; XCCL_SITE or site= names one")
        return site

    # Stand-alone tests, on the installed tree.

    def test_info(self):
        """xccl-info reports its version"""
        xccl_info = which(join_path(self.prefix.bin, "xccl-info"), required=True)
        assert f"xccl-info {self.version}" in xccl_info("--version", output=str, error=str)

    def test_harmless(self):
        """the interposer is preloaded into a program without MPI"""
        if self.spec.satisfies("~mpi"):
            raise SkipTest("built without MPI")
        true = which("true", required=True)
        true(extra_env={"LD_PRELOAD": join_path(self.prefix.lib, "libxccl-mpi.so")})

    def test_interposed(self):
        """an MPI program's allreduce on simulated GPUs is taken over and verified"""
        if self.spec.satisfies("~mpi") or self.spec.satisfies("~sim"):
            raise SkipTest("needs the interposer and the simulated accelerator")
        report = join_path(self.test_suite.stage, "allreduce.json")
        environment = {
            "OMPI_ALLOW_RUN_AS_ROOT": "1",
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            "OMPI_MCA_rmaps_base_oversubscribe": "1",
            "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
        }
        mpiexec = which("mpiexec", path=[self.spec["mpi"].prefix.bin])
        if mpiexec is None:
            raise SkipTest("the MPI has no mpiexec: a batch system starts its programs")
        run, perf = (join_path(self.prefix.bin, name) for name in ("xccl-run", "xccl-perf"))
        arguments = ["-n", "2", run, "--sim", "cuda:2", "--", perf]
        arguments += ["--coll", "allreduce", "--max", "64k", "--iters", "5", "--json", report]
        mpiexec(*arguments, extra_env=environment)
        with open(report, encoding="utf-8") as file:
            results = json.load(file)["results"]
        assert results, "no size was measured"
        for result in results:
            assert result["verified"], f"wrong results: {result}"
            assert result["path"] == "ccl", f"not taken over: {result}"
