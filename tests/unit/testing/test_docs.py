"""What the documentation shows is run, and so is the example."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "testing.md").read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str, page: str = PAGE) -> list[str]:
    """The code of one language on a page."""
    return re.findall(rf"^```{language}\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)


def run_pytest(folder: Path, *arguments: str) -> str:
    """Run pytest there, with no plugin but ours; gives its last line."""
    # By name and not by entry point: what is installed here may be older than what is tested.
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": ""}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "delayctl.testing.plugin", "-p", "no:cacheprovider"]
    ran = subprocess.run(
        [*command, *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout.splitlines()[-1]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project as the page describes it."""
    (topology,), (ini,) = blocks("yaml"), blocks("ini")
    (tmp_path / "topology.yaml").write_text(topology, encoding="utf-8")
    (tmp_path / "pytest.ini").write_text(ini, encoding="utf-8")
    for number, block in enumerate(blocks("python")):
        (tmp_path / f"test_block_{number}.py").write_text(block, encoding="utf-8")
    return tmp_path


def test_the_first_test_of_the_page_answers_as_the_page_says(project: Path) -> None:
    """Two tests, and quickly."""
    assert "2 passed in 0.21s" in PAGE
    assert re.match(r"2 passed in \d\.\d+s", run_pytest(project, "test_block_0.py"))


def test_every_block_of_the_page_runs(project: Path) -> None:
    """Each is a file of its own."""
    functions = sum(block.count("def test_") for block in blocks("python"))

    assert run_pytest(project, "-W", "error").startswith(f"{functions} passed in ")


def test_the_test_of_the_readme_runs(project: Path) -> None:
    """With the file that the README shows."""
    (project / "topology.yaml").write_text(blocks("yaml", README)[0], encoding="utf-8")
    (block,) = (block for block in blocks("python", README) if "def test_" in block)
    (project / "test_readme.py").write_text(block, encoding="utf-8")

    assert run_pytest(project, "test_readme.py", "-W", "error").startswith("1 passed in ")


def test_the_example_runs() -> None:
    """The tests of the example service."""
    assert run_pytest(ROOT, "examples/test_service.py").startswith("5 passed in ")
