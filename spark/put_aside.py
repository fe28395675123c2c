"""Rows that a write put aside: they stay when it comes to its end, once each, and go when it fails.

Attempts of tasks know nothing of each other, and one that lost a race may have written its parts all the same. So it is
the driver that says what stays, when every task has told what it wrote.
"""

from collections.abc import Collection, Mapping

from delayctl.spark.folder import Folder, Part

Written = tuple[str, Part]  # A table, and a part of it.


def keep_only(folders: Mapping[str, Folder], runs: Collection[int], kept: Collection[Written]) -> None:
    """Of what was written in these runs, remove all but this."""
    for table, folder in folders.items():
        for part in folder.parts(table):
            if part.run in runs and (table, part) not in kept:
                folder.delete_part(table, part)


def remove(folders: Mapping[str, Folder], written: Collection[Written]) -> None:
    """Remove what was written."""
    for table, part in written:
        folders[table].delete_part(table, part)
