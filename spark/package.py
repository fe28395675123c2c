"""What a Spark job takes along: delayctl and the libraries it is made of as one archive, for executors that have neither."""

import io
import os
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path

from delayctl.topology.errors import BadOption, DelayctlError

# Spark sends nothing else along with `--py-files`, and only this of it is of use here.
SUFFIX = ".zip"
ROOMS = ("cli", "consumers", "publishers", "simulator", "spark", "testing", "topology", "web")
PACKAGES = ("delayctl", *(f"delayctl.{room}" for room in ROOMS), "pyspark_delayctl")
# markupsafe is what jinja2 stands on. Where they have compiled parts, they do without.
LIBRARIES = ("click", "jinja2", "markupsafe", "pika", "urllib3", "yaml")
# Compiled for one platform, or of use to compilers and type checkers only.
LEFT_OUT = (".so", ".pyd", ".pyc", ".pyi", ".pyx", ".c", ".h", "py.typed")
# The earliest time that an archive can tell: the same files make the same bytes, whenever they were written.
TIME = (1980, 1, 1, 0, 0, 0)
READABLE = 0o644


def package_files() -> dict[str, bytes]:
    """Read all that goes into the archive: the path in it, and the content."""
    own = {name: content for package in PACKAGES for name, content in _files(package, is_deep=False)}
    return own | {name: content for library in LIBRARIES for name, content in _files(library, is_deep=True)}


def archive(contents: Mapping[str, bytes]) -> bytes:
    """Pack files into a zip whose bytes depend on nothing but them."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as target:
        for name in sorted(contents):
            entry = zipfile.ZipInfo(name, TIME)
            entry.create_system = 3
            entry.external_attr = READABLE << 16
            target.writestr(entry, contents[name], zipfile.ZIP_DEFLATED)
    return packed.getvalue()


def write_package(file: str) -> tuple[int, int]:
    """Write the archive, all of it or nothing; returns the number of its files and of its bytes."""
    if not file.endswith(SUFFIX):
        raise BadOption(
            f"{file} is no name for a package: Spark sends archives named *{SUFFIX}", fix=f"name it {file}{SUFFIX}"
        )
    contents = package_files()
    packed = archive(contents)
    try:
        _write(Path(file), packed)
    except OSError as error:
        raise DelayctlError(
            f"the package can't be written: {error.strerror}", where=file, fix="name a place that can be written"
        ) from error
    return len(contents), len(packed)


def _files(package: str, *, is_deep: bool) -> Iterator[tuple[str, bytes]]:
    # Found and not imported: the archive can be made where there is no Spark.
    found = find_spec(package)
    if found is None or not found.submodule_search_locations:
        raise DelayctlError(f"{package} is not installed as a folder", fix="install delayctl with pip, and try again")
    folder = Path(found.submodule_search_locations[0])
    for path in folder.rglob("*") if is_deep else folder.iterdir():
        if path.is_file() and not path.name.endswith(LEFT_OUT):
            yield f"{package.replace('.', '/')}/{path.relative_to(folder).as_posix()}", path.read_bytes()


def _write(path: Path, content: bytes) -> None:
    # Under another name first: a job that starts meanwhile finds the old one or the new one, never half of it.
    handle, name = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
    try:
        with open(handle, "wb") as target:
            target.write(content)
        os.chmod(name, READABLE)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise
