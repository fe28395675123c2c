"""Reasons as texts that a message can carry, whatever a handler gives for one."""

_LONGEST = 200


def reason_text(reason: object) -> str:
    """What is given as a reason, as a text; an error says what it is."""
    if reason is None:
        return ""
    return cut(told(reason) if isinstance(reason, BaseException) else _said(reason))


def told(error: BaseException) -> str:
    """An error in a line: its kind, and what it says."""
    return f"{type(error).__name__}: {_said(error)}"


def cut(text: str) -> str:
    """As much of a text as a message carries."""
    return _spelled_out(text)[:_LONGEST]


def _said(something: object) -> str:
    try:
        return _spelled_out(str(something))
    except Exception:  # What it says is anybody's code.
        return f"a {type(something).__name__} that can't say what it is"


def _spelled_out(text: str) -> str:
    """A text that logs and messages take: what is no character, as in a name that was no UTF-8, is spelled out."""
    return text.encode("utf-8", "backslashreplace").decode()
