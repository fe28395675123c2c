"""Broken files that are too large or too odd to be kept as text: name to content."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

VERSION = b"version: 1\n"

GENERATED: Mapping[str, Callable[[], bytes]] = MappingProxyType(
    {
        "bytes_latin_1": lambda: VERSION + "# Grüße\nvhost: bücher\n".encode("latin-1"),
        "bytes_utf_16": lambda: "version: 1\n".encode("utf-16"),
        "bytes_nul": lambda: VERSION + b"vhost: shop\nprefix: a\x00b\n",
        "bytes_control_character": lambda: VERSION + b"vhost: shop\n# a bell: \x07\n",
        "bytes_mark_of_our_own": lambda: VERSION + b"vhost: shop\nprefix: \x01\n",
        "bytes_binary": lambda: bytes(range(256)) * 16,
        "deep_brackets": lambda: VERSION + b"vhost: " + b"[" * 100_000 + b"\n",
        "deep_closed_brackets": lambda: VERSION + b"vhost: " + b"[" * 100_000 + b"]" * 100_000 + b"\n",
        "deep_braces": lambda: VERSION + b"vhost: " + b"{a: " * 100_000 + b"\n",
        "deep_dashes": lambda: VERSION + b"vhost:\n " + b"- " * 100_000 + b"\n",
        "deep_keys": lambda: VERSION + b"".join(b" " * depth + b"a:\n" for depth in range(1000)),
        "large_beyond_bounds": lambda: VERSION + b"# much ado\n" * 400_000,
        "large_with_problem_at_the_end": lambda: VERSION + b"# much ado\n" * 100_000 + b"queeus: {}\n",
        "large_line": lambda: VERSION + b"vhost: " + b"v" * 1_000_000 + b"\n",
        "large_list_of_aliases": lambda: (
            VERSION + b"x: &x [" + b"a, " * 20_000 + b"a]\nroutes: [" + b"*x, " * 200_000 + b"*x]\n"
        ),
        "large_list_of_merges": lambda: (
            VERSION
            + b"x: &x {"
            + b"".join(b"k%d: 1, " % i for i in range(5_000))
            + b"}\nroutes: ["
            + b"{<<: *x}, " * 50_000
            + b"]\n"
        ),
        "large_number_of_problems": lambda: (
            VERSION + b"queues:\n" + b"".join(b"  q%d: {typ: quorum}\n" % i for i in range(5_000))
        ),
    }
)
