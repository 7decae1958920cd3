# SPDX-License-Identifier: BSD-3-Clause
from spack_repo.builtin.packages.nccl_tests.package import NcclTests as BuiltinNcclTests

from spack.package import *


class NcclTests(BuiltinNcclTests):
    """The NCCL tests as builtin builds them, with an NCCL for the same GPUs."""

    git = "https://github.com/NVIDIA/nccl-tests.git"

    version("2.19.6", tag="v2.19.6", commit="a0b82b2260cf5152b9f8c061bbf7eaf0ba096432")

    for _arch in BuiltinNcclTests.cuda_arch_values:
        depends_on(f"nccl cuda_arch={_arch}", when=f"cuda_arch={_arch}")

    conflicts(
        "cuda_arch=none",
        msg="say the architecture of the GPUs that NCCL is built for, for example cuda_arch=80",
    )
