"""What `mkdocs` does not know of the repository: pages that lie outside of docs/, and links that lead there."""

import re
from pathlib import Path
from posixpath import normpath

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
# Pages of the site by where they lie in the repository.
OUTSIDE = {
    "README.md": "index.md",
    "ARCHITECTURE.md": "architecture.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "benchmarks/RESULTS.md": "measurements.md",
}
_CODE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?:|#)([^)#\s]+)(#[^)\s]*)?\)")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Give a place to pages that nobody has placed yet."""
    placed = repr(config.nav)
    pages = sorted(page.name for page in (ROOT / "docs").glob("*.md") if f"'{page.name}'" not in placed)
    if pages and config.nav is not None:
        config.nav.append({"More": pages})
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that lie elsewhere, and the pictures that they show."""
    for source, target in OUTSIDE.items():
        files.append(File.generated(config, target, abs_src_path=str(ROOT / source)))
    for picture in sorted((ROOT / "benchmarks").glob("*.[sp][vn]g")):
        files.append(File.generated(config, f"benchmarks/{picture.name}", abs_src_path=str(picture)))
    return files


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Let links lead to pages of the site; what is only in the repository is named instead."""
    place = next(
        (source for source, target in OUTSIDE.items() if target == page.file.src_uri), f"docs/{page.file.src_uri}"
    )
    depth = page.file.src_uri.count("/")
    parts = _CODE.split(markdown)  # Every second is code.
    parts[::2] = [_LINK.sub(lambda link: _led(link, Path(place).parent, depth), part) for part in parts[::2]]
    return "".join(parts)


def _led(link: re.Match[str], folder: Path, depth: int) -> str:
    mark, text, target, anchor = link.groups()
    there = normpath(f"{folder.as_posix()}/{target}")
    inside = OUTSIDE.get(there) or (there.removeprefix("docs/") if there.startswith("docs/") else None)
    if inside is None and there.startswith("benchmarks/") and there.endswith((".svg", ".png")):
        inside = there
    if inside is None:
        return f"{text} (`{there}` in the repository)" if f"`{there}`" not in text else text
    return f"{mark}[{text}]({'../' * depth}{inside}{anchor or ''})"
