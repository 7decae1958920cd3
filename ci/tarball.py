# SPDX-License-Identifier: BSD-3-Clause
"""The source tarball of a commit. The same files give the same bytes, whatever commit they are in.

The recipes and ci/release.json hold the tarball's checksum, so they are not in it. The commit that records a checksum
changes nothing else: it has the same tarball as the commit before it, and carries the tag.
"""

import hashlib
import io
import subprocess
import tarfile
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent
HELD_BACK = ("ci/release.json", "easyconfigs", "spack-repo", "spack-repo-index.yaml")
EPOCH = 1577836800  # 2020-01-01: a file's time says nothing about a release


class Problem(Exception):
    """Said to the user as it is."""


def git(*arguments, binary=False, top=TOP):
    """Output of git in the repository."""
    done = subprocess.run(["git", *arguments], cwd=top, capture_output=True, check=False)
    if done.returncode != 0:
        raise Problem(f"git {' '.join(arguments)}: {done.stderr.decode().strip()}")
    return done.stdout if binary else done.stdout.decode().strip()


def version_of(commit, top=TOP):
    return git("show", f"{commit}:libxccl/VERSION", top=top).split()[0]


def repacked(source, name):
    """A tar archive with nothing of this machine, this user and this day in it."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as target:
        for entry in sorted(source.getmembers(), key=lambda member: member.name):
            content = source.extractfile(entry) if entry.isfile() else None
            entry.name, entry.mtime = f"{name}/{entry.name}", EPOCH
            entry.uid = entry.gid = 0
            entry.uname = entry.gname = ""
            entry.mode = 0o755 if entry.isdir() or entry.mode & 0o100 else 0o644
            target.addfile(entry, content)
    return out.getvalue()


def tarball(commit, top=TOP):
    """(name, bytes) of the tarball of a commit."""
    name = f"xccl-{version_of(commit, top)}"
    kept = [".", *(f":(exclude){path}" for path in HELD_BACK)]
    given = git("archive", "--format=tar", f"{commit}^{{tree}}", "--", *kept, binary=True, top=top)
    with tarfile.open(fileobj=io.BytesIO(given)) as source:
        plain = repacked(source, name)
    # Not Python's zlib, which distributions replace by others that compress differently.
    packed = subprocess.run(["gzip", "-9n"], input=plain, capture_output=True, check=True)
    return f"{name}.tar.gz", packed.stdout


def sha256(content):
    return hashlib.sha256(content).hexdigest()
