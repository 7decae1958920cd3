# SPDX-License-Identifier: BSD-3-Clause
"""Toolchain cpeGNU: the Cray programming environment with GCC, by the name that today's sites use.

Upstream knows it as CrayGNU only. Sites with a cpeGNU of their own (LUMI) have one already; others name this file:
eb --include-toolchains=easyconfigs/toolchains/cpegnu.py ...
"""

from easybuild.toolchains.craygnu import CrayGNU
from easybuild.tools.toolchain.toolchain import SYSTEM_TOOLCHAIN_NAME


class CpeGNU(CrayGNU):
    """Compiler drivers of the Cray programming environment over GCC, and Cray MPICH."""

    NAME = "cpeGNU"
    SUBTOOLCHAIN = SYSTEM_TOOLCHAIN_NAME
