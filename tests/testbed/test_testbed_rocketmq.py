"""What can be said of a RocketMQ of one's own without starting one."""

from pathlib import Path

import pytest

from testbed.ports import is_free
from testbed.rocketmq import broker_port, read_offsets
from testbed.rocketmq_jars import RocketMqUnavailable, fetched_jars


def test_missing_tools_are_named_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything is fetched."""
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(RocketMqUnavailable) as caught:
        fetched_jars("4.9.7")

    assert str(caught.value) == (
        "a real RocketMQ needs java, javac, mvn, not found on PATH\n"
        "  fix: apt-get install default-jdk-headless maven (Java 11 or newer)"
    )


def test_a_broker_has_room_beside_its_port() -> None:
    """For its favoured clients."""
    port = broker_port()

    assert [is_free(each) for each in (port - 2, port)] == [True, True]


@pytest.mark.parametrize(
    ("text", "offsets"),
    [
        ("", {}),
        ('{\n\t"offsetTable":{1:1,2:5\n\t}\n}', {1: 1, 2: 5}),
        ('{\n\t"offsetTable":{}\n}', {}),
        (
            '{\n\t"dataVersion":{"counter":3,"stateVersion":0,"timestamp":17},\n\t"offsetTable":{18:0,1:12\n\t}\n}',
            {18: 0, 1: 12},
        ),
    ],
)
def test_offsets_are_read_though_their_keys_are_bare(text: str, offsets: dict[int, int]) -> None:
    """4.9 and 5.x write numbers where JSON wants names."""
    assert read_offsets(text) == offsets
