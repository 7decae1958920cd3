# SPDX-License-Identifier: BSD-3-Clause
from spack_repo.builtin.build_systems.rocm import ROCmPackage
from spack_repo.builtin.packages.rccl_tests.package import RcclTests as BuiltinRcclTests

from spack.package import *


class RcclTests(BuiltinRcclTests):
    """The RCCL tests as builtin builds them, at a fixed commit and with an RCCL for the same
    GPUs."""

    # Upstream tags nothing: the day of the commit on branch develop, which builtin prefers.
    version("2024.09.10", commit="ae3e6357cb3514d5649b3b5dfaa80cb2d2af3532", preferred=True)
    version("develop", branch="develop")

    variant(
        "amdgpu_target",
        default="none",
        values=("none",) + ROCmPackage.amdgpu_targets,
        multi=True,
        description="Architectures of the GPUs the tests and RCCL are built for",
    )
    for _arch in ROCmPackage.amdgpu_targets:
        depends_on(f"rccl amdgpu_target={_arch}", when=f"amdgpu_target={_arch}")

    def cmake_args(self):
        archs = [arch for arch in self.spec.variants["amdgpu_target"].value if arch != "none"]
        more = [self.define("GPU_TARGETS", archs)] if archs else []
        return super().cmake_args() + more
