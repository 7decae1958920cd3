# SPDX-License-Identifier: BSD-3-Clause
"""What a shared object needs and where it looks for it, read from the file: nothing is loaded."""

import struct

PT_LOAD, PT_DYNAMIC = 1, 2
DT_NEEDED, DT_STRTAB, DT_RPATH, DT_RUNPATH = 1, 5, 15, 29


class NotElf(Exception):
    """No 64-bit little-endian ELF file; other_machine: an ELF file of another kind."""

    def __init__(self, path, other_machine):
        super().__init__(path)
        self.other_machine = other_machine


class Damaged(Exception):
    """An ELF file that says of itself that it is longer, or that points outside itself."""


def _text(data, at):
    return data[at : data.index(b"\0", at)].decode("utf-8", "replace")


def read(path):
    """(needed, runpath): lists of names and of folders."""
    with open(path, "rb") as f:
        data = f.read()
    if data[:6] != b"\x7fELF\x02\x01":
        raise NotElf(path, data[:4] == b"\x7fELF")
    try:
        return _read(data)
    except (struct.error, ValueError, IndexError, OverflowError) as error:
        raise Damaged(path) from error


def _read(data):
    offset, size, count = struct.unpack_from("<Q14xHH", data, 32)
    loads, dynamic = [], None
    for i in range(count):
        kind, _, place, address, _, length = struct.unpack_from("<IIQQQQ", data, offset + i * size)
        if kind == PT_LOAD:
            if place + length > len(data):
                raise ValueError("a segment behind the end")
            loads.append((address, place, length))
        elif kind == PT_DYNAMIC:
            dynamic = (place, length)
    if dynamic is None:
        return [], []
    pairs = [
        struct.unpack_from("<qQ", data, at)
        for at in range(dynamic[0], dynamic[0] + dynamic[1] - 15, 16)
    ]
    table = dict(pairs).get(DT_STRTAB, 0)
    for address, place, length in loads:
        if address <= table < address + length:
            table = table - address + place
            break
    needed = [_text(data, table + value) for tag, value in pairs if tag == DT_NEEDED]
    paths = [_text(data, table + value) for tag, value in pairs if tag in (DT_RPATH, DT_RUNPATH)]
    return needed, [folder for path in paths for folder in path.split(":") if folder]
