"""The command `delayctl`: the one place that turns errors into text and a code."""

import errno
import os
import sys
import traceback
from collections.abc import Sequence

import click
from delayctl.cli import exit_codes
from delayctl.cli.groups import COMMANDS, GroupedHelp
from delayctl.cli.later import Later
from delayctl.cli.output import escape_what_is_no_text
from delayctl.topology.errors import BadOption, DelayctlError, Partly

import delayctl

# A pipe without a reader, a full disk or quota, a terminal that has gone, `>&-`, a file that may grow no more.
_OF_STDOUT = (errno.EPIPE, errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EBADF, errno.EFBIG)


@click.group(
    cls=GroupedHelp,
    commands=Later({name: listed.place for name, listed in COMMANDS.items()}),
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 120},
    epilog="""\b
Examples:
  delayctl init                  # write a commented topology.yaml
  delayctl plan topology.yaml    # what would change on the broker
  delayctl apply topology.yaml   # show it, ask, do it
  delayctl publish topology.yaml --key order.created --delay 15m hello
  delayctl watch topology.yaml   # see it wait

\b
The broker is named by --url or DELAYCTL_URL, by default the one of this
machine. `delayctl COMMAND --help` has more examples.
Exit codes: 0 done, 1 failed, 2 changes pending (plan --detailed-exitcode),
3 partly applied, 64 usage.
""",
)
@click.version_option(delayctl.__version__, prog_name="delayctl")
def cli() -> None:
    """Delayed and retried messages on RabbitMQ, from one file: plan, apply, publish, and see that it holds."""


def run(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its code."""
    escape_what_is_no_text()
    sys.exit(main(arguments))


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; whatever happens, the answer is a code and never a traceback."""
    try:
        code = cli.main(args=arguments, prog_name="delayctl", standalone_mode=False)
        return code if isinstance(code, int) else exit_codes.DONE
    except click.UsageError as error:
        error.show()
        return exit_codes.USAGE
    except click.Abort as stop:
        # What was done by then is known to the command alone; one that knows says it.
        click.echo("\n" + " ".join(["Stopped.", *map(str, stop.args)]), err=True)
        return exit_codes.FAILED
    except click.ClickException as error:
        error.show()
        return exit_codes.FAILED
    except DelayctlError as error:
        click.echo(str(error), err=True)
        return _code_of(error)
    except OSError as error:
        return _of_the_system(error)
    except Exception as error:  # The last line of defence against a traceback.
        return _unforeseen(error)


def _code_of(error: DelayctlError) -> int:
    if isinstance(error, Partly):
        return exit_codes.PARTLY_APPLIED
    return exit_codes.USAGE if isinstance(error, BadOption) else exit_codes.FAILED


def _of_the_system(error: OSError) -> int:
    """Mostly it is stdout that fails, which no error names; files are, and what else there is was not foreseen."""
    if error.filename is not None:
        where = os.fsdecode(error.filename) if isinstance(error.filename, bytes) else error.filename
        fix = "check that it is there, and your rights; DELAYCTL_TRACEBACK=1 shows where it happened"
        click.echo(str(DelayctlError(error.strerror or type(error).__name__, where=str(where), fix=fix)), err=True)
        return exit_codes.FAILED
    return _unwritable(error) if error.errno in _OF_STDOUT else _unforeseen(error)


def _unwritable(error: OSError) -> int:
    if not isinstance(error, BrokenPipeError):  # A reader that has gone (`| head`) wants to hear nothing more.
        click.echo(f"Error: the answer can't be written: {error.strerror}\n  fix: check where stdout leads", err=True)
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return exit_codes.FAILED


def _unforeseen(error: Exception) -> int:
    if os.environ.get("DELAYCTL_TRACEBACK"):
        traceback.print_exc()
    else:
        click.echo(
            f"Error: delayctl met something it did not foresee: {type(error).__name__}\n"
            "  fix: this is a bug, please report it; DELAYCTL_TRACEBACK=1 shows where it happened",
            err=True,
        )
    return exit_codes.FAILED
