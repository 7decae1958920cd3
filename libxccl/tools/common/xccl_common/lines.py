# SPDX-License-Identifier: BSD-3-Clause
"""The lines of a long text, by what they hold.

An expression is looked for in a line within microseconds, a plain text in hundreds of lines at
once: logs of large jobs have millions of lines, of which few say anything. So they are kept as they
were read, in blocks, of which only those that hold something are taken apart.
"""

from bisect import bisect_right

BLOCK = 1 << 16  # characters


class TooLong(Exception):
    """A text has more characters than it may have."""


class Block:
    """Whole lines, numbered from first on; taken apart when one of them is asked for."""

    def __init__(self, text, first):
        self.text, self.first, self.apart = text, first, None

    def lines(self):
        if self.apart is None:
            self.apart = self.text.splitlines()
        return self.apart

    def having(self, texts):
        """(number, line) of those that hold any of these texts, in order."""
        held = [text for text in texts if text in self.text]
        if held:
            for number, line in enumerate(self.lines(), self.first):
                if any(text in line for text in held):
                    yield number, line


class Lines:
    """The lines of a text, numbered from 0."""

    def __init__(self, text=""):
        self.texts, self.firsts, self.count = [], [], 0
        begin = 0
        while begin < len(text):
            end = text.find("\n", begin + BLOCK) + 1 or len(text)
            self.add(text[begin:end])
            begin = end

    def add(self, text):
        self.texts.append(text)
        self.firsts.append(self.count)
        self.count += len(text.splitlines())

    @classmethod
    def read(cls, file, head="", most=None):
        """What is in a file, behind what was read of it before. Raises TooLong."""
        lines, begun, size = cls(), [head], len(head)
        for chunk in iter(lambda: file.read(BLOCK), ""):
            size += len(chunk)
            if most is not None and size > most:
                raise TooLong
            begun.append(chunk)
            if "\n" in chunk:  # else a line is longer than a block
                text = "".join(begun)
                end = text.rfind("\n") + 1
                lines.add(text[:end])
                begun = [text[end:]]
        rest = "".join(begun)
        if rest:
            lines.add(rest)
        return lines

    def __len__(self):
        return self.count

    def __getitem__(self, number):
        if not 0 <= number < self.count:
            raise IndexError(number)
        at = bisect_right(self.firsts, number) - 1
        return self.texts[at].splitlines()[number - self.firsts[at]]

    def blocks(self):
        return map(Block, self.texts, self.firsts)

    def having(self, texts):
        """(number, line) of those that hold any of these texts, in order."""
        for block in self.blocks():
            yield from block.having(texts)
