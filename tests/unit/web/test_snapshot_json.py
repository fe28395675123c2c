"""What is pushed."""

import json

from delayctl.web.snapshot_json import beat_json, event, history_json, state_json
from delayctl.web.stage import Away, Snapshot

from tests.support.stage import ToldStage

SEEN = ToldStage(counts={"b": 2, "a": None}).observe()


def test_state() -> None:
    """With the order that counts have from then on."""
    assert state_json(Snapshot(5, SEEN, 5, SEEN.counts, None, 4)) == {
        "version": 4,
        "counted": ["b", "a"],
        "state": {"title": "topology.yaml"},
    }


def test_beat() -> None:
    """Counts in that order; what is not known is null."""
    snapshot = Snapshot(9, SEEN, 5, {"a": None, "b": 2}, Away(7, "gone", "start it"), 4)

    assert beat_json(snapshot) == {
        "at": 9,
        "seen": 5,
        "version": 4,
        "counts": [2, None],
        "away": {"since": 7, "what": "gone", "fix": "start it"},
    }


def test_before_the_first_look() -> None:
    """Nothing, said as nothing."""
    assert (state_json(Snapshot(1))["state"], beat_json(Snapshot(1))["counts"]) == (None, [])


def test_an_event_is_one_line_whatever_is_in_it() -> None:
    """Else a name could make up events of its own."""
    name = "a\n\nevent: state\ndata: {}\r\u2028\ud800"

    lines = event("beat", {"name": name}).decode().split("\n")

    assert [line.partition(":")[0] for line in lines] == ["event", "data", "", ""]
    # Half a character is shown escaped: it has no bytes that could be sent.
    assert json.loads(lines[1].removeprefix("data: ")) == {"name": name.replace("\ud800", "\\ud800")}


def test_peaks_stay_in_a_thinned_history() -> None:
    """And so does the last point."""
    samples = tuple((at, 100 if at == 7 else at % 3) for at in range(100))

    thinned = history_json({"q": samples, "empty": ()}, 10)

    assert len(thinned["q"]) == 10
    assert (7, 100) in thinned["q"]
    assert thinned["q"][-1] == (99, 0)
    assert thinned["empty"] == []
