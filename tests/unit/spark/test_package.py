"""The archive for `--py-files`: all that a job needs where delayctl is not installed."""

import io
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest
from delayctl.spark.package import LEFT_OUT, LIBRARIES, PACKAGES, archive, package_files
from packaging.requirements import Requirement

import delayctl
from tests.support.commands import Ran
from tests.support.commands import delayctl as run

ROOT = Path(__file__).parents[3]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
IMPORTED_AS = {"pyyaml": "yaml"}


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The archive, made by the command."""
    path = tmp_path_factory.mktemp("package") / "delayctl-spark.zip"
    assert run("spark-package", str(path)).code == 0
    return path


def run_with(package: Path, program: str) -> str:
    """Run a program in a Python that has its own library, the archive, and nothing else."""
    text = f"import sys; sys.path.insert(0, {str(package)!r}); {program}"
    return subprocess.run([sys.executable, "-I", "-S", "-c", text], check=True, capture_output=True, text=True).stdout


class TestContent:
    """What is in it."""

    def test_it_has_every_package_of_the_distribution(self) -> None:
        """A new one is a new line there too."""
        assert set(PACKAGES) == set(PROJECT["tool"]["setuptools"]["packages"])

    def test_it_has_every_library_that_delayctl_requires(self) -> None:
        """And the one that those stand on."""
        names = {Requirement(text).name for text in PROJECT["project"]["dependencies"]}

        assert set(LIBRARIES) == {IMPORTED_AS.get(name, name) for name in names} | {"markupsafe"}

    def test_it_has_every_file_of_ours(self) -> None:
        """Modules, schema and templates, as they are in the repository."""
        folders: dict[str, str] = PROJECT["tool"]["setuptools"]["package-dir"]
        expected = {
            f"{package.replace('.', '/')}/{file.name}": file.read_bytes()
            for package, folder in folders.items()
            for file in (ROOT / folder).iterdir()
            if file.is_file() and file.name != "py.typed"
        }

        own = ("delayctl/", "pyspark_delayctl/")
        assert {name: content for name, content in package_files().items() if name.startswith(own)} == expected

    def test_it_has_nothing_that_was_compiled_for_one_platform(self) -> None:
        """Executors may run another one."""
        assert [name for name in package_files() if name.endswith(LEFT_OUT) or "__pycache__" in name] == []


class TestBytes:
    """How it is written."""

    def test_the_same_files_make_the_same_bytes(self) -> None:
        """In whatever order they come: a deployment compares."""
        assert archive({"a": b"1", "b/c": b"2"}) == archive({"b/c": b"2", "a": b"1"})

    def test_every_file_can_be_read_back(self) -> None:
        """With the rights of a file that all may read."""
        with zipfile.ZipFile(io.BytesIO(archive({"b/c": b"2", "a": b"1"}))) as packed:
            found = [
                (entry.filename, packed.read(entry), oct(entry.external_attr >> 16)) for entry in packed.infolist()
            ]

        assert found == [("a", b"1", "0o644"), ("b/c", b"2", "0o644")]


class TestUse:
    """The archive on a Python that has nothing else."""

    def test_the_publisher_comes_from_it(self, package: Path) -> None:
        """With the libraries that it needs."""
        program = "import delayctl.publishers as p, pika; print(p.__file__, pika.__file__, sep='\\n')"

        assert run_with(package, program).splitlines() == [
            f"{package}/delayctl/publishers/__init__.py",
            f"{package}/pika/__init__.py",
        ]

    def test_the_command_runs_from_it(self, package: Path, tmp_path: Path) -> None:
        """Schema and template are found in it, and yaml and markupsafe do without their compiled parts."""
        file = tmp_path / "topology.yaml"
        program = (
            f"from delayctl.cli.main import main; main(['init', {str(file)!r}]); main(['validate', {str(file)!r}])"
        )

        assert f"{file} is valid" in run_with(package, program)

    def test_it_has_the_version_of_the_package(self, package: Path) -> None:
        """Of the one that made it."""
        assert run_with(package, "import delayctl; print(delayctl.__version__)") == f"{delayctl.__version__}\n"


class TestCommand:
    """`delayctl spark-package`."""

    def test_it_says_what_was_written_and_how_to_use_it(self, tmp_path: Path) -> None:
        """The next step is a line to copy."""
        path = tmp_path / "d.zip"

        ran = run("spark-package", str(path))

        size = path.stat().st_size / 1_000_000
        assert ran == Ran(
            0,
            f"Wrote {path}: {len(package_files())} files, {size:.1f} MB. Next: spark-submit --py-files {path} JOB.py\n",
            "",
        )

    def test_an_older_one_is_replaced(self, tmp_path: Path) -> None:
        """And nothing is left beside it."""
        path = tmp_path / "d.zip"
        path.write_bytes(b"old")

        run("spark-package", str(path))

        assert zipfile.is_zipfile(path)
        assert list(tmp_path.iterdir()) == [path]

    def test_a_name_that_spark_would_not_send_is_refused(self, tmp_path: Path) -> None:
        """Spark takes any other for a single module."""
        path = tmp_path / "delayctl.tar"

        assert run("spark-package", str(path)) == Ran(
            64,
            "",
            f"Error: {path} is no name for a package: Spark sends archives named *.zip\n  fix: name it {path}.zip\n",
        )

    def test_a_place_that_is_not_there_is_named(self, tmp_path: Path) -> None:
        """With the reason of the system."""
        path = tmp_path / "missing" / "d.zip"

        assert run("spark-package", str(path)) == Ran(
            1,
            "",
            "Error: the package can't be written: No such file or directory\n"
            f"  at {path}\n  fix: name a place that can be written\n",
        )

    def test_a_folder_is_no_place_for_it(self, tmp_path: Path) -> None:
        """What was begun beside it is gone."""
        path = tmp_path / "d.zip"
        path.mkdir()

        assert run("spark-package", str(path)).err.startswith("Error: the package can't be written: Is a directory\n")
        assert list(tmp_path.iterdir()) == [path]
