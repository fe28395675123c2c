"""The command that teaches a shell to complete delayctl's commands, options and files."""

import click
from click.shell_completion import get_completion_class

_SHELLS = ("bash", "zsh", "fish")


@click.command(
    short_help="Print the completion script of a shell.",
    epilog="""\b
Examples:
  delayctl completion bash > ~/.local/share/bash-completion/completions/delayctl
  delayctl completion fish > ~/.config/fish/completions/delayctl.fish
  eval "$(delayctl completion zsh)"      # in ~/.zshrc, after compinit
""",
)
@click.argument("shell", type=click.Choice(_SHELLS))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print a script by which SHELL completes what is typed after delayctl: commands, options, their values, files."""
    kind = get_completion_class(shell)
    assert kind is not None
    root = context.find_root()
    # Without the check of the shell's version that click makes by starting it: the script may be for another machine.
    script = kind(root.command, {}, "delayctl", "_DELAYCTL_COMPLETE")
    click.echo((script.source_template % script.source_vars()).strip())
