"""The help of `delayctl`: commands by what one wants to do."""

from collections.abc import Iterator

import click

# Names of commands that are not there count for nothing.
GROUPS: dict[str, tuple[str, ...]] = {
    "Describe and foretell (no broker needed)": (
        "init",
        "validate",
        "explain",
        "graph",
        "simulate",
        "capacity",
        "render",
        "schema",
        "export",
    ),
    "Bring a broker there": ("plan", "apply", "destroy", "import", "permissions"),
    "Publish and consume": ("publish", "consume"),
    "See how it does": ("status", "watch", "serve", "metrics", "verify", "doctor", "pending"),
    "Put messages right": ("redrive", "expedite", "cancel"),
    "With Spark": ("backfill", "audit", "spark-package"),
}
_OTHERS = "More"


class GroupedHelp(click.Group):
    """A group whose help lists its commands by theme; those that no theme names come last."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 (as click calls it)
        """Write a section for each theme, all with their texts in one column."""
        width = max(map(len, self.commands))
        for theme, names in self._themes():
            with formatter.section(theme):
                room = formatter.width - formatter.current_indent - width - 2
                formatter.write_dl(
                    [(name.ljust(width), self.commands[name].get_short_help_str(room)) for name in names]
                )

    def _themes(self) -> Iterator[tuple[str, list[str]]]:
        known = {name for names in GROUPS.values() for name in names}
        for theme, names in (*GROUPS.items(), (_OTHERS, tuple(sorted(self.commands.keys() - known)))):
            if there := [name for name in names if name in self.commands]:
                yield theme, there
