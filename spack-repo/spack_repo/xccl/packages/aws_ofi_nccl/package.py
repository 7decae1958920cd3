# SPDX-License-Identifier: BSD-3-Clause
from spack_repo.builtin.build_systems.cuda import CudaPackage
from spack_repo.builtin.build_systems.rocm import ROCmPackage
from spack_repo.builtin.packages.aws_ofi_nccl.package import AwsOfiNccl as BuiltinAwsOfiNccl

from spack.package import *


class AwsOfiNccl(BuiltinAwsOfiNccl):
    """The libfabric plugin of NCCL and RCCL as builtin builds it, for a named GPU architecture,
    and chosen by NCCL_NET_PLUGIN, which keeps NCCL's own transports as a fallback."""

    # Fixed by commit; the release tarballs could not be had when this was written.
    version("1.21.1", tag="v1.21.1", commit="2475c4c736907e68ebeadb3848f31231ee4a44d0")
    version("1.21.0", tag="v1.21.0", commit="720b36298749b5c2ef21c555878f62a0ff3036e3")
    version("1.20.0", tag="v1.20.0", commit="a2a6d08ea98296f99596b5c18b30b8a20d74f609")
    version("1.19.2", tag="v1.19.2", commit="17120adbfd9721f4d0861360b09f05a8d9c5fba4")
    version("1.19.1", tag="v1.19.1", commit="206c02c478c6d724af09c3cbca59c06863a0b9c0")

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
        description="Architectures of the GPUs, passed on to libfabric's ROCm and to RCCL",
    )

    for _arch in CudaPackage.cuda_arch_values:
        depends_on(f"nccl cuda_arch={_arch}", when=f"+cuda cuda_arch={_arch}")
    depends_on("rccl", when="+rocm", type="run")
    for _arch in ROCmPackage.amdgpu_targets:
        depends_on(f"rccl amdgpu_target={_arch}", when=f"+rocm amdgpu_target={_arch}", type="run")

    conflicts(
        "cuda_arch=none",
        when="+cuda",
        msg="say the architecture of the GPUs that NCCL is built for, for example cuda_arch=80",
    )

    # libnccl-net-ofi.so is what NCCL_NET_PLUGIN=ofi asks for. NCCL_NET would forbid any other
    # transport, also in a job of one node, where Slingshot is not configured and the plugin gives
    # up; which jobs want it is a site's matter.
    def setup_run_environment(self, env: EnvironmentModifications) -> None:
        env.append_path("LD_LIBRARY_PATH", self.prefix.lib)
        env.set("NCCL_NET_PLUGIN", "ofi")
