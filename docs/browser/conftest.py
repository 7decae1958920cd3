# SPDX-License-Identifier: BSD-3-Clause
"""A browser, and the built site behind a web server that answers this machine alone."""

import functools
import http.server
import os
import shutil
import threading
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
SITE = Path(os.environ.get("DOCS_SITE", TOP / "build/site"))
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture(scope="session")
def site():
    """Address of the built site."""
    if not (SITE / "index.html").exists():
        pytest.skip(f"{SITE} holds no site; `make docs` builds it and runs these tests")
    handler = functools.partial(Quiet, directory=str(SITE))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()


@pytest.fixture(scope="session")
def browser():
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="playwright is not installed; ci/bootstrap docs does it"
    )
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if not program:
        pytest.skip("no Chromium is installed; ci/bootstrap docs does it")
    with playwright.sync_playwright() as driver:
        # A container's root has no user namespace for the sandbox, and the pages are our own.
        started = driver.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield started
        started.close()
