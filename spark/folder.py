"""Tables as folders of small Parquet files, which tasks add to and nobody changes."""

import errno
import json
import os
import re
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from delayctl.spark.places import absolute, shown
from delayctl.topology.errors import DelayctlError
from delayctl.topology.wording import quoted
from pyarrow import fs

_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK)
_TEMPORARY = "_writing-"  # Spark does not look at files that begin with an underscore.


@dataclass(frozen=True, slots=True, order=True)
class Part:
    """The name of a file: which run, partition and attempt wrote it, and how many rows it has."""

    run: int
    partition: int
    attempt: int
    sequence: int
    rows: int

    def __str__(self) -> str:
        return f"{self.run:04}-{self.partition:05}-{self.attempt}-{self.sequence:06}-{self.rows}.parquet"

    @classmethod
    def parse(cls, name: str) -> "Part | None":
        """Read a name; None where it is no part's."""
        numbers = name.removesuffix(".parquet").split("-")
        is_part = name.endswith(".parquet") and len(numbers) == 5 and all(number.isdecimal() for number in numbers)
        return cls(*map(int, numbers)) if is_part else None


def for_spark(uri: str) -> str:
    """A place as Spark calls it: what is s3 to PyArrow is s3a there."""
    return f"s3a://{uri.removeprefix('s3://')}" if uri.startswith("s3://") else uri


def as_no_pattern(place: str) -> str:
    """A place that Spark takes as it is, and not for a pattern of several."""
    return re.sub(r"[\[\]{}*?\\]", r"\\\g<0>", place)


class FolderUnreadable(DelayctlError):
    """A folder, or a file in it, can't be read."""


class Folder:
    """A folder by path or URI, wherever PyArrow can write: file, hdfs, s3, gs."""

    def __init__(self, uri: str) -> None:
        self.uri = uri
        try:
            found = fs.FileSystem.from_uri(absolute(uri))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError) as error:
            raise DelayctlError(
                f"the folder {quoted(shown(uri))} can't be used: {shown(str(error))}",
                fix="give a path, or a URI such as s3://bucket/path",
            ) from None  # The cause would repeat the URI, and with it what is secret in it.
        self._files: fs.FileSystem = found[0]
        self._path: str = found[1]

    def at(self, table: str) -> str:
        """Where a table is, as Spark wants to hear it."""
        return f"{for_spark(self.uri).rstrip('/')}/{table}"

    def write_part(self, table: str, part: Part, rows: Sequence[Mapping[str, Any]], schema: pa.Schema) -> None:
        """Add rows to a table: all of them, or none where it fails."""
        sink = pa.BufferOutputStream()
        pq.write_table(pa.Table.from_pylist(list(rows), schema), sink, compression="zstd")
        self._write(f"{table}/{part}", sink.getvalue().to_pybytes())

    def parts(self, table: str) -> list[Part]:
        """The parts of a table, sorted."""
        return sorted(part for name in self._names(table) if (part := Part.parse(name)))

    def read_part(self, table: str, part: Part, columns: Sequence[str]) -> pa.Table:
        """Some columns of a part."""
        with self._reading(f"{table}/{part}"), self._files.open_input_file(f"{self._path}/{table}/{part}") as file:
            return pq.read_table(file, columns=list(columns))

    def delete_part(self, table: str, part: Part) -> None:
        """Remove a part."""
        try:
            self._files.delete_file(f"{self._path}/{table}/{part}")
        except OSError as error:
            raise self._trouble(f"{table}/{part}", "removed", error) from error

    def write_json(self, name: str, value: object) -> None:
        """Write a small file, whole or not at all."""
        self._write(name, json.dumps(value, indent=2).encode() + b"\n")

    def create_json(self, name: str, value: object) -> bool:
        """Write a small file where there is none of this name; says whether that was so."""
        return self._write(name, json.dumps(value, indent=2).encode() + b"\n", is_new=True)

    def read_json(self, name: str) -> Any:
        """Read a small file; None where there is none."""
        path = f"{self._path}/{name}"
        with self._reading(name):
            if self._files.get_file_info(path).type is not fs.FileType.File:
                return None
            with self._files.open_input_stream(path) as file:
                return json.loads(file.read())

    def names(self, table: str) -> list[str]:
        """The names of the files in a table, sorted."""
        return sorted(self._names(table))

    def _names(self, table: str) -> list[str]:
        selector = fs.FileSelector(f"{self._path}/{table}", allow_not_found=True)
        with self._reading(table):
            try:
                found = self._files.get_file_info(selector)
            except FileNotFoundError:  # It came between PyArrow's look into it and its look whether it is there.
                found = self._files.get_file_info(selector)
            return [info.base_name for info in found]

    @contextmanager
    def _reading(self, name: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise FolderUnreadable(
                f"{shown(self.at(name))} can't be read: {_why(error)}",
                fix="check the folder and its rights: who goes on with it must be able to read and to write all of it",
            ) from error

    def _trouble(self, name: str, what: str, error: OSError) -> DelayctlError:
        return DelayctlError(
            f"{shown(self.at(name))} can't be {what}: {_why(error)}",
            fix="check the folder, its rights and the room on the disk",
        )

    def _write(self, name: str, content: bytes, *, is_new: bool = False) -> bool:
        folder, _, base = f"{self._path}/{name}".rpartition("/")
        temporary = f"{folder}/{_TEMPORARY}{uuid.uuid4().hex}"
        try:
            self._files.create_dir(folder, recursive=True)
            with self._files.open_output_stream(temporary) as file:
                file.write(content)
            self._sync(temporary)
            if is_new:
                return self._give_free_name(temporary, f"{folder}/{base}")
            self._files.move(temporary, f"{folder}/{base}")
        except OSError as error:
            with suppress(OSError):  # What went wrong first says more, and nobody reads a file of this name.
                self._files.delete_file(temporary)
            raise self._trouble(name, "written", error) from error
        return True

    def _give_free_name(self, temporary: str, path: str) -> bool:
        """Only on this machine, and where there are links, can nobody else take the name in the same moment."""
        if isinstance(self._files, fs.LocalFileSystem):
            try:
                os.link(temporary, path)
            except FileExistsError:
                self._files.delete_file(temporary)
                return False
            except OSError as error:
                if error.errno not in _NO_LINKS:
                    raise
            else:
                self._files.delete_file(temporary)
                return True
        is_free = self._files.get_file_info(path).type is fs.FileType.NotFound
        if is_free:
            self._files.move(temporary, path)
        else:
            self._files.delete_file(temporary)
        return is_free

    def _sync(self, path: str) -> None:
        """Have it on the disk before it gets its name: a machine that dies leaves no half file under it."""
        if isinstance(self._files, fs.LocalFileSystem):
            descriptor = os.open(path, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)


def _why(error: OSError) -> str:
    """What the system says, without the name of the file, which PyArrow repeats."""
    return shown(str(error)).partition(". Detail: ")[0]
