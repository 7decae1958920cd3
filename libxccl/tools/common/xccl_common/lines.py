# SPDX-License-Identifier: BSD-3-Clause
"""The lines of a long text, by what they hold.

An expression is looked for in a line within microseconds, a plain text in hundreds of lines at
once: logs of large jobs have millions of lines, of which few say anything.
"""

BLOCK = 512  # lines


class Lines:
    """The lines of a text, numbered from 0."""

    def __init__(self, text):
        self.all = text.splitlines()
        self.blocks = [
            "\n".join(self.all[first : first + BLOCK]) for first in range(0, len(self.all), BLOCK)
        ]

    def having(self, texts):
        """(number, line) of those that hold any of these texts, in order."""
        for index, block in enumerate(self.blocks):
            held = [text for text in texts if text in block]
            if not held:
                continue
            first = index * BLOCK
            for number, line in enumerate(self.all[first : first + BLOCK], first):
                if any(text in line for text in held):
                    yield number, line
