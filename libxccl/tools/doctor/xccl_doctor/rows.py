# SPDX-License-Identifier: BSD-3-Clause
"""What a row of the registry holds."""

from collections import namedtuple

ERROR, WARNING = "error", "warning"

# remedy: a text, or {key: text} where the check chooses one. meaning: in place of a cause that is made of the job's
# own names, what such a finding means.
Row = namedtuple("Row", "severity cause remedy meaning")
Row.__new__.__defaults__ = (None,)
