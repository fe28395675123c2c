"""Options of a writer: strings become values, and what is wrong is said before anything runs."""

from pathlib import Path

import pytest
from delayctl.publishers.choice import Way
from delayctl.spark.options import Options, read_options
from delayctl.topology.duration import Duration
from delayctl.topology.errors import BadOption, DelayctlError

TOPOLOGY = "version: 1\nvhost: shop\ndelay: {levels: [{{ level }}]}\n"


@pytest.fixture(autouse=True)
def _nothing_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DELAYCTL_URL", "DELAYCTL_MANAGEMENT_URL", "DELAYCTL_USERNAME", "DELAYCTL_PASSWORD"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def file(tmp_path: Path) -> str:
    """A topology that needs a value."""
    path = tmp_path / "topology.yaml"
    path.write_text(TOPOLOGY)
    return str(path)


def read(file: str, **options: str) -> Options:
    """The options of a writer on this topology."""
    return read_options({"topology": file, "values": '{"level": "1m"}', **options})


def test_what_is_not_said_is_what_is_usual(file: str) -> None:
    """Delays round up, a window has 4,096 messages, a full queue is waited for; the file names the virtual host."""
    found = read(file)

    assert (found.rounding, found.window, found.full_wait) == ("up", 4096, Duration.parse("5m"))
    assert (found.rejects, found.later) == (None, None)
    assert [(access.address, access.vhost) for access in found.brokers] == [("amqp://127.0.0.1:5672", "shop")]
    assert found.ways.at_level("1m") == Way("delay.1m.exchange", "1m", 60_000)


def test_several_brokers_are_separated_by_commas(file: str) -> None:
    """Any of them will do."""
    found = read(file, url="amqp://a/x, amqps://b:1/y", vhost="z")

    assert [(access.address, access.vhost) for access in found.brokers] == [
        ("amqp://a:5672", "z"),
        ("amqps://b:1", "z"),
    ]


def test_the_environment_of_the_driver_counts(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A notebook need not name the broker, nor its password."""
    monkeypatch.setenv("DELAYCTL_URL", "amqp://broker/")
    monkeypatch.setenv("DELAYCTL_USERNAME", "etl")
    monkeypatch.setenv("DELAYCTL_PASSWORD", "secret")

    (access,) = read(file).brokers

    assert (access.host, access.credentials.username, access.credentials.password) == ("broker", "etl", "secret")


def test_the_password_is_in_no_repr(file: str) -> None:
    """Whatever logs the options logs no secret."""
    assert "geheim" not in repr(read(file, url="amqp://etl:geheim@broker/"))


def test_names_are_read_in_any_case_and_sparks_own_are_left_alone(file: str) -> None:
    """Spark does not tell cases apart, and adds options of its own."""
    found = read(file, ID_Prefix="o-", Key=" a , b", path="x", checkpointLocation="y")

    assert (found.columns["id_prefix"], found.columns["key"]) == ("o-", ("a", "b"))


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"ids": "uuid"}, "Error: ids is 'uuid'\n  fix: choose one of: key, random"),
        ({"payload": "avro"}, "Error: payload is 'avro'\n  fix: choose one of: body, json"),
        ({"rounding": "off"}, "Error: rounding is 'off'\n  fix: choose one of: refuse, nearest, up, down"),
        ({"beyond": "drop"}, "Error: beyond is 'drop'\n  fix: choose one of: refuse, later"),
        (
            {"beyond": "later"},
            "Error: beyond=later and the folder for such rows go together\n  fix: give both: beyond=later, later=FOLDER",
        ),
        (
            {"beyond": "later", "later": "x"},
            "Error: a folder for rows that are due later, and none for bad ones: a bad row fails the write, and nothing is "
            "kept then\n  fix: give rejects=FOLDER too; it may be the same",
        ),
        ({"window": "0"}, "Error: window is '0'\n  fix: give a whole number from 1 on"),
        ({"window": "many"}, "Error: window is 'many'\n  fix: give a whole number from 1 on"),
        ({"values": "level: 1m"}, 'Error: the option values is not JSON\n  fix: write a JSON object: {"region": "eu"}'),
        ({"values": "[]"}, 'Error: the option values is no JSON object\n  fix: write a JSON object: {"region": "eu"}'),
    ],
)
def test_values_that_can_not_be_used(file: str, options: dict[str, str], text: str) -> None:
    """Every error repeats the value and says what would do."""
    with pytest.raises(BadOption) as caught:
        read(file, **options)

    assert str(caught.value) == text


def test_an_unknown_option_is_told_with_the_near_one(file: str) -> None:
    """A slip of the finger must not be a default."""
    with pytest.raises(BadOption) as caught:
        read(file, rejekts="x")

    assert str(caught.value).startswith(
        "Error: there is no option 'rejekts' (did you mean 'rejects'?)\n  fix: the options are: topology, "
    )


def test_a_wait_that_is_none(file: str) -> None:
    """Durations are written as everywhere in delayctl."""
    with pytest.raises(BadOption, match=r"full_wait: .*'soon'"):
        read(file, full_wait="soon")


def test_a_url_that_is_none_is_not_repeated(file: str) -> None:
    """It may hold a password in a place where nobody looks for one."""
    with pytest.raises(BadOption) as caught:
        read(file, url="http://etl:geheim@broker/")

    assert "geheim" not in str(caught.value)


def test_a_topology_that_can_not_be_read_says_where() -> None:
    """The file is named."""
    with pytest.raises(DelayctlError, match=r"at /nowhere/topology\.yaml"):
        read("/nowhere/topology.yaml")
