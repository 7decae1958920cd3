# SPDX-License-Identifier: BSD-3-Clause
import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "ci"))

import easybuild_sandbox  # noqa: E402 (found through the line above)
import spack_sandbox  # noqa: E402


def needed(missing, variable):
    """Skip with what is missing, or fail where @p variable says that it must be there."""
    if missing and os.environ.get(variable) == "1":
        pytest.fail(f"{variable}=1, but: {missing}")
    if missing:
        pytest.skip(missing)


@pytest.fixture(scope="session")
def need():
    return needed


@pytest.fixture(scope="session")
def spack():
    """A real Spack; skips, or fails where XCCL_REQUIRE_SPACK=1, when something is missing."""
    needed(spack_sandbox.missing(), "XCCL_REQUIRE_SPACK")
    return spack_sandbox


@pytest.fixture(scope="session")
def easybuild():
    """A real EasyBuild; skips, or fails where XCCL_REQUIRE_EASYBUILD=1."""
    needed(easybuild_sandbox.missing(), "XCCL_REQUIRE_EASYBUILD")
    return easybuild_sandbox


@pytest.fixture(scope="session")
def tarball():
    """The released tarball."""
    needed(easybuild_sandbox.missing_release(), "XCCL_REQUIRE_EASYBUILD")
    return easybuild_sandbox.tarball()


@pytest.fixture(scope="session")
def plain(tmp_path_factory):
    """The tree that `cmake --install` and ci/install-packaged give; without a build as with spack."""
    import plain_install

    needed(plain_install.missing(), "XCCL_REQUIRE_BUILD")
    return plain_install.install(tmp_path_factory.mktemp("plain") / "prefix")
