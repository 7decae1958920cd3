# SPDX-License-Identifier: BSD-3-Clause
"""What a shared object needs and where it looks for it, read from the file: nothing is loaded."""

import os
import stat
import struct

PT_LOAD, PT_DYNAMIC, PT_INTERP = 1, 2, 3
SHT_SYMTAB, SHT_DYNSYM = 2, 11
STT_FUNC = 2
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
    return _of_file(path, _read)


def is_static(path):
    """A program that no loader starts: it needs no library, and nothing can be preloaded into it."""
    return _of_file(path, _is_static)


def defines_any(path, names):
    """Whether it holds one of these functions, as far as its symbols tell."""
    try:
        return _of_file(path, lambda data: _defines_any(data, names))
    except Damaged:  # no loader reads sections: the program may be sound
        return False


def open_file(path):
    """A file of bytes; OSError for a pipe, which would be waited for, and for a device."""
    f = open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY), "rb")  # noqa: SIM115
    if not stat.S_ISREG(os.fstat(f.fileno()).st_mode):
        f.close()
        raise OSError(f"{path} is no regular file")
    return f


def _of_file(path, work):
    with open_file(path) as f:
        data = f.read()
    if data[:6] != b"\x7fELF\x02\x01":
        raise NotElf(path, data[:4] == b"\x7fELF")
    try:
        return work(data)
    except (struct.error, ValueError, IndexError, OverflowError) as error:
        raise Damaged(path) from error


def _segments(data):
    """(kind, place in the file, address, length) of each."""
    offset, size, count = struct.unpack_from("<Q14xHH", data, 32)
    for i in range(count):
        kind, _, place, address, _, length = struct.unpack_from("<IIQQQQ", data, offset + i * size)
        yield kind, place, address, length


def _sections(data):
    """(kind, place in the file, length, number of the section that belongs to it) of each."""
    offset, size, count = struct.unpack_from("<Q10xHH", data, 40)
    for i in range(count):
        yield struct.unpack_from("<4xI16xQQI", data, offset + i * size)


def _defines_any(data, names):
    sections = list(_sections(data))
    for kind, place, length, link in sections:
        if kind not in (SHT_SYMTAB, SHT_DYNSYM):
            continue
        _, strings, strings_length, _ = sections[link]
        wanted = {
            at - strings
            for name in names
            for at in _places(data, name.encode() + b"\0", strings, strings + strings_length)
        }
        if not wanted:
            continue
        table = memoryview(data)[place : place + length - length % 24]
        for name, info, section in struct.iter_unpack("<IBxH16x", table):
            # The value is no sign of a definition: it may be the place of a call to a library.
            if name in wanted and section != 0 and info & 15 == STT_FUNC:
                return True
    return False


def _places(data, text, begin, end):
    """Where a text is: also at the end of a longer one, which names may share."""
    at = data.find(text, begin, end)
    while at >= 0:
        yield at
        at = data.find(text, at + 1, end)


def _is_static(data):
    loader = any(kind == PT_INTERP for kind, *_ in _segments(data))
    return not loader and not _read(data)[0]


def _read(data):
    loads, dynamic = [], None
    for kind, place, address, length in _segments(data):
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
