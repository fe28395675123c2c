"""Line breaks: YAML knows more of them than editors, which count the lines that messages name."""

import re
from collections.abc import Sequence
from itertools import accumulate

LINE_BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")  # What YAML counts as the end of a line.
_YAML_ONLY = re.compile("[\x85\u2028\u2029]")  # To an editor the line goes on.


def lines_after(begin: int, text: str) -> Sequence[int]:
    """For each line break of a text that begins at this line, the line of the file that follows it."""
    if _has_simple_breaks(text):
        return range(begin + 1, begin + 1 + text.count("\n"))
    breaks = LINE_BREAK.findall(text)
    return [begin + count for count in accumulate(not _YAML_ONLY.match(line_break) for line_break in breaks)]


def last_line(text: str) -> str:
    """What stands behind the last line break."""
    return text.rpartition("\n")[2] if _has_simple_breaks(text) else LINE_BREAK.split(text)[-1]


def _has_simple_breaks(text: str) -> bool:
    return text.isascii() and "\r" not in text
