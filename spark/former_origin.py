"""How sources were described in the checkpoints of earlier releases, so that these are recognised; written down no more."""

import re
from collections.abc import Iterable

_SECRET = re.compile("(?i)pass|pwd|secret|token|key|user|url|sig")
_LOGIN = re.compile(r"//[^/@:]*:[^/@]*@")
_ORACLES_LOGIN = re.compile(r"^(jdbc:oracle:\w+:)[^@]*@")
_PARAMETER = re.compile(r"[?&;]([\w.-]+)=[^&;]*")


def formerly_shown(text: str) -> str:
    """A place as it was shown."""
    without_login = _ORACLES_LOGIN.sub(r"\1@", _LOGIN.sub("//", text))
    return _PARAMETER.sub(lambda found: "" if _SECRET.search(found[1]) else found[0], without_login)


def formerly_shown_options(options: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The options that were taken for harmless."""
    return {name: value for name, value in options if not _SECRET.search(name)}
