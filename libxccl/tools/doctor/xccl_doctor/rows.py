# SPDX-License-Identifier: BSD-3-Clause
"""What a row of the registry holds."""

from collections import namedtuple

ERROR, WARNING = "error", "warning"

Row = namedtuple("Row", "severity cause remedy")
