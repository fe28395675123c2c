"""Passwords on the command line of spark-submit: Spark writes all of it into its event log, and onto a page of its UI."""

import os
import re
from collections.abc import Mapping
from typing import Any

import click
from click.core import ParameterSource
from delayctl.topology.errors import BadOption

_SUBMITTED = "PYSPARK_GATEWAY_PORT"  # Set by spark-submit.
_LOGIN = re.compile(r"//[^@/?]*:[^@]*@|^jdbc:oracle:\w+:[^@/]*/[^@]*@")
_PARAMETER = re.compile(
    r"(?i)(?:pass(?:word|wd|phrase)?|pwd|secret|token|(?:access|account|api|private|shared)[._]?key)\s*="
)
_BROKERS_FIX = "give --credentials-file, or DELAYCTL_USERNAME and DELAYCTL_PASSWORD in the environment of spark-submit"
_SOURCES_FIX = (
    "run delayctl backfill --master … instead of spark-submit: its options are not written down;"
    " or have the reader find the password by itself, in ~/.pgpass say"
)


def refuse_written_passwords(options: Mapping[str, Any]) -> None:
    """Raise BadOption where an option of the current command has a password in it that Spark would write down."""
    context = click.get_current_context(silent=True)
    if context is None or _SUBMITTED not in os.environ:
        return
    for name, fix in (("url", _BROKERS_FIX), ("management_url", _BROKERS_FIX), ("source", _SOURCES_FIX)):
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE and _has_password(str(options[name])):
            raise _refusal(f"--{name.replace('_', '-')}", fix)
    if any(_PARAMETER.search(assignment) for assignment in options.get("source_options", ())):
        raise _refusal("--source-option", _SOURCES_FIX)


def _has_password(text: str) -> bool:
    return _LOGIN.search(text) is not None or (text.startswith("jdbc:") and _PARAMETER.search(text) is not None)


def _refusal(option: str, fix: str) -> BadOption:
    return BadOption(
        f"{option} has a password in it, and spark-submit writes its command line into Spark's event log", fix=fix
    )
