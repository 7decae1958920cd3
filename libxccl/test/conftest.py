# SPDX-License-Identifier: BSD-3-Clause
"""Settings of MPI itself for every test below: they leave out what is slow in MPI_Init and not used.

Hundreds of jobs start here, each on one host. What the caller has set stays.
"""

import os

# hwloc's look at PCI devices reads the list of all their names into a block that grows with each
# name. AddressSanitizer copies it every time: a second of every rank.
os.environ.setdefault("HWLOC_COMPONENTS", "-pci")
# Without an adapter of theirs, the libraries of Omni-Path measure the clock for 0.2 s (Open MPI
# 4.1), or wait 1 s for one to appear (the wheel of 5.0).
os.environ.setdefault("OMPI_MCA_mtl", "^ofi,psm,psm2")
os.environ.setdefault("OMPI_MCA_btl", "^ofi")
