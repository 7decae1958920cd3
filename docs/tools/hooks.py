# SPDX-License-Identifier: BSD-3-Clause
"""What mkdocs.yml cannot say: a pattern in the nav, and heading ids that CSS selectors accept."""

import fnmatch
import re
from pathlib import Path

from markdown.extensions.toc import slugify as base_slugify


def slugify(text, separator):
    """'4 ranks' becomes 'n4-ranks': scripts look ids up by '#<id>', which may not begin with a digit."""
    slug = base_slugify(text, separator)
    return slug if slug[:1].isalpha() else f"n{slug}"


def listed(nav):
    """Every page that the nav names without a pattern."""
    for entry in nav:
        if isinstance(entry, dict):
            for value in entry.values():
                yield from listed(value if isinstance(value, list) else [value])
        elif "*" not in entry:
            yield entry


def title(page):
    """The first heading: MkDocs itself takes the file's name where a comment comes before it."""
    heading = re.search(r"^# (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return heading.group(1) if heading else page.stem


def expand(nav, pages, taken):
    """The nav with each pattern replaced by the pages that match it and stand nowhere else."""
    result = []
    for entry in nav:
        if isinstance(entry, dict):
            result += [
                {
                    name: expand(value, pages, taken) if isinstance(value, list) else value
                    for name, value in entry.items()
                }
            ]
        elif "*" in entry:
            rest = (name for name in fnmatch.filter(pages, entry) if name not in taken)
            result += sorted(({pages[name]: name} for name in rest), key=lambda one: [*one])
        else:
            result.append(entry)
    return result


def on_config(config):
    """A new site is a new page below docs/sites: nobody has to name it in mkdocs.yml."""
    root = Path(config.docs_dir)
    pages = {path.relative_to(root).as_posix(): title(path) for path in root.rglob("*.md")}
    config.nav = expand(config.nav, pages, set(listed(config.nav)))
    config.mdx_configs["toc"]["slugify"] = slugify
    return config
