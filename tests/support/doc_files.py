"""The files that pages speak of: their own where they show one, else one that has what they tell of."""

import re
from pathlib import Path

import yaml

from tests.support.doc_blocks import ROOT, blocks
from tests.support.doc_lines import Line, Way, lines, way

SHOP = """\
version: 1
delay:
  levels: [1m, 5m, 15m]
exchanges:
  orders.exchange: {type: topic}
queues:
  orders.timeout.queue: {}
routes:
  - {from: orders.exchange, key: order.created, delay: 15m, to: orders.timeout.queue}
retry:
  orders.timeout.queue: {levels: [1m, 5m], max: 3, park: orders.timeout.dlq}
"""
# Where a page shows answers about a file that it does not show.
_FILES = {
    "docs/consuming.md": {
        "topology.yaml": SHOP.replace("queues:", "queues:\n  mails.lost: {}")
        + "  mails.queue: {levels: [1m], max: 3, park: mails.dlq}\n"
    },
    "docs/inserting.md": {
        "without.yaml": "version: 1\ndelay: {levels: [5m]}\nexchanges: {site.exchange: {type: topic, existing: true}}\n"
        "queues: {mails.queue: {existing: true}}\n"
    },
    "docs/lint.md": {
        "topology.yaml": """\
version: 1
delay:
  levels:
    1m: {}
    1h: {max_length: 500000, expected_rate: 200/s}
exchanges: {orders.exchange: {type: topic}}
queues: {scratch.queue: {arguments: {x-message-ttl: 1000}}}
routes:
  - {from: orders.exchange, key: order.created, delay: 1h, to: orders.queue}
  - {from: orders.exchange, key: order.*, delay: 1m, to: orders.queue}
lint: {ignore: [{rule: D201, at: scratch.queue, reason: what expires there is not missed}]}
"""
    },
    "docs/verify.md": {
        "topology.yaml": SHOP.replace("15m]", "15m]\n  any: {steps: 6}").replace(
            "retry:", "  - {key: reminder, delay: any, to: reminders.queue}\nretry:"
        )
    },
}
_LEVELS = "  levels: [1m, 5m, 15m]\n"
# What a page tells that the file has become before a line is typed; by how the line and its answer begin.
_EDITS = {
    ("README.md", "delayctl validate topology.yaml\nError: level '5x'"): (
        (_LEVELS, "  levels: [1m, 5m, 5x, 15m]\n"),
        ("{from: ", "{form: "),
    ),
    ("README.md", "delayctl validate topology.yaml\ntopology.yaml is valid"): (
        (_LEVELS, "  levels:\n    1m: {}\n    5m: {}\n    15m: {expected_rate: 2000/s}\n"),
    ),
    ("README.md", "delayctl simulate"): (
        (_LEVELS, "  levels: [1m, 5m, 15m, 30m]\n"),
        ("delay: 15m", "delay: 30m"),
    ),
}


def lay_out(page: str, folder: Path) -> None:
    """Put all files into a folder that a page speaks of."""
    own = {_name(text): text for text in _topologies(page)}
    for name, text in {"topology.yaml": SHOP, **own, **_FILES.get(page, {}), **_shown(page)}.items():
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "examples").symlink_to(ROOT / "examples")
    (folder / "service.yaml").symlink_to(ROOT / "examples" / "service.yaml")


def edit(line: Line, folder: Path) -> None:
    """Bring topology.yaml to what a line is typed about."""
    file, original = folder / "topology.yaml", folder / "topology.yaml.original"
    if original.exists():
        original.replace(file)
    for (page, start), replacements in _EDITS.items():
        if line.page == page and line.whole.startswith(start):
            text = changed = file.read_text(encoding="utf-8")
            original.write_text(text, encoding="utf-8")
            for old, new in replacements:
                changed = changed.replace(old, new)
            file.write_text(changed, encoding="utf-8")


def edits_of_nothing() -> list[tuple[str, str]]:
    """Entries for lines that are not there."""
    return [key for key in _EDITS if not any(is_about(key, line) for line in lines())]


def is_about(key: tuple[str, str], line: Line) -> bool:
    """Whether an entry of a table speaks of a line."""
    return line.page == key[0] and line.whole.startswith(key[1])


def _topologies(page: str) -> list[str]:
    """Whole files, the first last: it is the one that the page is about."""
    texts = [block.text for block in blocks() if block.page == ROOT / page and block.language == "yaml"]
    whole = [text for text in texts if "{{" not in text and "version" in (yaml.safe_load(text) or {})]
    parts = [text for text in texts if text.startswith("permissions:")]
    return [*reversed(whole)] or [SHOP + part for part in parts[:1]]


def _name(text: str) -> str:
    found = re.match(r"# (\S+\.yaml)\n", text)
    return found[1] if found else "topology.yaml"


def _shown(page: str) -> dict[str, str]:
    """What `cat` shows."""
    return {
        line.text.split()[1]: f"{line.shown.rstrip()}\n"
        for line in lines()
        if line.page == page and way(line) is Way.FILE
    }
