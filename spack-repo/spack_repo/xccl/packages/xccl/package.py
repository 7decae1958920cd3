# SPDX-License-Identifier: BSD-3-Clause
import json
import os
import re

from spack_repo.builtin.build_systems.cmake import CMakePackage
from spack_repo.builtin.build_systems.cuda import CudaPackage
from spack_repo.builtin.build_systems.rocm import ROCmPackage

from spack.package import *


class Xccl(CMakePackage, CudaPackage, ROCmPackage):
    """xccl runs the MPI collectives of unmodified GPU programs at the speed of the vendor's
    library, and often faster. It has an MPI interposer, one C API over the vendors' libraries,
    a simulated accelerator, and the tools to measure them."""

    homepage = "https://xccl.example.org/xccl"
    url = "https://xccl.example.org/xccl/releases/download/v0.1.0/xccl-0.1.0.tar.gz"
    git = "https://xccl.example.org/xccl.git"

    maintainers("xccl-maintainers")
    license("BSD-3-Clause", checked_by="xccl-maintainers")
    executables = ("^xccl-info$",)
    test_requires_compiler = False

    version("main", branch="main")
    version("0.1.0", sha256="ff2c34fd7af842e26476ec5008d2096c12ba9ac1ae2622bfc7e663f4b60d3743")

    variant("mpi", default=True, description="Build the interposer and xccl-perf for the MPI")
    variant("hwloc", default=True, description="Bind by hwloc where no site's map applies")
    variant("sim", default=True, description="Build the simulated accelerator")
    variant("nccl", default=True, when="+cuda", description="Build in the path of an NCCL")
    variant("rccl", default=True, when="+rocm", description="Build in the path of an RCCL")
    variant(
        "site",
        default="detect",
        values=lambda value: re.fullmatch(r"[a-z0-9][a-z0-9-]*", value) is not None,
        multi=False,
        description="Site whose settings are used; detect: where the environment is made",
    )

    depends_on("c", type="build")
    depends_on("cxx", type="build", when="+cuda")  # nvcc compiles host code with it
    depends_on("cmake@3.20:", type="build")
    depends_on("mpi", when="+mpi")
    depends_on("hwloc@2:", when="+hwloc")
    depends_on("pkgconfig", type="build", when="+hwloc")

    # Opened with dlopen, so needed to run, not to link; a process that has loaded one keeps it.
    depends_on("nccl@2.10:", type="run", when="+nccl")
    for _arch in CudaPackage.cuda_arch_values:
        depends_on(f"nccl cuda_arch={_arch}", type="run", when=f"+nccl cuda_arch={_arch}")
    depends_on("rccl", type="run", when="+rccl")
    for _arch in ROCmPackage.amdgpu_targets:
        depends_on(f"rccl amdgpu_target={_arch}", type="run", when=f"+rccl amdgpu_target={_arch}")

    conflicts(
        "+cuda",
        when="+rocm",
        msg="one of +cuda and +rocm: the builtin recipes of their libraries exclude each other. "
        "xccl itself needs neither and serves both at run time: use ~cuda~rocm and "
        "XCCL_CCL_LIBRARY",
    )
    conflicts(
        "cuda_arch=none",
        when="+cuda",
        msg="say for which GPUs the kernels and NCCL are built, for example cuda_arch=80",
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
            return variants + " +cuda~rocm+nccl"
        if "rccl=" in found["ccl_path"]:
            return variants + " ~cuda+rocm+rccl"
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
        if spec.satisfies("+nccl"):
            paths.append("nccl=" + join_path(self._libdir("nccl"), "libnccl.so.2"))
        if spec.satisfies("+rccl"):
            paths.append("rccl=" + join_path(self._libdir("rccl"), "librccl.so.1"))
        args.append(self.define("XCCL_CCL_PATH", ";".join(paths)))
        return args + self._kernels()

    def _kernels(self):
        """Compilers and devices of the kernels: those of the spec, and none that is found by chance."""
        nvcc = hipcc = ""
        archs = []
        if self.spec.satisfies("+cuda"):
            nvcc = join_path(self.spec["cuda"].prefix.bin, "nvcc")
            archs.append(self.define("XCCL_CUDA_ARCHS", self.spec.variants["cuda_arch"].value))
        if self.spec.satisfies("+rocm"):
            hipcc = join_path(self.spec["hip"].prefix.bin, "hipcc")
            targets = self.spec.variants["amdgpu_target"].value
            archs.append(self.define("XCCL_HIP_ARCHS", targets))
        return [self.define("XCCL_NVCC", nvcc), self.define("XCCL_HIPCC", hipcc), *archs]

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

    # The environment of a user: what the installed script and Lmod modules set, from the same facts.

    def setup_run_environment(self, env: EnvironmentModifications) -> None:
        env.set("XCCL_ROOT", self.prefix)
        env.prepend_path("LD_LIBRARY_PATH", self.prefix.lib)
        script = join_path(self.prefix.share, "xccl", "env", "xccl.sh")
        if os.path.isfile(script):  # an external may be the library alone
            # It says on stderr where it does not know the site; Spack itself sets the search paths.
            env.extend(
                EnvironmentModifications.from_sourcing_file(
                    script,
                    suppress_output=">/dev/null",
                    concatenate_on_success=";",
                    exclude=["(.*)PATH", "_XCCL_(.*)"],
                )
            )

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
        preload = {"LD_PRELOAD": join_path(self.prefix.lib, "libxccl-mpi.so")}
        # the loader only says so, if it cannot load it
        said = true(extra_env=preload, output=str, error=str)
        assert not said.strip(), said

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
            assert result["path"] in ("ccl", "direct"), f"not taken over: {result}"
