"""The system's apt sources and list of packages, as they are read and passed on."""

from pathlib import Path

from testbed.apt import undemanding, without
from testbed.sources import Source, debian_mirror, parse_deb822, parse_list, system_sources

DEB822 = """# A comment.
Types: deb deb-src
# Another comment.
URIs: http://mirror.example/debian http://second.example/debian
Suites: bookworm bookworm-updates
Components: main contrib
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg

Types: deb
URIs: http://off.example/debian
Suites: bookworm
Components: main
Enabled: no

Types: deb-src
URIs: http://source.example/debian
Suites: bookworm
Components: main
"""
LIST = """
# deb http://comment.example/debian bookworm main
deb [arch=amd64 signed-by=/k.gpg trusted=yes] http://mirror.example/debian bookworm main contrib # said so
deb-src http://mirror.example/debian bookworm main
deb http://mirror.example/debian bookworm-updates main
"""
KEY = {"Signed-By": "/usr/share/keyrings/debian-archive-keyring.gpg"}


def test_paragraphs_give_one_source_for_each_address() -> None:
    """Comments, disabled paragraphs and source packages are left out."""
    suites, components = ("bookworm", "bookworm-updates"), ("main", "contrib")

    assert parse_deb822(DEB822) == [
        Source("http://mirror.example/debian", suites, components, KEY),
        Source("http://second.example/debian", suites, components, KEY),
    ]


def test_a_key_over_many_lines_stays_whole() -> None:
    """A key that stands in the file itself is passed on with its indentation, as apt wants it."""
    text = "Types: deb\nURIs: http://m.example\nSuites: sid\nComponents: main\nSigned-By:\n -----BEGIN\n .\n abc\n"

    [source] = parse_deb822(text)

    assert source.options == {"Signed-By": "\n -----BEGIN\n .\n abc"}
    assert source.text().endswith("Signed-By: \n -----BEGIN\n .\n abc\n")


def test_lines_give_one_source_each() -> None:
    """Of the options only those that say whom to trust are kept."""
    assert parse_list(LIST) == [
        Source(
            "http://mirror.example/debian",
            ("bookworm",),
            ("main", "contrib"),
            {"Signed-By": "/k.gpg", "Trusted": "yes"},
        ),
        Source("http://mirror.example/debian", ("bookworm-updates",), ("main",)),
    ]


def test_the_mirror_is_the_source_of_the_whole_release() -> None:
    """Security updates and third parties are no mirror of Debian."""
    third = Source("http://third.example", ("nodistro",), ("main",))
    security = Source("http://security.example", ("bookworm-security",), ("main",))
    mirror = Source("http://mirror.example", ("bookworm", "bookworm-updates"), ("main",))

    assert debian_mirror((third, security, mirror), "bookworm") == mirror
    assert debian_mirror((third, security), "bookworm") is None


def test_both_formats_are_found_on_a_system(tmp_path: Path) -> None:
    """Files of other names, such as disabled ones, are not read."""
    folder = tmp_path / "sources.list.d"
    folder.mkdir()
    (tmp_path / "sources.list").write_text("deb http://a.example bookworm main\n")
    (folder / "b.sources").write_text("Types: deb\nURIs: http://b.example\nSuites: sid\nComponents: main\n")
    (folder / "c.list.disabled").write_text("deb http://c.example bookworm main\n")

    assert [source.uri for source in system_sources(tmp_path)] == ["http://a.example", "http://b.example"]


def test_packages_to_be_fetched_anew_are_struck_from_the_installed_ones() -> None:
    """What apt believes to be missing is downloaded, whether it is installed or not."""
    status = "Package: erlang-base\nVersion: 1\n\nPackage: libc6\nVersion: 2\n\nPackage: socat\nVersion: 3\n\n"

    assert without(status, ("erlang-", "socat")) == "Package: libc6\nVersion: 2\n\n"


def test_what_installed_packages_ask_of_others_is_left_out() -> None:
    """One that stands on a package to be fetched anew would otherwise keep apt from fetching anything."""
    status = "Package: maven\nPre-Depends: a\nDepends: java,\n b (>= 2)\nVersion: 3\nBreaks: c\nProvides: d\n\n"

    assert undemanding(status) == "Package: maven\nVersion: 3\nProvides: d\n\n"
