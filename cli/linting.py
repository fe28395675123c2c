"""Lint as commands use it: with a broker, or as the gate before a change."""

from urllib.parse import quote

import click
from delayctl.cli.host import host_for
from delayctl.cli.lint_views import compact_text, silence_example
from delayctl.cli.options import Connection
from delayctl.cli.output import tell
from delayctl.topology.errors import DelayctlError
from delayctl.topology.facts import read_facts
from delayctl.topology.findings import Finding, Report, Severity
from delayctl.topology.lint import lint
from delayctl.topology.model import Topology
from delayctl.topology.spec import Spec
from delayctl.topology.wording import argument, plural


def lint_live(spec: Spec, desired: Topology, connection: Connection) -> Report:
    """Look at the broker, and lint with what is there."""
    management = host_for(connection, connection.vhost_for(spec)).management
    assert management is not None
    listed, declared = ({item.name for item in items} for items in (spec.exchanges, desired.exchanges))
    live = management.read(desired.prefix, listed | declared)
    return lint(spec, desired, live=live, facts=read_facts(management.get, management.vhost))


def grave_findings(spec: Spec, desired: Topology, file: str, *, is_text: bool) -> tuple[Finding, ...]:
    """Errors and warnings of a file, told before its plan where a person reads along."""
    findings = lint(spec, desired).of(Severity.ERROR, Severity.WARNING)
    if findings and is_text:
        tell(compact_text(findings, file) + "\n")
    return findings


def refuse_errors(findings: tuple[Finding, ...], file: str, *, is_text: bool, what: str) -> None:
    """Stop a command that a finding forbids; says which ones where nobody has read them yet."""
    errors = [finding for finding in findings if finding.severity is Severity.ERROR]
    if not errors:
        return
    if not is_text:
        click.echo(compact_text(errors, file), err=True)
    raise DelayctlError(
        f"lint found {plural(len(errors), 'error')} in the file; {what}",
        where=f"{file}:{errors[0].line}",
        fix=f"mend it (delayctl validate {argument(file)} says how), or if it is known and fine write {silence_example(errors[0])}",
    )


def uri_of(file: str) -> str:
    """A path as SARIF names it."""
    return quote(file.replace("\\", "/"))
