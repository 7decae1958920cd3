# SPDX-License-Identifier: BSD-3-Clause
from spack_repo.builtin.build_systems.autotools import AutotoolsPackage
from spack_repo.builtin.build_systems.cuda import CudaPackage
from spack_repo.builtin.build_systems.rocm import ROCmPackage

from spack.package import *


class AwsOfiNccl(AutotoolsPackage):
    """The libfabric plugin of NCCL and RCCL, for Slingshot and EFA. A recipe of its own, because
    that of spack-packages before v2026.06.0 knows CUDA only."""

    homepage = "https://github.com/aws/aws-ofi-nccl"
    url = (
        "https://github.com/aws/aws-ofi-nccl/releases/download/v1.19.0/aws-ofi-nccl-1.19.0.tar.gz"
    )
    git = "https://github.com/aws/aws-ofi-nccl.git"

    license("Apache-2.0")

    # By commit: the release tarballs could not be had when this was written.
    version("1.21.1", tag="v1.21.1", commit="2475c4c736907e68ebeadb3848f31231ee4a44d0")
    version(
        "1.21.0",
        tag="v1.21.0",
        commit="720b36298749b5c2ef21c555878f62a0ff3036e3",
        submodules=True,
    )
    version("1.20.0", tag="v1.20.0", commit="a2a6d08ea98296f99596b5c18b30b8a20d74f609")
    version("1.19.2", tag="v1.19.2", commit="17120adbfd9721f4d0861360b09f05a8d9c5fba4")
    version("1.19.1", tag="v1.19.1", commit="206c02c478c6d724af09c3cbca59c06863a0b9c0")
    version("1.19.0", sha256="fd8ecd15f0de88e07b2194637938dadcf247ad3b5150651dfd0bb0c4bb32ff3c")

    variant("cuda", default=True, description="Serve NCCL")
    variant("rocm", default=False, description="Serve RCCL")
    variant(
        "cuda_arch",
        default="none",
        values=("none",) + CudaPackage.cuda_arch_values,
        multi=True,
        when="+cuda",
        description="Architectures of the GPUs, passed on to NCCL",
    )
    variant(
        "amdgpu_target",
        default="none",
        values=("none",) + ROCmPackage.amdgpu_targets,
        multi=True,
        when="+rocm",
        description="Architectures of the GPUs, passed on to RCCL",
    )
    variant("trace", default=False, description="Print trace messages")
    variant("tests", default=False, description="Build the tests, which need an MPI")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    for _tool in ("autoconf", "automake", "libtool"):
        depends_on(_tool, type="build")
    # A libfabric that knows nothing of the GPU has NCCL copy everything through host memory.
    depends_on("libfabric+cuda", when="+cuda")
    depends_on("libfabric+rocm", when="+rocm")
    depends_on("hwloc")
    depends_on("mpi", when="+tests")
    with when("+cuda"):
        depends_on("cuda")
        depends_on("nccl fabrics=auto")
        for _arch in CudaPackage.cuda_arch_values:
            depends_on(f"nccl cuda_arch={_arch}", when=f"cuda_arch={_arch}")
    with when("+rocm"):
        depends_on("hip")
        depends_on("rccl", type="run")
        for _arch in ROCmPackage.amdgpu_targets:
            depends_on(f"rccl amdgpu_target={_arch}", when=f"amdgpu_target={_arch}", type="run")

    conflicts("+cuda", when="+rocm", msg="one of +cuda and +rocm: ~cuda+rocm serves RCCL")
    conflicts("~cuda", when="~rocm", msg="one of +cuda (NCCL) and +rocm (RCCL)")
    conflicts(
        "cuda_arch=none",
        when="+cuda",
        msg="say the architecture of the GPUs that NCCL is built for, for example cuda_arch=80",
    )
    conflicts("%gcc@:9", when="@1.21:", msg="the plugin is C++20 from 1.21 on")

    def autoreconf(self, spec, prefix):
        Executable("./autogen.sh")()

    def configure_args(self):
        spec = self.spec
        args = [f"--with-libfabric={spec['libfabric'].prefix}"]
        args.append(f"--with-hwloc={spec['hwloc'].prefix}")
        if spec.satisfies("+cuda"):
            args.append(f"--with-cuda={spec['cuda'].prefix}")
        if spec.satisfies("+rocm"):
            args.append(f"--with-rocm={spec['hip'].prefix}")
        if spec.satisfies("+tests"):
            args.append(f"--with-mpi={spec['mpi'].prefix}")
        return args + self.enable_or_disable("trace") + self.enable_or_disable("tests")

    # libnccl-net-ofi.so is what NCCL_NET_PLUGIN=ofi asks for. NCCL_NET would forbid any other
    # transport, also in a job of one node, where Slingshot is not configured and the plugin gives
    # up; which jobs want it is a site's matter.
    def setup_run_environment(self, env: EnvironmentModifications) -> None:
        env.append_path("LD_LIBRARY_PATH", self.prefix.lib)
        env.set("NCCL_NET_PLUGIN", "ofi")

    def setup_dependent_run_environment(
        self, env: EnvironmentModifications, dependent_spec: Spec
    ) -> None:
        env.append_path("LD_LIBRARY_PATH", self.prefix.lib)
