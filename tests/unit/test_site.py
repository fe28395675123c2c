"""The documentation as a site: built strictly, complete, and without asking anything of other hosts."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from delayctl.cli.main import cli

from examples import reference

ROOT = Path(__file__).parents[2]
LOADED = re.compile(r'<(?:script|link|img|iframe|source|object)\b[^>]*?(?:src|href|data)="?((?:https?:)?//[^"\s>]+)')
IN_STYLES = re.compile(r"(?:url\(|@import )[\"']?((?:https?:)?//[^\"')]+)")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built as `make docs` builds it: a link that leads nowhere, or a page without a place, is an error."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(folder)]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return folder


def test_every_page_is_there(site: Path) -> None:
    """Those of docs/ and those of the repository."""
    pages = {page.relative_to(ROOT / "docs").with_suffix(".html").as_posix() for page in ROOT.glob("docs/**/*.md")}
    others = {"index.html", "architecture.html", "changelog.html", "contributing.html", "measurements.html"}

    assert pages | others <= {page.relative_to(site).as_posix() for page in site.rglob("*.html")}


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    """Whoever reads a page tells nobody: fonts, styles and scripts come with the site."""
    pages = [found for page in site.rglob("*.html") for found in LOADED.findall(page.read_text(encoding="utf-8"))]
    styles = [found for style in site.rglob("*.css") for found in IN_STYLES.findall(style.read_text(encoding="utf-8"))]

    assert (pages, styles) == ([], [])


def test_the_readme_leads_to_pages_of_the_site(site: Path) -> None:
    """And its picture is one of the site's."""
    index = (site / "index.html").read_text(encoding="utf-8")

    assert 'href="start.html"' in index
    assert 'src="pictures/topology.svg"' in index
    assert [link for link in re.findall(r'href="([^"]*)"', index) if link.startswith("docs/")] == []


@pytest.mark.parametrize("name", sorted(reference.written()))
def test_the_reference_is_that_of_the_code(name: str) -> None:
    """`make reference` writes it anew."""
    assert (reference.FOLDER / name).read_text(encoding="utf-8") == reference.written()[name]


def test_the_reference_knows_every_option() -> None:
    """With its text, and none twice."""
    page = reference.written()["cli.md"]

    assert page.count("\n## delayctl ") == len(cli.commands)
    assert "| `--detailed-exitcode` |" in page
    assert page.count("| `--management-url` `URL` |") == 1
