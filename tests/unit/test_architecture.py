"""Imports point one way. The rules are tables; the checker reads the source and never imports it."""

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# Which rooms a room may import, besides itself.
ROOMS: dict[str, set[str]] = {
    "delayctl": {"cli"},
    "topology": set(),
    "publishers": {"topology"},
    "consumers": {"publishers", "topology"},
    "simulator": {"topology"},
    "testing": {"simulator", "consumers", "publishers", "topology"},
    "spark": {"consumers", "publishers", "topology"},
    "pyspark_delayctl": {"spark"},
    "web": {"simulator", "consumers", "topology"},
    "cli": {"web", "spark", "testing", "simulator", "consumers", "publishers", "topology"},
}

# Who may import what others made: whole rooms, or single modules.
LIBRARIES: dict[str, set[str]] = {
    "click": {"cli"},
    "jinja2": {
        "cli/audit_report.py",
        "cli/export.py",
        "cli/offline.py",
        "topology/instrument.py",
        "topology/render.py",
        "topology/sandbox.py",
        "topology/template_errors.py",
    },
    "matplotlib": {"cli/audit_plot.py", "cli/simulate_plot.py"},
    "pika": {
        "testing/channel.py",
        "testing/consuming.py",
        "testing/content.py",
        "testing/declarations.py",
        "testing/session.py",
        "testing/wire.py",
        "topology/amqp.py",
    },
    "prometheus_client": {"consumers/lateness.py"},
    "pytest": {"testing/plugin.py"},
    "py4j": {"spark"},
    "pyarrow": {"spark"},
    "pyspark": {"spark"},
    "resvg_py": {"cli/graph_png.py"},
    "rich": {"cli/watch.py", "cli/watch_columns.py", "cli/watch_screen.py", "cli/watch_view.py"},
    "starlette": {"web"},
    "urllib3": {"topology/management.py"},
    "uvicorn": {"web/server.py"},
    "yaml": {"topology/access.py", "topology/source.py", "topology/source_errors.py"},
}

# The modules that act or look outside; all others compute. Pure modules know neither these nor what follows.
ACTING = {
    "topology/access.py",
    "topology/amqp.py",
    "topology/execute.py",
    "topology/lock.py",
    "topology/gauge.py",
    "topology/management.py",
    "topology/rabbit.py",
    "topology/statistics.py",
    "topology/survey.py",
    "topology/users.py",
    "topology/verify_look.py",
    "cli/audit.py",
    "cli/audit_look.py",
    "cli/audit_plot.py",
    "cli/audit_report.py",
    "cli/backfill.py",
    "cli/backfill_bar.py",
    "cli/backfill_checkpoint.py",
    "cli/backfill_inputs.py",
    "cli/backfill_rooms.py",
    "cli/bedside.py",
    "cli/capacity.py",
    "cli/carry_out.py",
    "cli/cancel.py",
    "cli/changes.py",
    "cli/doctor.py",
    "cli/explain.py",
    "cli/export.py",
    "cli/graph.py",
    "cli/host.py",
    "cli/import_.py",
    "cli/inputs.py",
    "cli/later.py",
    "cli/linting.py",
    "cli/main.py",
    "cli/metrics.py",
    "cli/metrics_server.py",
    "cli/offline.py",
    "cli/open_ladder.py",
    "cli/options.py",
    "cli/output.py",
    "cli/status.py",
    "cli/permissions.py",
    "cli/tail.py",
    "cli/publish_lines.py",
    "cli/publish.py",
    "cli/progress.py",
    "cli/waiting.py",
    "cli/simulate.py",
    "cli/simulate_plot.py",
    "cli/serve.py",
    "cli/serve_run.py",
    "cli/serve_stage.py",
    "cli/spark_package.py",
    "cli/submitted.py",
    "cli/consume.py",
    "cli/consume_guard.py",
    "cli/expedite.py",
    "cli/expedite_tour.py",
    "cli/moving.py",
    "cli/pending.py",
    "cli/returning.py",
    "cli/redrive.py",
    "cli/verify.py",
    "cli/verify_bar.py",
    "cli/watch.py",
    "cli/watch_look.py",
    "cli/watch_rounds.py",
    "cli/watch_screen.py",
    "consumers/__init__.py",
    "publishers/__init__.py",
    "publishers/calibrate.py",
    "publishers/clock.py",
    "publishers/connection.py",
    "publishers/engine.py",
    "publishers/known.py",
    "publishers/outbox.py",
    "publishers/publisher.py",
    "consumers/canaries.py",
    "consumers/catcher.py",
    "consumers/consumer.py",
    "consumers/finished.py",
    "consumers/following.py",
    "consumers/lateness.py",
    "consumers/link.py",
    "consumers/look.py",
    "consumers/mover.py",
    "consumers/pull.py",
    "consumers/recorder.py",
    "consumers/treatment.py",
    "consumers/uninterrupted.py",
    "consumers/workers.py",
    "testing/__init__.py",
    "testing/asserted.py",
    "testing/clients.py",
    "testing/insight.py",
    "testing/node.py",
    "testing/plugin.py",
    "testing/rest.py",
    "testing/simulated.py",
    "testing/sockets.py",
    "testing/troubled.py",
    "spark/audit_inputs.py",
    "spark/audit_job.py",
    "spark/backfill.py",
    "spark/folder.py",
    "spark/job_sheet.py",
    "spark/journal.py",
    "spark/options.py",
    "spark/pace.py",
    "spark/places.py",
    "spark/put_aside.py",
    "spark/source.py",
    "spark/task.py",
    "spark/writer.py",
    "spark/backfill_order.py",
    "spark/checkpoint.py",
    "spark/package.py",
    "spark/session.py",
    "web/app.py",
    "web/guard.py",
    "web/parked.py",
    "web/server.py",
    "web/viewers.py",
    "web/watch.py",
    "pyspark_delayctl/__init__.py",
    "delayctl/__main__.py",
}
OUTSIDE = {
    "asyncio", "concurrent", "datetime", "getpass", "glob", "http", "importlib", "io", "logging", "multiprocessing", "os",
    "pathlib", "platform", "random", "secrets", "select", "shutil", "signal", "socket", "sqlite3", "ssl", "subprocess",
    "sys", "tempfile", "threading", "time", "traceback", "urllib", "uuid",
}  # fmt: skip
# Views speak of outcomes and exit codes count them, and outcomes are what `execute` answers with.
MAY_NAME_OUTCOMES = {"cli/views.py", "cli/exit_codes.py"}
# A time that came with a message is a value, and so is a future: asking for the present time or waiting looks outside.
HOLDING = {
    ("datetime", "cli/arrivals.py"),
    ("datetime", "cli/audit_views.py"),
    ("datetime", "cli/backfill_views.py"),
    ("datetime", "spark/rows.py"),
    ("datetime", "cli/simulate_arrivals.py"),
    ("datetime", "publishers/frames.py"),
    ("datetime", "publishers/given.py"),
    ("datetime", "consumers/message.py"),
    ("datetime", "consumers/sighting.py"),
    ("datetime", "testing/contents.py"),
    ("datetime", "testing/options.py"),
    ("pathlib", "testing/options.py"),
    ("concurrent", "publishers/delivery.py"),
    ("asyncio", "publishers/delivery.py"),
    ("threading", "publishers/delivery.py"),
    ("urllib", "web/door.py"),  # Takes addresses apart.
}
OUTSIDE_CALLS = {"open", "print", "input", "exec", "eval", "__import__", "breakpoint"}


def source_files(root: Path = ROOT) -> dict[str, str]:
    """The Python files of every room that is there."""
    return {
        file.relative_to(root).as_posix(): file.read_text(encoding="utf-8")
        for room in ROOMS
        for file in sorted((root / room).rglob("*.py"))
    }


def violations(files: Mapping[str, str]) -> list[str]:
    """Every import or call that breaks a rule, as `file:line what`."""
    return [f"{path}:{line} {what}" for path, text in files.items() for line, what in _broken(path, ast.parse(text))]


def _broken(path: str, tree: ast.Module) -> Iterator[tuple[int, str]]:
    for line, name in _imports(tree):
        if reason := _import_trouble(path, name):
            yield line, reason
    for node in ast.walk(tree):
        called = node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""
        if path not in ACTING and called in OUTSIDE_CALLS:
            yield getattr(node, "lineno", 0), f"is pure and calls {called}"


def _imports(tree: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = "." * node.level + (node.module or "")
            # `from delayctl import cli` and `from delayctl.cli import views` name modules behind the import.
            is_package = base == "delayctl" or (base.count(".") == 1 and base.startswith("delayctl."))
            yield from ((node.lineno, f"{base}.{alias.name}" if is_package else base) for alias in node.names)


def _import_trouble(path: str, name: str) -> str | None:
    room = path.partition("/")[0]
    first, *rest = name.split(".")
    if name.startswith("."):
        return f"imports {name} relatively"
    if first in ROOMS.keys() - {"delayctl"}:
        return f"imports bare {first}, a second copy of delayctl.{first}"
    if first in ("tests", "testbed", "benchmarks", "examples"):
        return f"imports {first}, which is not part of the distribution"
    if first == "delayctl":
        return _own_trouble(path, room, rest)
    if first in LIBRARIES and not {room, path} & LIBRARIES[first]:
        return f"imports {first}, which belongs to {', '.join(sorted(LIBRARIES[first]))}"
    if first in OUTSIDE and path not in ACTING and (first, path) not in HOLDING:
        return f"is pure and imports {first}"
    return None


def _own_trouble(path: str, room: str, rest: list[str]) -> str | None:
    target = rest[0] if rest else ""
    if target in ROOMS and target != room and target not in ROOMS[room]:
        return f"imports delayctl.{target} from {room}"
    module = "/".join(rest[:2]) + ".py"
    is_outcome = module == "topology/execute.py" and path in MAY_NAME_OUTCOMES
    if module in ACTING and path not in ACTING and not is_outcome:
        return f"is pure and imports {module}"
    return None


def test_imports_point_one_way() -> None:
    """No file of ours breaks a rule."""
    assert violations(source_files()) == []


def test_nobody_imports_a_bare_room() -> None:
    """Not even what is not shipped: a second copy of every class would be loaded."""
    others = ("tests", "testbed", "benchmarks", "examples")
    files = [file for folder in others for file in (ROOT / folder).rglob("*.py")]

    found = [
        f"{file.relative_to(ROOT)}:{line} {name}"
        for file in files
        for line, name in _imports(ast.parse(file.read_text(encoding="utf-8")))
        if name.startswith(".") or name.split(".")[0] in ROOMS.keys() - {"delayctl"}
    ]

    assert found == []


def test_every_room_is_looked_at() -> None:
    """The checker sees the files that are there, sub-folders included."""
    files = source_files()

    assert {"delayctl/__main__.py", "topology/model.py", "cli/main.py"} <= files.keys()
    assert len(files) > 30


@pytest.mark.parametrize("path", sorted(ACTING | set().union(*LIBRARIES.values()) | MAY_NAME_OUTCOMES))
def test_the_tables_speak_of_what_is_there(path: str) -> None:
    """A module that is gone leaves the tables too; a room may still be to come."""
    assert path in ROOMS or (ROOT / path).is_file()


def test_every_folder_of_the_distribution_has_its_rule() -> None:
    """A new room is a new line in the table."""
    folders = {file.parent.name for file in ROOT.glob("*/__init__.py")}

    assert folders - {"tests", "testbed", "benchmarks", "examples"} <= ROOMS.keys()


@pytest.mark.parametrize(
    ("path", "text", "expected"),
    [
        ("topology/model.py", "import delayctl.cli.views", "imports delayctl.cli from topology"),
        ("topology/model.py", "from delayctl.cli.views import plan_text", "imports delayctl.cli from topology"),
        ("topology/model.py", "from delayctl import cli", "imports delayctl.cli from topology"),
        ("topology/model.py", "def f():\n    import delayctl.cli", "imports delayctl.cli from topology"),
        ("simulator/clock.py", "from delayctl.publishers import x", "imports delayctl.publishers from simulator"),
        ("consumers/retry.py", "from delayctl.spark import x", "imports delayctl.spark from consumers"),
        ("topology/model.py", "from . import plan", "imports . relatively"),
        ("topology/model.py", "from .plan import Plan", "imports .plan relatively"),
        ("cli/main.py", "import topology.model", "imports bare topology, a second copy of delayctl.topology"),
        ("cli/main.py", "from cli import views", "imports bare cli, a second copy of delayctl.cli"),
        ("cli/main.py", "from testbed import x", "imports testbed, which is not part of the distribution"),
        ("topology/model.py", "import click", "imports click, which belongs to cli"),
        ("topology/lock.py", "import pika.exceptions", "imports pika, which belongs to testing/channel.py, testing/consuming.py, testing/content.py, testing/declarations.py, testing/session.py, testing/wire.py, topology/amqp.py"),
        ("testing/node.py", "import pytest", "imports pytest, which belongs to testing/plugin.py"),
        ("cli/main.py", "from urllib3 import x", "imports urllib3, which belongs to topology/management.py"),
        ("topology/live.py", "import yaml", "imports yaml, which belongs to topology/access.py, topology/source.py, topology/source_errors.py"),
        ("cli/main.py", "import pyspark", "imports pyspark, which belongs to spark"),
        ("topology/diff.py", "import time", "is pure and imports time"),
        ("topology/diff.py", "from os import environ", "is pure and imports os"),
        ("topology/diff.py", "import urllib.request", "is pure and imports urllib"),
        ("topology/diff.py", "from pathlib import Path", "is pure and imports pathlib"),
        ("topology/diff.py", "from delayctl.topology.management import Management", "is pure and imports topology/management.py"),
        ("topology/diff.py", "from delayctl.topology import amqp", "is pure and imports topology/amqp.py"),
        ("topology/diff.py", "from delayctl.topology.execute import Done", "is pure and imports topology/execute.py"),
        ("cli/views.py", "from delayctl.cli import changes", "is pure and imports cli/changes.py"),
        ("topology/diff.py", "def f():\n    print(1)", "is pure and calls print"),
        ("topology/diff.py", "open('x')", "is pure and calls open"),
    ],
)  # fmt: skip
def test_the_checker_finds(path: str, text: str, expected: str) -> None:
    """Each rule, broken once in a made-up file."""
    line = text.count("\n") + 1

    assert violations({path: text}) == [f"{path}:{line} {expected}"]


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("topology/diff.py", "from delayctl.topology.model import Queue\nimport json\nimport collections.abc"),
        ("topology/amqp.py", "import pika\nimport socket"),
        ("cli/main.py", "import os, sys\nimport click\nimport delayctl\nfrom delayctl.cli import views"),
        ("cli/views.py", "from delayctl.topology.execute import Done\nimport click"),
        ("spark/sink.py", "import pyspark\nfrom delayctl.publishers import choice"),
        ("delayctl/__main__.py", "from delayctl.cli.main import run"),
        ("topology/diff.py", "self.print(1)\nthe.open()"),
    ],
)
def test_the_checker_leaves_in_peace(path: str, text: str) -> None:
    """What is allowed, in made-up files."""
    assert violations({path: text}) == []


def test_a_violation_on_disk_is_found(tmp_path: Path) -> None:
    """From the folder to the finding."""
    (tmp_path / "topology" / "deep").mkdir(parents=True)
    (tmp_path / "topology" / "deep" / "bad.py").write_text("import time\n")

    assert violations(source_files(tmp_path)) == ["topology/deep/bad.py:1 is pure and imports time"]


@pytest.mark.parametrize(("room", "may"), [("spark", ()), ("web", ("cli/serve_run.py", "cli/serve_stage.py"))])
def test_no_module_loads_what_need_not_be_installed(room: str, may: tuple[str, ...]) -> None:
    """`cli` imports `spark` and `web` inside the command that needs it, never at the top of a file."""
    at_the_top = [
        path
        for path, text in source_files().items()
        if path.startswith("cli/") and path not in may
        for node in ast.parse(text).body
        if isinstance(node, ast.ImportFrom | ast.Import)
        for _, name in _imports(ast.Module([node], []))
        if name.startswith(f"delayctl.{room}")
    ]

    assert at_the_top == []
