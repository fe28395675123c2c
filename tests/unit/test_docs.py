"""The pages lead where they say."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("benchmarks/*.md"), *ROOT.glob("compose/*.md")])
CODE = re.compile(r"^```.*?^```$|`[^`\n]*`", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]*))?\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def anchors(text: str) -> set[str]:
    """What the headings of a page are called in links, as GitHub makes it from them."""
    return {
        re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        for heading in HEADING.findall(re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL))
    }


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_link_leads_somewhere(page: Path) -> None:
    """To a file that is there, and to a heading in it."""
    dead = []
    for target, anchor in LINK.findall(CODE.sub("", page.read_text(encoding="utf-8"))):
        file = page.parent / target if target else page
        if not file.exists() or (anchor and anchor not in anchors(file.read_text(encoding="utf-8"))):
            dead.append(f"{target}#{anchor}")

    assert dead == []


def test_every_page_is_reached_from_the_readme() -> None:
    """A page that nobody links to is read by nobody."""
    linked = {target for target, _ in LINK.findall((ROOT / "README.md").read_text(encoding="utf-8"))}

    assert {page.relative_to(ROOT).as_posix() for page in ROOT.glob("docs/*.md")} <= linked
