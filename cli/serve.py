"""The command `serve`: a web page that shows one topology on a live broker."""

from typing import Any

import click
from delayctl.cli import exit_codes
from delayctl.cli.bedside import by_file
from delayctl.cli.options import (
    connection_from,
    connection_options,
    duration_value,
    template_options,
    topology_argument,
)
from delayctl.topology.duration import Duration
from delayctl.topology.errors import BadOption, DelayctlError

_SHORTEST, _LONGEST = Duration.parse("200ms"), Duration.parse("1m")
_LIBRARIES = ("anyio", "starlette", "uvicorn")


@click.command(
    short_help="Show a topology on a live broker as a web page.",
    epilog="""\b
Examples:
  delayctl serve topology.yaml                          # http://127.0.0.1:8025, for this machine only
  delayctl serve topology.yaml --allow-redrive --open
  delayctl serve topology.yaml --host 0.0.0.0 --name delays.example.com --token-file /run/secrets/delayctl
  curl -H "Authorization: Bearer $(cat /run/secrets/delayctl)" http://127.0.0.1:8025/api/state

\b
The page needs pip install 'delayctl[serve]'. It changes nothing, unless --allow-redrive is given. Ctrl-C ends it.
""",
)
@topology_argument
@click.option("--host", default="127.0.0.1", show_default=True, metavar="ADDRESS", help="The address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=8025, show_default=True, help="The port; 0 is any.")
@click.option("--name", "names", multiple=True, metavar="NAME", help="A host name it is reached by; may be repeated.")
@click.option("--allow-redrive", is_flag=True, help="Let parked messages be moved back. Needs the token.")
@click.option(
    "--token-file",
    metavar="FILE",
    help="The token, to be asked for in any case.  [default: a new one where one is needed]",
)
@click.option(
    "--every", default="1s", show_default=True, callback=duration_value, metavar="DURATION", help="How often to look."
)
@click.option("--open", "opens", is_flag=True, help="Open it in the browser.")
@template_options
@connection_options
def serve(
    topology: str,
    *,
    host: str,
    port: int,
    names: tuple[str, ...],
    allow_redrive: bool,
    token_file: str | None,
    every: Duration,
    opens: bool,
    **options: Any,
) -> int:
    """Show TOPOLOGY on its broker as a web page: what waits, what is parked, what is wrong, and what if.

    It listens on this machine alone and is read-only. A token is needed as soon as either is not so, or a --name is one
    that others know it by.
    """
    if not _SHORTEST <= every <= _LONGEST:
        raise BadOption(f"--every {every} is not between {_SHORTEST} and {_LONGEST}", fix="write 1s")
    try:
        # Only this command needs what it imports, and that need not be there.
        from delayctl.cli.serve_run import Page, show  # noqa: PLC0415
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] not in _LIBRARIES:
            raise
        raise DelayctlError(
            f"serve needs {error.name}, which is not installed", fix="pip install 'delayctl[serve]'"
        ) from error
    bedside = by_file(topology, connection_from(options), options)
    show(bedside, Page(topology, host, port, names, allow_redrive, token_file, every, opens))
    return exit_codes.DONE
