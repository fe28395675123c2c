"""Commands that are imported when they are asked for."""

from collections.abc import Iterator, Mapping, MutableMapping
from importlib import import_module

import click


class Later(MutableMapping[str, click.Command]):
    """Commands by name, each imported when it is asked for: a run needs one of them, and all together take a second to load."""

    def __init__(self, modules: Mapping[str, str]) -> None:
        self._modules = dict(modules)
        self._loaded: dict[str, click.Command] = {}

    def __getitem__(self, name: str) -> click.Command:
        if name not in self._loaded:
            module, _, attribute = self._modules[name].partition(":")
            self._loaded[name] = getattr(import_module(f"delayctl.cli.{module}"), attribute or name)
        return self._loaded[name]

    def __setitem__(self, name: str, command: click.Command) -> None:
        self._modules.setdefault(name, "")
        self._loaded[name] = command

    def __delitem__(self, name: str) -> None:
        del self._modules[name]
        self._loaded.pop(name, None)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __len__(self) -> int:
        return len(self._modules)
