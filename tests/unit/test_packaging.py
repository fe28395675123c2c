"""The distribution: what is in it, and that it works where nothing else of ours is."""

import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from email import message_from_string
from email.message import Message
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

import delayctl

ROOT = Path(__file__).parents[2]
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
SHAPE: dict[str, Any] = PROJECT["tool"]["setuptools"]
NOT_SHIPPED = {"benchmarks", "build", "dist", "examples", "scripts", "testbed", "tests"}


def shipped_folders() -> set[Path]:
    """Every folder with Python files that belongs to the distribution."""
    rooms = (folder for folder in ROOT.iterdir() if folder.name not in NOT_SHIPPED and folder.name[0] != ".")
    return {file.parent.relative_to(ROOT) for room in rooms for file in room.rglob("*.py")}


def shipped_files() -> set[str]:
    """Every file of these folders, under the name that it has in the wheel."""
    return {
        f"{package.replace('.', '/')}/{file.name}"
        for package, folder in SHAPE["package-dir"].items()
        for file in (ROOT / folder).iterdir()
        if file.is_file()
    }


class TestShape:
    """What pyproject.toml says, against what is there."""

    def test_every_folder_is_a_package(self) -> None:
        """A folder that is forgotten works here, and is missing from the wheel."""
        assert {Path(folder) for folder in SHAPE["package-dir"].values()} == shipped_folders()

    def test_packages_and_their_folders_go_together(self) -> None:
        """Both lists name the same packages."""
        assert set(SHAPE["packages"]) == set(SHAPE["package-dir"])

    @pytest.mark.parametrize("package", SHAPE["packages"])
    def test_every_package_says_what_it_is(self, package: str) -> None:
        """It has an `__init__.py`, without which it would not be found."""
        assert (ROOT / SHAPE["package-dir"][package] / "__init__.py").is_file()

    @pytest.mark.parametrize("package", SHAPE["packages"])
    def test_a_folder_is_named_as_its_package(self, package: str) -> None:
        """`delayctl.topology` lives in `topology`."""
        assert SHAPE["package-dir"][package] == package.removeprefix("delayctl.")

    def test_the_real_package_holds_nothing_else(self) -> None:
        """All that there is lives in the rooms."""
        assert {file.name for file in (ROOT / "delayctl").iterdir() if file.is_file()} == {
            "__init__.py",
            "__main__.py",
            "py.typed",
        }

    def test_spark_is_an_extra(self) -> None:
        """Whoever delays messages needs no Spark."""
        names = {Requirement(text).name for text in PROJECT["project"]["dependencies"]}

        assert names == {"click", "jinja2", "pika", "pyyaml", "urllib3"}


def is_setuptools_here() -> bool:
    """Say whether a setuptools that is new enough is installed; without, it comes from PyPI."""
    try:
        return Version(metadata.version("setuptools")) >= Version("77")
    except metadata.PackageNotFoundError:
        return False


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist, and with the wheel that was built from it."""
    source, target = tmp_path_factory.mktemp("source") / "delayctl", tmp_path_factory.mktemp("dist")
    ignored = shutil.ignore_patterns(".*", "build", "dist", "*.egg-info", "__pycache__", "tests", "testbed")
    shutil.copytree(ROOT, source, ignore=ignored)
    options = ["--no-isolation"] if is_setuptools_here() else []
    command = [sys.executable, "-m", "build", *options, "--outdir", str(target), str(source)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return target


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    """The wheel."""
    (found,) = built.glob("*.whl")
    return found


def metadata_of(wheel: Path) -> Message:
    """What the wheel says of itself."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return message_from_string(archive.read(name).decode())


class TestWheel:
    """What is installed."""

    def test_it_has_every_file_and_no_other(self, wheel: Path) -> None:
        """Modules, type marker, schema and template."""
        with zipfile.ZipFile(wheel) as archive:
            names = {name for name in archive.namelist() if ".dist-info/" not in name}

        assert names == shipped_files()
        assert {"delayctl/py.typed", "delayctl/topology/schema.json", "delayctl/cli/topology.yaml.j2"} <= names

    def test_it_has_the_licence(self, wheel: Path) -> None:
        """The text itself, and its name."""
        with zipfile.ZipFile(wheel) as archive:
            (name,) = (name for name in archive.namelist() if name.endswith("/LICENSE"))
            text = archive.read(name).decode()

        assert text == (ROOT / "LICENSE").read_text(encoding="utf-8")
        assert metadata_of(wheel)["License-Expression"] == "Apache-2.0"

    def test_it_has_the_command_and_the_plugin_of_pytest(self, wheel: Path) -> None:
        """Two entry points."""
        with zipfile.ZipFile(wheel) as archive:
            (name,) = (name for name in archive.namelist() if name.endswith("/entry_points.txt"))
            text = archive.read(name).decode()

        assert text.split("\n\n") == [
            "[console_scripts]\ndelayctl = delayctl.__main__:run",
            "[pytest11]\ndelayctl = delayctl.testing.plugin\n",
        ]

    def test_it_requires_no_spark(self, wheel: Path) -> None:
        """`pip install delayctl` brings five libraries; all else is asked for by name."""
        requirements = [Requirement(text) for text in metadata_of(wheel).get_all("Requires-Dist", [])]
        always = {r.name for r in requirements if r.marker is None or r.marker.evaluate({"extra": ""})}

        assert {name.lower() for name in always} == {"click", "jinja2", "pika", "pyyaml", "urllib3"}

    def test_it_has_the_version_of_the_package(self, wheel: Path) -> None:
        """There is one place for it."""
        assert metadata_of(wheel)["Version"] == delayctl.__version__


def test_the_sdist_has_all_that_the_wheel_is_made_of(built: Path) -> None:
    """The wheel above was built from it alone."""
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}

    folders = {package.replace(".", "/"): folder for package, folder in SHAPE["package-dir"].items()}
    expected = {f"{folders[name.rpartition('/')[0]]}/{name.rpartition('/')[2]}" for name in shipped_files()}
    assert expected | {"pyproject.toml", "README.md", "LICENSE"} <= names


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bin folder of a fresh environment with the wheel in it, and nothing of this repository."""
    home = tmp_path_factory.mktemp("installed")
    venv.create(home, with_pip=False)
    python = home / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "--disable-pip-version-check", "--quiet"]
    subprocess.run([*pip, "install", "--no-deps", "--no-index", str(wheel)], check=True, capture_output=True)
    return home / "bin"


def run(command: list[str | Path], folder: Path) -> str:
    """Run a command far from this repository; what it depends on is borrowed from the tests' own environment."""
    borrowed = Path(pytest.__file__).parents[1]
    # PYTHONPATH reads no .pth files, so the editable install of this repository does not come along.
    environment = {**os.environ, "PYTHONPATH": str(borrowed)}
    ran = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


class TestInstalled:
    """The wheel at work."""

    def test_it_is_the_wheel_that_runs(self, installed: Path, tmp_path: Path) -> None:
        """And not this repository."""
        program = "import delayctl.topology.model as m; print(m.__file__)"

        assert Path(run([installed / "python", "-c", program], tmp_path).strip()).is_relative_to(installed.parent)

    def test_it_tells_its_version(self, installed: Path, tmp_path: Path) -> None:
        """Through the command."""
        assert run([installed / "delayctl", "--version"], tmp_path) == f"delayctl, version {delayctl.__version__}\n"

    def test_it_runs_as_a_module(self, installed: Path, tmp_path: Path) -> None:
        """`python -m delayctl` too."""
        assert delayctl.__version__ in run([installed / "python", "-m", "delayctl", "--version"], tmp_path)

    def test_pytest_finds_the_simulated_broker(self, installed: Path, tmp_path: Path) -> None:
        """By the entry point: nothing is imported, nothing configured."""
        (tmp_path / "test_it.py").write_text("def test_it(delay_broker):\n    delay_broker.advance('15m')\n")

        assert "1 passed" in run([installed / "python", "-m", "pytest", "-q", "-W", "error"], tmp_path)

    def test_spark_finds_the_data_source(self, installed: Path, tmp_path: Path) -> None:
        """It looks among the modules that are installed for names that begin with `pyspark_`."""
        program = (
            "import pkgutil; names = [m.name for m in pkgutil.iter_modules() if m.name.startswith('pyspark_')]; "
            "sources = [__import__(name).DefaultSource for name in names]; print(names, [s.name() for s in sources])"
        )

        assert run([installed / "python", "-c", program], tmp_path) == "['pyspark_delayctl'] ['delayctl']\n"

    def test_it_finds_its_template_and_its_schema(self, installed: Path, tmp_path: Path) -> None:
        """They are files beside the modules."""
        run([installed / "delayctl", "init"], tmp_path)

        assert "topology.yaml is valid" in run([installed / "delayctl", "validate", "topology.yaml"], tmp_path)
        assert run([installed / "delayctl", "schema"], tmp_path).startswith("{")
