# SPDX-License-Identifier: BSD-3-Clause
from spack_repo.builtin.build_systems.rocm import ROCmPackage
from spack_repo.builtin.packages.aws_ofi_rccl.package import AwsOfiRccl as BuiltinAwsOfiRccl

from spack.package import *


class AwsOfiRccl(BuiltinAwsOfiRccl):
    """The frozen libfabric plugin of RCCL, at fixed commits, to repeat what was measured with it;
    for anything new: aws-ofi-nccl+rocm."""

    # The repository has no releases: the number is the version of aws-ofi-nccl it forked, then the
    # day. The first two are those of "RCCL AllReduce Performance" (2023), the last is for ROCm 6.
    version("1.4.0.20240301", commit="17d41cbf5618536c4b1076d29748416ab307040f", deprecated=True)
    version("1.4.0.20230315", commit="52cbc4766401be4410fd0aa5207f2f9b6226c321", deprecated=True)
    version("1.4.0.20220714", commit="8afccecad8c6987163d2783680555a5da51c5452", deprecated=True)

    variant(
        "amdgpu_target",
        default="none",
        values=("none",) + ROCmPackage.amdgpu_targets,
        multi=True,
        description="Architectures of the GPUs, passed on to RCCL",
    )
    for _arch in ROCmPackage.amdgpu_targets:
        depends_on(f"rccl amdgpu_target={_arch}", when=f"amdgpu_target={_arch}")

    # hipPointerAttribute_t.memoryType was renamed in ROCm 6.
    depends_on("hip@:5", when="@1.4:1.4.0.20230315")
