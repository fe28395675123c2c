"""All commands by what one wants to do, and the help of `delayctl` that lists them without loading them."""

from typing import NamedTuple

import click
from click.shell_completion import CompletionItem


class Listed(NamedTuple):
    """A command as it is listed."""

    place: str  # Its module, and its name there where that is another.
    text: str  # The first sentence of its help.


THEMES: dict[str, dict[str, Listed]] = {
    "Describe and foretell (no broker needed)": {
        "init": Listed("offline", "Write a commented file to start from."),
        "validate": Listed("offline", "Check the file, and foretell what would go wrong with it."),
        "explain": Listed("explain", "Tell the way of a message, step by step with times."),
        "graph": Listed("graph", "Draw a topology: of a file, of a broker, or of a plan."),
        "simulate": Listed("simulate", "Foretell backlogs, early messages and memory."),
        "capacity": Listed("capacity", "Work out the room that a rate and a delay need."),
        "render": Listed("offline", "Print the file after templating."),
        "schema": Listed("offline", "Print the JSON Schema of the file, for editors."),
        "export": Listed("export", "Write the topology for another tool."),
    },
    "Bring a broker there": {
        "plan": Listed("changes", "Show what apply would change, and what it would refuse."),
        "apply": Listed("changes", "Bring the broker to what the file says."),
        "destroy": Listed("changes", "Remove what was applied."),
        "import": Listed("import_:import_", "Write a file for what is on the broker already."),
        "permissions": Listed("permissions", "Show, check or set the rights that users need."),
    },
    "Publish and consume": {
        "publish": Listed("publish", "Publish a delayed message, or a file of them."),
        "consume": Listed("consume", "Watch a queue, and how late its messages are."),
    },
    "See how it does": {
        "status": Listed("status", "Show what waits, and whether all is well."),
        "watch": Listed("watch", "Show live what waits, moves, drifts and changes."),
        "serve": Listed("serve", "Show a topology on a live broker as a web page."),
        "metrics": Listed("metrics", "Tell figures to Prometheus."),
        "verify": Listed("verify", "Prove by canaries that messages wait and arrive."),
        "doctor": Listed("doctor", "Say what is wrong, why, and how to mend it."),
        "pending": Listed("pending", "List what waits and what is parked."),
    },
    "Put messages right": {
        "redrive": Listed("redrive", "Move parked messages back to where they belong."),
        "expedite": Listed("expedite", "Deliver now what waits."),
        "cancel": Listed("cancel", "Cancel messages by id while they wait."),
    },
    "With Spark": {
        "backfill": Listed("backfill", "Send the rows of a table into delays, with Spark."),
        "audit": Listed("audit", "Prove what became of a backfill."),
        "spark-package": Listed("spark_package:spark_package", "Write the archive that Spark sends to executors."),
    },
    "More": {"completion": Listed("completion", "Print the completion script of a shell.")},
}
COMMANDS: dict[str, Listed] = {name: listed for theme in THEMES.values() for name, listed in theme.items()}


class GroupedHelp(click.Group):
    """A group whose help lists its commands by theme; neither help nor completion loads one of them."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 (as click calls it)
        """Write a section for each theme, all with their texts in one column."""
        width = max(map(len, COMMANDS))
        for theme, commands in THEMES.items():
            with formatter.section(theme):
                formatter.write_dl([(name.ljust(width), listed.text) for name, listed in commands.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Offer commands, and the options of `delayctl` itself."""
        names = sorted(name for name in COMMANDS if name.startswith(incomplete))
        offered = [CompletionItem(name, help=COMMANDS[name].text) for name in names]
        return offered + click.Command.shell_complete(self, ctx, incomplete)
