# SPDX-License-Identifier: BSD-3-Clause
from spack_repo.builtin.build_systems.cuda import CudaPackage
from spack_repo.builtin.build_systems.rocm import ROCmPackage
from spack_repo.builtin.packages.openmpi.package import Openmpi as BuiltinOpenmpi

from spack.package import *


class Openmpi(BuiltinOpenmpi):
    """Open MPI as builtin builds it, with a UCC that speaks to the same GPUs: builtin pairs +cuda
    with ucc~cuda, and cannot pair +rocm with any."""

    with when("fabrics=ucc"):
        depends_on("ucc+cuda+nccl", when="+cuda")
        depends_on("ucc+rocm+rccl", when="+rocm")
        for _arch in CudaPackage.cuda_arch_values:
            depends_on(f"ucc cuda_arch={_arch}", when=f"+cuda cuda_arch={_arch}")
        for _arch in ROCmPackage.amdgpu_targets:
            depends_on(f"ucc amdgpu_target={_arch}", when=f"+rocm amdgpu_target={_arch}")
    with when("fabrics=ucx +rocm"):
        depends_on("ucx+rocm")
