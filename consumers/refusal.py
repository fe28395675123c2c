"""What it means for who reads a queue that the broker hung up."""

from delayctl.topology.errors import NotPermitted, Refused

_ACCESS_REFUSED = 403


def refusal(code: int, text: str, *, queue: str, user: str) -> Refused | NotPermitted:
    """The broker's words, and what to do."""
    if code == _ACCESS_REFUSED:
        fix = f"let an administrator grant read on {queue} (delayctl permissions shows patterns)"
        return NotPermitted(f"user '{user}' is not permitted: {text}", fix=fix)
    fix = "look at the broker's log, then run it again; what was not acknowledged is still there"
    return Refused(f"the broker ended it: {text}", code=code, fix=fix)
