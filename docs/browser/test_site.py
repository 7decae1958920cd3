# SPDX-License-Identifier: BSD-3-Clause
"""Every page in a browser, on a wide screen and on a telephone: `make docs` runs this."""

import re
from urllib.parse import unquote, urldefrag, urljoin, urlsplit

import pytest
from conftest import SITE

PAGES = sorted(path.relative_to(SITE).as_posix() for path in SITE.rglob("*.html"))
WIDTHS = (1280, 390)

# What sticks out on the right and cannot be scrolled to inside of an element of its own. Text for
# screen readers and the drawer of the menu lie outside on purpose.
STICKS_OUT = """() => {
    const width = document.documentElement.clientWidth, found = [];
    const scrolls = e => e && e !== document.body && (
        getComputedStyle(e).overflowX !== "visible" || scrolls(e.parentElement));
    if (document.scrollingElement.scrollWidth > width)
        found.push("page: " + document.scrollingElement.scrollWidth);
    for (const e of document.querySelectorAll("article *, .md-header *, .md-footer *")) {
        const box = e.getBoundingClientRect();
        if (box.width > 1 && box.right > width + 1 && !scrolls(e.parentElement)
            && getComputedStyle(e).position !== "absolute")
            found.push(e.tagName + " " + Math.round(box.right) + ": " + e.textContent.slice(0, 60));
    }
    return found.slice(0, 5);
}"""


# A width may ask for another picture. One that is still under way when the next page is opened would count as a
# failed request of that page.
PICTURES = """() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done))).then(
    () => Promise.all([...document.images].map(image => image.decode().catch(() => null))))"""


class Watch:
    """Everything that a page asks for, and everything that it complains about."""

    def __init__(self, page, site):
        self.problems = []
        page.on("console", lambda m: m.type in ("error", "warning") and self.say(m.text))
        page.on("pageerror", lambda error: self.say(str(error)))
        page.on("requestfailed", lambda r: self.say(f"request failed: {r.url}"))
        page.on("response", lambda r: r.status >= 400 and self.say(f"{r.status}: {r.url}"))
        page.on("request", lambda r: r.url.startswith((site, "data:", "blob:")) or self.away(r))

    def say(self, text):
        self.problems.append(text)

    def away(self, request):
        self.say(f"fetched from elsewhere: {request.url}")


@pytest.fixture(scope="module")
def tab(browser, site):
    page = browser.new_page()
    page.watch = Watch(page, site)
    yield page
    page.close()


@pytest.mark.parametrize("name", PAGES)
def test_page(tab, site, name):
    """No script error, nothing missing or fetched from elsewhere, nothing wider than the screen."""
    tab.watch.problems.clear()
    tab.set_viewport_size({"width": WIDTHS[0], "height": 900})
    tab.goto(f"{site}/{name}", wait_until="networkidle")
    wide = {}
    for width in WIDTHS:
        tab.set_viewport_size({"width": width, "height": 900})
        tab.evaluate(PICTURES)
        found = tab.evaluate(STICKS_OUT)
        if found:
            wide[width] = found
    assert not wide
    assert not tab.watch.problems


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_scheme(browser, site, scheme):
    """The page follows the system's colours."""
    page = browser.new_page(color_scheme=scheme)
    page.goto(f"{site}/index.html")
    chosen = page.evaluate("document.body.getAttribute('data-md-color-scheme')")
    page.close()
    assert chosen == {"light": "default", "dark": "slate"}[scheme]


def test_search(browser, site):
    """Search works without a network: a variable is found on its page."""
    page = browser.new_page()
    page.goto(f"{site}/index.html?q=XCCL_RENDEZVOUS")
    page.wait_for_selector(".md-search-result__link", state="attached", timeout=60000)
    targets = page.eval_on_selector_all(
        ".md-search-result__link", "links => links.map(link => link.href)"
    )
    page.close()
    assert any("reference/variables.html" in target for target in targets)


def ids_and_links(name):
    text = (SITE / name).read_text()
    text = re.sub(r"<(script|style)\b.*?</\1>", "", text, flags=re.DOTALL)
    return re.findall(r'\sid="([^"]*)"', text), re.findall(r'\shref="([^"]*)"', text)


def test_there_are_pages():
    """Without a site the tests above would be none at all."""
    if not SITE.exists():
        pytest.skip(f"{SITE} holds no site; `make docs` builds it and runs these tests")
    assert len(PAGES) > 30


def test_ids():
    """Each id is there once, and can be looked up as #<id> by a script."""
    for name in PAGES:
        ids, _ = ids_and_links(name)
        assert not sorted({one for one in ids if ids.count(one) > 1}), name
        assert not [one for one in ids if not re.fullmatch(r"[A-Za-z_][\w-]*", one)], name


def test_links():
    """Every link inside the site leads to a file, and to an id that is there."""
    ids = {name: set(ids_and_links(name)[0]) for name in PAGES}
    missing = []
    for name in PAGES:
        if name == "404.html":  # its links are absolute: where it is shown is not known
            continue
        for href in ids_and_links(name)[1]:
            parts = urlsplit(href.replace("&amp;", "&"))
            if parts.scheme or parts.netloc:
                continue
            target, anchor = urldefrag(urljoin(name, unquote(href)))
            target = target.rstrip("/") or "index.html"
            there = (SITE / target).exists() and (SITE / target).resolve().is_relative_to(
                SITE.resolve()
            )
            if not there or (anchor and target in ids and anchor not in ids[target]):
                missing.append(f"{name}: {href}")
    assert not missing
