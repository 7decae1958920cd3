# SPDX-License-Identifier: BSD-3-Clause
from spack_repo.builtin.packages.osu_micro_benchmarks.package import (
    OsuMicroBenchmarks as BuiltinOsuMicroBenchmarks,
)

from spack.package import *


class OsuMicroBenchmarks(BuiltinOsuMicroBenchmarks):
    """The OSU micro-benchmarks as builtin builds them, whose benchmarks of the vendor's library
    are built whenever GPUs are named: builtin drops them silently, as NCCL asks for cuda_arch."""

    for _arch in BuiltinOsuMicroBenchmarks.cuda_arch_values:
        depends_on(f"nccl cuda_arch={_arch}", when=f"+cuda+xccl cuda_arch={_arch}")
    for _arch in BuiltinOsuMicroBenchmarks.amdgpu_targets:
        depends_on(f"rccl amdgpu_target={_arch}", when=f"+rocm+xccl amdgpu_target={_arch}")

    requires(
        "+xccl",
        when="+cuda",
        msg="xccl-perf and OSU are compared on the same library: +cuda without NCCL is of no use",
    )
    requires(
        "+xccl",
        when="+rocm",
        msg="xccl-perf and OSU are compared on the same library: +rocm without RCCL is of no use",
    )
