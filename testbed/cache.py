"""The folder that keeps what was fetched or built, shared safely between processes."""

import fcntl
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

MAKING = ".making-"


def cache_folder() -> Path:
    """Return the cache folder: DELAYCTL_CACHE, else delayctl under the user's cache folder."""
    given = os.environ.get("DELAYCTL_CACHE")
    if given:
        return Path(given).expanduser().absolute()
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser().absolute() / "delayctl"


@contextmanager
def locked(name: str) -> Iterator[None]:
    """Hold the lock of this name against every other process that uses the same cache folder."""
    folder = cache_folder() / "locks"
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / f"{name}.lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"waiting for another process that prepares {name}")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def cached(path: Path, make: Callable[[Path], None]) -> Path:
    """Return `path`, made once by `make(scratch)`; an interrupted make leaves nothing behind at `path`."""
    if path.exists():
        return path
    with locked(path.name):
        if path.exists():
            return path
        path.parent.mkdir(parents=True, exist_ok=True)
        # Under the lock nobody else makes this: what is there of it was left by a process that was killed.
        for stale in path.parent.glob(f"{MAKING}{path.name}-*"):
            shutil.rmtree(stale, ignore_errors=True)
        with scratch_folder(path.parent, path.name) as scratch:
            made = scratch / path.name
            make(made)
            os.rename(made, path)
    return path


@contextmanager
def scratch_folder(parent: Path, name: str = "part") -> Iterator[Path]:
    """Make a folder on the same disk as the cache, so that the result is put in place by one rename."""
    scratch = Path(tempfile.mkdtemp(prefix=f"{MAKING}{name}-", dir=parent))
    try:
        yield scratch
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def say(message: str) -> None:
    """Show progress on standard error."""
    print(f"testbed: {message}", file=sys.stderr, flush=True)
