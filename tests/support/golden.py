"""Whole outputs kept in files: `UPDATE_GOLDEN=1 pytest` writes them anew, to be read before they are committed."""

import os
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "golden"


def check_golden(name: str, text: str) -> None:
    """Compare a text with the file of this name."""
    file = FOLDER / name
    if os.environ.get("UPDATE_GOLDEN"):
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8")
