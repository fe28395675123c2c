"""All is said in pyproject.toml. Where DELAYCTL_COMPILE=1 asks for it, the simulated RabbitMQ is compiled to C by mypyc."""

import os
import shutil
import tomllib
from contextlib import chdir
from pathlib import Path

from setuptools import setup

ROOT = Path(__file__).parent
STAGE = ROOT / "build" / "stage"
COMPILED = ("simulator/clock.py", "simulator/rabbitmq*.py")
NEEDED = "mypy>=1.13"


def staged() -> list[str]:
    """Lay the packages out as they are imported, which is how the compiler names what it makes; gives what it is to compile."""
    shutil.rmtree(STAGE, ignore_errors=True)
    packages = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]["package-dir"]
    for package, folder in packages.items():
        shutil.copytree(ROOT / folder, STAGE / package.replace(".", "/"), dirs_exist_ok=True)
    return sorted(f"delayctl/{path.relative_to(ROOT)}" for pattern in COMPILED for path in ROOT.glob(pattern))


def extensions() -> list[object]:
    """The modules to build; none as long as the compiler is only being asked for."""
    try:
        from mypyc.build import mypycify  # noqa: PLC0415 (it is not there when pip asks what is needed)
    except ImportError:
        return []
    sources = staged()
    with chdir(STAGE):
        options = ["--config-file=", "--ignore-missing-imports", "--follow-imports=silent"]
        return list(mypycify([*options, *sources], opt_level="3", debug_level="0", target_dir=str(STAGE / "c")))


if os.environ.get("DELAYCTL_COMPILE") == "1":
    setup(setup_requires=[NEEDED], ext_modules=extensions())
else:
    setup()
