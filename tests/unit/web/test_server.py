"""The server as a whole: how it begins and how it ends."""

import pytest
from delayctl.web.door import Door
from delayctl.web.server import Serving, bound, serve

from tests.support.stage import ToldStage


def test_where_nobody_hears_that_it_answers_it_ends(capfd: pytest.CaptureFixture[str]) -> None:
    """In good order, and with the error that a closed stdout is: uvicorn has nothing to say about it."""

    def nobody_reads() -> None:
        raise BrokenPipeError

    listener, stage = bound("127.0.0.1", 0), ToldStage()

    with listener, pytest.raises(BrokenPipeError):
        serve(Serving(stage, Door(frozenset({"127.0.0.1"}), False, None), 1.0), listener, nobody_reads)

    assert stage.is_closed
    assert capfd.readouterr().err == ""
