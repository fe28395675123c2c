"""What the simulator says, as the page says it: fields have labels there, not options."""

import re
from typing import Any

from delayctl.cli.simulate_traffic import NoTraffic
from delayctl.topology.errors import DelayctlError

# As web/what-if.js labels them.
LABELS = {
    "--rate": "Messages come at",
    "--for": "For",
    "--burst": "Bursts",
    "--consume": "Consumers take",
    "--consumer-away": "Consumers are away",
    "--away": "The broker is away",
    "--message-size": "Size of a body",
    "--delay": "Any delay",
}
_OPTION = re.compile(r"(?<!\S)--[a-z]+(?:-[a-z]+)*")


def of_page(error: DelayctlError) -> DelayctlError:
    """An error of `delayctl simulate` for somebody who has a form before them."""
    fix = error.fix
    if isinstance(error, NoTraffic):
        fix = f"fill in “{LABELS['--rate']}”, such as 1000/s, or write expected_rate in the file"
    return DelayctlError(_worded(error.what), where=error.where, fix=fix and _worded(fix))


def answer_of_page(answer: dict[str, Any]) -> dict[str, Any]:
    """An answer of `delayctl simulate`, its findings in the words of the page."""
    findings = answer["findings"]
    worded = [{**each, "what": _worded(each["what"]), "fix": each["fix"] and _worded(each["fix"])} for each in findings]
    return {**answer, "findings": worded}


def _worded(text: str) -> str:
    return _OPTION.sub(lambda found: _label(found[0]), text)


def _label(option: str) -> str:
    label = LABELS.get(option)
    return f"“{label}”" if label else f"{option} of delayctl simulate"
