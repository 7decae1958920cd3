# SPDX-License-Identifier: BSD-3-Clause
"""The pages of the public headers leave nothing out, and refuse what they do not understand."""

import re
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "docs/tools"))

import api  # noqa: E402

HEADER = """\
/**
 * @file one.h
 * @brief A header.
 */
#define ONE_H

/**
 * @brief Add @p count numbers.
 *
 * More about it, see ::oneSuccess and other().
 * @param[in]  count  At least 1;
 *                    not more than 9.
 * @param[out] sum_p  The sum.
 * @return ::oneSuccess.
 */
XCCL_EXPORT int oneAdd(int count,
                       long *sum_p);
XCCL_EXPORT int oneAddAll(void);
"""


@pytest.mark.parametrize("name", ["xccl.h", "xccl_mpi.h", "mpix.h"])
def test_every_function(name):
    """Each exported function of a header has its declaration on the page."""
    text = (api.INCLUDE / name).read_text(encoding="utf-8")
    functions = re.findall(r"^XCCL_EXPORT [^;({]*?(\w+)\(", text, re.MULTILINE)
    page = api.page("a page", [name])
    assert functions
    missing = [one for one in functions if not re.search(rf"^[\w ]*[ *]{one}\(", page, re.M)]
    assert not missing
    assert "@" not in re.sub(r"`[^`]*`", "", page)


def test_parts(tmp_path):
    (tmp_path / "one.h").write_text(HEADER)
    header = api.parse(tmp_path / "one.h")
    (entry,) = header.entries
    assert entry.names == ["oneAdd", "oneAddAll"]
    text = "\n".join(api.entry_text(entry))
    assert "Add `count` numbers." in text
    assert "| `count` | in | At least 1; not more than 9. |" in text
    assert "| `sum_p` | out | The sum. |" in text
    assert "**Returns:** `oneSuccess`." in text
    assert text.index("More about it") < text.index("| parameter") < text.index("**Returns")


def test_unknown_command():
    with pytest.raises(SystemExit, match="@retval"):
        list(api.described("@brief A call.\n@retval 0 good"))
