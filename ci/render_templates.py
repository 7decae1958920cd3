# SPDX-License-Identifier: BSD-3-Clause
"""GitLab's templates from GitHub's: render_templates.py [--check]; with --check they are compared, not written.

GitLab has no forms. A field of a form becomes a heading, and what explains it a comment below it. The template for
changes is the same text on both.
"""

import sys
from pathlib import Path

import yaml

TOP = Path(__file__).resolve().parents[1]
FORMS = TOP / ".github/ISSUE_TEMPLATE"
CHANGE = TOP / ".github/pull_request_template.md"
GITLAB = TOP / ".gitlab"


def comment(text):
    return f"<!-- {' '.join(text.split())} -->\n"


def field(part):
    """The text of one part of a form."""
    of = part["attributes"]
    if part["type"] == "markdown":
        return comment(of["value"])
    needed = part.get("validations", {}).get("required", False)
    text = f"### {of['label']}{'' if needed else ' (optional)'}\n"
    if "description" in of:
        text += "\n" + comment(of["description"])
    if "placeholder" in of:
        text += "\n" + comment(f"For example: {of['placeholder']}")
    if "options" in of:
        text += "\n" + "".join(f"- [ ] {option}\n" for option in of["options"])
    if "render" in of:
        text += f"\n```{of['render']}\n\n```\n"
    return text


def issue(form):
    read = yaml.safe_load(form.read_text())
    labels = "/label " + " ".join(f"~{label}" for label in read["labels"]) + "\n"
    return "\n".join([*map(field, read["body"]), labels])


def rendered():
    """The text of each template of GitLab's, by its path."""
    forms = [path for path in sorted(FORMS.glob("*.yml")) if path.name != "config.yml"]
    pages = {
        GITLAB / f"issue_templates/{path.stem.capitalize()}.md": issue(path) for path in forms
    }
    return {**pages, GITLAB / "merge_request_templates/Default.md": CHANGE.read_text()}


def main():
    pages = rendered()
    if sys.argv[1:] != ["--check"]:
        for path, text in pages.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return 0
    wrong = [path for path, text in pages.items() if not path.exists() or path.read_text() != text]
    wrong += [path for path in GITLAB.rglob("*.md") if path not in pages]
    for path in wrong:
        print(f"{path.relative_to(TOP)}: differs from GitHub's; run ci/render_templates.py")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
