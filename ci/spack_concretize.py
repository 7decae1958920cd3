# SPDX-License-Identifier: BSD-3-Clause
"""Concretize environments one after the other in one Spack: spack python spack_concretize.py FOLDER ...

The packages are read once, which is half of the time. Where an environment cannot be concretized, the reason is left in
its folder as error.txt.
"""

import sys
from pathlib import Path

import spack.environment
import spack.error


def main(folders):
    for folder in folders:
        try:
            with spack.environment.Environment(folder) as environment:
                environment.concretize(force=True)
                environment.write()
        except spack.error.SpackError as error:
            Path(folder, "error.txt").write_text(str(error), encoding="utf-8")


main(sys.argv[1:])
