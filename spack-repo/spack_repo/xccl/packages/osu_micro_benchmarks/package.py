# SPDX-License-Identifier: BSD-3-Clause
from spack_repo.builtin.packages.osu_micro_benchmarks.package import (
    OsuMicroBenchmarks as BuiltinOsuMicroBenchmarks,
)

from spack.package import *


class OsuMicroBenchmarks(BuiltinOsuMicroBenchmarks):
    """The OSU micro-benchmarks as builtin builds them, with the vendor's library for the same GPUs:
    builtin passes no architecture on, and drops its benchmarks silently, as NCCL asks for one."""

    for _arch in BuiltinOsuMicroBenchmarks.cuda_arch_values:
        depends_on(f"nccl cuda_arch={_arch}", when=f"+cuda+xccl cuda_arch={_arch}")
    for _arch in BuiltinOsuMicroBenchmarks.amdgpu_targets:
        depends_on(f"rccl amdgpu_target={_arch}", when=f"+rocm+xccl amdgpu_target={_arch}")
