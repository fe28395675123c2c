"""Which blocks and lines of the documentation no test of blocks runs, and why."""

# By page, and how the block or the line begins.
NOT_RUN = {
    ("README.md", "make "): "brings up brokers and runs every test, this one included",
    ("CONTRIBUTING.md", "make "): "brings up brokers and runs every test, this one included",
    ("CONTRIBUTING.md", ".venv/bin/"): "runs tests, this one included",
    ("compose/README.md", "docker compose"): "starts containers; tests/testbed does, too",
    ("docs/start.md", "make demo"): "brings up a broker of its own",
    ("docs/start.md", ".venv/bin/python -m testbed"): "opens a shell for a person",
    ("docs/export.md", "RABBITMQ_PASSWORD=…"): "starts a container; tests/integration/test_export.py does, with the same file",
    ("docs/metrics.md", "docker compose"): "starts containers",
    ("docs/serve.md", "pip install"): "installs from the network",
    ("docs/spark.md", "pip install"): "installs from the network",
    ("docs/spark.md", "java -version"): "says what Java there is; nothing of ours",
    ("docs/shards.md", "rabbitmq-plugins"): "an administrator's; brokers of the tests have the plugin",
    ("docs/consuming.md", "python examples/"): "tests/integration/test_publish_command.py runs it, and compares the answer",
    ("docs/publishing.md", "python examples/"): "tests/integration/test_publish_command.py runs it, and compares the answer",
    ("docs/simulator.md", "delayctl simulate"): "tests/unit/cli/test_simulate_docs.py runs it, and compares the answer",
    ("docs/testing.md", "pytest -q"): "tests/unit/testing/test_docs.py runs it, and compares the answer",
    ("docs/spark.md", "spark-submit"): "needs a cluster; tests/integration/test_backfill_cluster.py has one",
    ("docs/spark.md", "delayctl backfill --master"): "needs a cluster; tests/integration/test_backfill_cluster.py has one",
    ("docs/scale.md", "delayctl backfill …"): "only the end of a command, whose beginning is the reader's",
    ("docs/from-delay-plugin.md", "import pika"): "what the page leads away from: it needs the plugin",
    ("docs/any-delay.md", "long units"): "Java; the same headers are made in Python above it, which is run",
    ("docs/connecting.md", "username:"): "a file with a secret left out; tests/integration/test_access.py uses such files",
    ("docs/testing.md", "[pytest]"): "tests/unit/testing/test_docs.py runs the tests of the page with it",
    ("docs/verify.md", "apiVersion: batch/v1"): "for a Kubernetes cluster",
    ("docs/import.md", "# NServiceBus"): "a comment of a file; tests/integration/test_import.py compares it",
}

# Blocks that are a part of what a command answers: compared with it.
ANSWERS = {
    ("docs/export.md", 'resource "rabbitmq_queue"'): ("export", "topology.yaml", "--format", "terraform"),
    ("docs/export.md", "apiVersion: rabbitmq.com"): ("export", "topology.yaml", "--format", "kubernetes"),
}


def answered_by(page: str, text: str) -> tuple[str, ...] | None:
    """The command whose answer a block is a part of."""
    return next((words for (of, start), words in ANSWERS.items() if of == page and text.startswith(start)), None)


def reason_for(page: str, text: str) -> str | None:
    """Why a block or a line is not run; None where it is."""
    return next((why for (of, start), why in NOT_RUN.items() if of == page and text.startswith(start)), None)
