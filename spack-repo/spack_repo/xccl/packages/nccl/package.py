# SPDX-License-Identifier: BSD-3-Clause
from spack_repo.builtin.packages.nccl.package import Nccl as BuiltinNccl

from spack.package import *


class Nccl(BuiltinNccl):
    """NCCL as builtin builds it, with the versions that builtin lacks."""

    git = "https://github.com/NVIDIA/nccl.git"  # builtin names it from v2026.06.0 on

    # The digest is that of EasyBuild's NCCL-2.30.4 easyconfig; the others are fixed by commit.
    version("2.30.7-1", tag="v2.30.7-1", commit="73cf112295c33aee2b895f329f592f2a9b4b0f97")
    version("2.30.4-1", sha256="fe12cb244a4aea4c802d0a18d1072e10f102fc39c2530a8251c2abdaeea9ecba")
    version("2.30.3-1", tag="v2.30.3-1", commit="6da422082f910a8dd230f7e42e26ece4dc37bccc")
    version("2.15.1-1", tag="v2.15.1-1", commit="da8152e57a6dc5fdf8976da06e884fa90502ab78")
