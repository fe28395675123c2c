"""The system's apt sources: read, so that a Debian mirror is never guessed where one is configured."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

APT = Path("/etc/apt")
PUBLIC_MIRROR = "http://deb.debian.org/debian"
# Suites of one release that hold only a part of it.
PARTIAL = ("-security", "-updates", "-backports", "-proposed-updates", "/updates")


@dataclass(frozen=True)
class Source:
    """One place that apt takes packages from."""

    uri: str
    suites: tuple[str, ...]
    components: tuple[str, ...]
    options: Mapping[str, str] = field(default_factory=dict)

    def text(self) -> str:
        """Return the source in apt's own format for files named *.sources."""
        fields = {
            "Types": "deb",
            "URIs": self.uri,
            "Suites": " ".join(self.suites),
            "Components": " ".join(self.components),
            **self.options,
        }
        return "".join(f"{key}: {value}\n" for key, value in fields.items())


def debian_mirror(sources: Iterable[Source], codename: str) -> Source | None:
    """Return the source that the whole of this Debian release comes from, or None."""
    for source in sources:
        whole = [suite for suite in source.suites if not suite.endswith(PARTIAL)]
        # A machine may follow its release by name (bookworm) or by role (stable); a third party's source has neither.
        if "main" in source.components and {codename, "stable", "testing", "unstable", "sid"} & set(whole):
            return source
    return None


def system_sources(folder: Path = APT) -> tuple[Source, ...]:
    """Read every binary source that the system's apt uses."""
    found: list[Source] = []
    for path in (folder / "sources.list", *sorted((folder / "sources.list.d").glob("*.*"))):
        if path.suffix == ".list" and path.is_file():
            found += parse_list(path.read_text())
        elif path.suffix == ".sources" and path.is_file():
            found += parse_deb822(path.read_text())
    return tuple(found)


def parse_list(text: str) -> list[Source]:
    """Parse the format of one line for each: deb [option=value …] uri suite component …."""
    found = []
    for line in text.splitlines():
        match = re.match(r"^deb\s+(?:\[(?P<options>[^]]*)\]\s+)?(?P<rest>\S.*)$", line.partition("#")[0].strip())
        parts = match["rest"].split() if match else []
        if match and len(parts) >= 2:
            options = _trust(dict(part.partition("=")[::2] for part in (match["options"] or "").split()))
            found.append(Source(parts[0], (parts[1],), tuple(parts[2:]), options))
    return found


def parse_deb822(text: str) -> list[Source]:
    """Parse the format of paragraphs with fields."""
    found = []
    for fields in _paragraphs(text):
        is_used = fields.get("enabled", "yes").lower() not in ("no", "false", "0")
        if is_used and "deb" in fields.get("types", "").split():
            suites, components = tuple(fields.get("suites", "").split()), tuple(fields.get("components", "").split())
            found += [Source(uri, suites, components, _trust(fields)) for uri in fields.get("uris", "").split()]
    return found


def _paragraphs(text: str) -> Iterable[dict[str, str]]:
    lines = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    for paragraph in re.split(r"\n\s*\n", lines):
        fields: dict[str, str] = {}
        key = ""
        for line in paragraph.splitlines():
            if line[:1].isspace() and key:
                # A key of the archive may stand in the file itself, over many lines.
                fields[key] += "\n" + line
            elif ":" in line:
                name, _, value = line.partition(":")
                key = name.strip().lower()
                fields[key] = value.strip()
        if fields:
            yield fields


def _trust(fields: Mapping[str, str]) -> dict[str, str]:
    names = {"signed-by": "Signed-By", "trusted": "Trusted"}
    return {names[key]: value for key, value in fields.items() if key in names}
