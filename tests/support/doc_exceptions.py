"""Which blocks and lines of the documentation no test of blocks runs, and why."""

_MAKE = "brings up brokers and runs every test, this one included"
_CLUSTER = "needs a cluster; tests/integration/test_backfill_cluster.py has one"
_EXAMPLE = "tests/integration/test_publish_command.py runs it, and reads the answer"
# By page, and how the block or the line begins.
NOT_RUN = {
    "README.md": {"make ": _MAKE},
    "CONTRIBUTING.md": {"make ": _MAKE, ".venv/bin/": _MAKE},
    "compose/README.md": {"docker compose": "starts containers"},
    "docs/any-delay.md": {"long units": "Java; the program in Python above it, which is run, makes the same headers"},
    "docs/connecting.md": {"username:": "a secret is left out; tests/integration/test_access.py uses such files"},
    "docs/consuming.md": {"python examples/": _EXAMPLE},
    "docs/export.md": {
        "RABBITMQ_PASSWORD=…": "starts a container; tests/integration/test_export.py loads what is in it"
    },
    "docs/from-delay-plugin.md": {"import pika": "what the page leads away from: it needs the plugin"},
    "docs/import.md": {"# NServiceBus": "comments of a file; tests/integration/test_import.py has such a file written"},
    "docs/metrics.md": {"docker compose": "starts containers"},
    "docs/publishing.md": {"python examples/": _EXAMPLE},
    "docs/scale.md": {"delayctl backfill …": "only the end of a command, whose beginning is the reader's"},
    "docs/serve.md": {"pip install": "installs from the network"},
    "docs/shards.md": {"rabbitmq-plugins": "an administrator's; the brokers of the tests have the plugin"},
    "docs/simulator.md": {
        "delayctl simulate": "tests/unit/cli/test_simulate_docs.py runs it, and compares the answer",
        "DELAYCTL_COMPILE=1": "installs from the network, and compiles; `make compiled` does the second",
    },
    "docs/spark.md": {
        "pip install": "installs from the network",
        "java -version": "asks which Java there is",
        "spark-submit": _CLUSTER,
        "delayctl backfill --master": _CLUSTER,
    },
    "docs/start.md": {
        "make demo": "brings up a broker of its own",
        ".venv/bin/python -m testbed": "opens a shell for a person",
    },
    "docs/testing.md": {
        "pytest -q": "tests/unit/testing/test_docs.py runs it, and compares the answer",
        "[pytest]": "tests/unit/testing/test_docs.py runs the tests of the page with it",
    },
    "docs/verify.md": {"apiVersion: batch/v1": "for a Kubernetes cluster"},
}
# Blocks that are a part of what a command answers: compared with it.
ANSWERS = {
    ("docs/export.md", 'resource "rabbitmq_queue"'): ("export", "topology.yaml", "--format", "terraform"),
    ("docs/export.md", "apiVersion: rabbitmq.com"): ("export", "topology.yaml", "--format", "kubernetes"),
}


def reason_for(page: str, text: str) -> str | None:
    """Why a block or a line is not run; None where it is."""
    return next((why for start, why in NOT_RUN.get(page, {}).items() if text.startswith(start)), None)


def answered_by(page: str, text: str) -> tuple[str, ...] | None:
    """The command whose answer a block is a part of."""
    return next((words for (of, start), words in ANSWERS.items() if of == page and text.startswith(start)), None)
