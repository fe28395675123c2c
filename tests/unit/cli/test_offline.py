"""Commands that need no broker."""

import json
from pathlib import Path

import pytest

from tests.support.commands import Ran, delayctl


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write(text: str, file: str = "topology.yaml") -> None:
    """Write a file into the current folder."""
    Path(file).write_text(text, encoding="utf-8")


def test_init_writes_a_valid_file() -> None:
    """What it gives to start from needs no change to be used."""
    written = delayctl("init")
    validated = delayctl("validate")

    assert written == Ran(
        0, "Wrote topology.yaml. Next: delayctl validate topology.yaml, then delayctl plan topology.yaml.\n", ""
    )
    assert validated == Ran(0, "topology.yaml is valid: 3 levels, 6 exchanges, 5 queues, 6 bindings.\n", "")


@pytest.mark.parametrize("levels", ["90s 5s 10s", " 90s\n5s\t10s "])
def test_init_takes_levels_from_rocketmq(levels: str) -> None:
    """However they are spaced, the file is valid and has them all."""
    delayctl("init", "shop.yaml", "--from-rocketmq", levels)
    validated = delayctl("validate", "shop.yaml", "--output", "json")

    assert json.loads(validated.out)["levels"] == {"5s": 5_000, "10s": 10_000, "90s": 90_000}


@pytest.mark.parametrize(
    ("levels", "message"),
    [
        ("", "--from-rocketmq names no level, or one twice"),
        ("1s 1s", "--from-rocketmq names no level, or one twice"),
        ("1s soon", "--from-rocketmq: 'soon' is not a duration"),
        ("0s", "--from-rocketmq: 0s is out of range"),
    ],
)
def test_init_refuses_levels_that_rocketmq_would_refuse(levels: str, message: str) -> None:
    """And writes nothing."""
    ran = delayctl("init", "--from-rocketmq", levels)

    assert (ran.code, ran.out, ran.err.splitlines()[0]) == (64, "", f"Error: {message}")
    assert not Path("topology.yaml").exists()


def test_init_overwrites_only_when_told() -> None:
    """A file that is there is someone's work."""
    write("version: 1\n")

    refused = delayctl("init")
    kept = Path("topology.yaml").read_text(encoding="utf-8")
    forced = delayctl("init", "--force")

    assert refused == Ran(
        1,
        "",
        "Error: the file is there already\n  at topology.yaml\n  fix: name another file, or overwrite it with --force\n",
    )
    assert kept == "version: 1\n"
    assert forced.code == 0


@pytest.mark.parametrize("options", [(), ("--force",)])
def test_init_does_not_take_a_directory_for_a_file(options: tuple[str, ...]) -> None:
    """There is nothing to overwrite."""
    Path("shop").mkdir()

    assert delayctl("init", "shop", *options) == Ran(
        1, "", "Error: this is a directory\n  at shop\n  fix: name a file in it\n"
    )


def test_init_says_where_it_can_not_write() -> None:
    """A folder that is not there is named."""
    assert delayctl("init", "missing/topology.yaml") == Ran(
        1,
        "",
        "Error: the file can't be written: No such file or directory\n"
        "  at missing/topology.yaml\n"
        "  fix: name a place that can be written\n",
    )


def test_render_prints_the_file_after_templating() -> None:
    """Values of files come first, those of --set win."""
    write("version: 1\nvhost: {{ vhost }}\nprefix: {{ prefix }}\n")
    write("vhost: shop\nprefix: eu.\n", "values.yaml")

    ran = delayctl("render", "--values", "values.yaml", "--set", "prefix=us.")

    assert ran == Ran(0, "version: 1\nvhost: shop\nprefix: us.\n", "")


@pytest.mark.parametrize(
    ("assignment", "rendered"),
    [
        ("x=eu", "eu"),
        ("x=", ""),
        ("x=a=b", "a=b"),
        ("x=1.10", "1.10"),
        ("x=true", "true"),
        ("x=[1m, 5m]", '["1m", "5m"]'),
        ("x=123456789012345678901234567890", "123456789012345678901234567890"),
    ],
)
def test_a_value_is_set_as_it_is_written(assignment: str, rendered: str) -> None:
    """YAML is understood, and nothing is rounded."""
    write("{{ x }}")

    assert delayctl("render", "--set", assignment) == Ran(0, rendered, "")


@pytest.mark.parametrize(
    ("arguments", "answer"),
    [
        (["--set", "region"], "Error: --set 'region' is not NAME=VALUE\n  fix: write --set region=eu\n"),
        *(
            (
                ["--set", f"{name}=1"],
                f"Error: --set: '{name}' is no name\n"
                "  fix: a name is letters, digits and _, and begins with no digit: write --set region=eu\n",
            )
            for name in ("a-b", "a.b", "2nd", "")
        ),
        (
            ["--set", "x=[1"],
            "Error: not YAML: the '[' that opens here is not closed, or a comma is missing\n"
            "  at --set x:1\n"
            "  fix: close it with ']', or separate the values with commas\n",
        ),
        (
            ["--set", "x=\udcff"],
            "Error: not YAML: character U+DCFF is not allowed\n  at --set x:1\n  fix: remove it\n",
        ),
        (
            ["--values", "missing.yaml"],
            "Error: the file can't be read: No such file or directory\n"
            "  at missing.yaml\n"
            "  fix: check the path given with --values\n",
        ),
        (
            ["--values", "list.yaml"],
            "Error: a values file must be a mapping\n  at list.yaml\n  fix: write 'name: value' lines\n",
        ),
    ],
)
def test_a_value_that_can_not_be_read_is_explained(arguments: list[str], answer: str) -> None:
    """With the option or the file that it came from."""
    write("version: 1\n")
    write("- a\n", "list.yaml")

    code = 64 if answer.startswith("Error: --set") else 1
    assert delayctl("validate", *arguments) == Ran(code, "", answer)


@pytest.mark.parametrize("command", ["validate", "render"])
@pytest.mark.parametrize(
    ("text", "answer"),
    [
        (
            'version: 1\nvhost: {{ vhost | default("/") }}\n',
            "Error: --set vhots: the template uses no such name (did you mean 'vhost'?)\n"
            "  fix: leave it out, or set one of vhost\n",
        ),
        (
            "version: 1\n",
            "Error: --set vhots: the template uses no such name\n  fix: leave it out: the file takes no values\n",
        ),
    ],
    ids=["slip", "no template"],
)
def test_a_value_that_nothing_uses_is_a_mistake(command: str, text: str, answer: str) -> None:
    """A slip in its name would silently leave the default in force."""
    write(text)

    assert delayctl(command, "--set", "vhots=shop") == Ran(64, "", answer)


def test_a_values_file_may_say_more_than_is_used() -> None:
    """Several topologies may share it."""
    write('vhost: {{ vhost | default("/") }}\n')
    write("vhost: shop\nregion: eu\n", "values.yaml")

    assert delayctl("render", "--values", "values.yaml") == Ran(0, "vhost: shop\n", "")


def test_a_broken_template_is_what_is_told() -> None:
    """Which names it would use nobody knows."""
    write("vhost: {{ vhost\n")

    ran = delayctl("render", "--set", "vhots=shop")

    assert (ran.code, "--set" in ran.err) == (1, False)


def test_an_empty_values_file_gives_no_values() -> None:
    """It is not an error to have nothing to say."""
    write("version: 1\n")
    write("# later\n", "values.yaml")

    assert delayctl("validate", "--values", "values.yaml").code == 0


def test_validate_counts_what_a_file_means() -> None:
    """Policies only where there are any, each noun in the right number."""
    write("version: 1\ndelay: {levels: [1m], settings: policy}\n")

    assert delayctl("validate").out == "topology.yaml is valid: 1 level, 3 exchanges, 2 queues, 2 bindings, 1 policy.\n"


def test_validate_answers_programs() -> None:
    """What a file means, as JSON."""
    write("version: 1\ndelay: {levels: [1m]}\nexchanges: {legacy: {existing: true}}\n")

    ran = delayctl("validate", "--output", "json")

    assert (ran.code, json.loads(ran.out)) == (
        0,
        {
            "valid": True,
            "levels": {"1m": 60_000},
            "ladder": None,
            "exchanges": ["delay.1m.exchange", "delay.exchange", "delay.unrouted.exchange"],
            "queues": ["delay.1m.queue", "delay.unrouted.queue"],
            "bindings": 2,
            "policies": [],
            "existing": ["legacy"],
            "findings": [],
            "silenced": [],
        },
    )


def test_validate_tells_programs_what_is_wrong() -> None:
    """On stdout, since that is the answer."""
    write("version: 1\nqueeus: {}\n")

    ran = delayctl("validate", "--output", "json")

    assert (ran.code, json.loads(ran.out), ran.err) == (
        1,
        {
            "valid": False,
            "problems": [
                {
                    "message": "the file has no key 'queeus' (did you mean 'queues'?)",
                    "file": "topology.yaml",
                    "line": 2,
                    "fix": "use one of: version, vhost, prefix, delay, exchanges, queues, routes, retry, permissions, lint",
                }
            ],
        },
        "",
    )


@pytest.mark.parametrize(
    ("file", "reason", "fix"),
    [
        ("missing.yaml", "No such file or directory", "check the path, or start with: delayctl init"),
        (".", "Is a directory", "name a readable file"),
    ],
)
def test_validate_says_what_it_can_not_read(file: str, reason: str, fix: str) -> None:
    """A missing file leads to init."""
    assert delayctl("validate", file) == Ran(
        1, "", f"Error: the file can't be read: {reason}\n  at {file}\n  fix: {fix}\n"
    )


def test_validate_does_not_read_without_end() -> None:
    """A file that never ends is just too large."""
    assert delayctl("validate", "/dev/zero") == Ran(
        1,
        "",
        "Error: the file is larger than 4,194,304 bytes\n"
        "  at /dev/zero\n"
        "  fix: use a template loop instead of listing\n",
    )


def test_schema_is_printed_for_editors() -> None:
    """The whole of it, and nothing else."""
    ran = delayctl("schema")

    assert (ran.code, json.loads(ran.out)["title"], ran.err) == (0, "delayctl topology", "")
