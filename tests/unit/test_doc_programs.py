"""Every program of the documentation is run."""

from pathlib import Path

import pytest
from delayctl.cli.inputs import read_topology_file
from delayctl.testing import SimulatedBroker
from delayctl.topology.expand import expand

from tests.support.doc_blocks import ROOT
from tests.support.doc_files import lay_out
from tests.support.doc_programs import AFTERWARDS, ELSEWHERE, GIVEN, Session, comes_out, pages, programs


@pytest.mark.parametrize("page", pages())
def test_the_programs_of_a_page_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In their order and with each other's names; what they publish waits, and comes out where it is told."""
    lay_out(page, tmp_path)
    monkeypatch.chdir(tmp_path)
    levels = [level.name for level in expand(read_topology_file("topology.yaml", {})).waits]
    with SimulatedBroker("topology.yaml") as broker, pytest.MonkeyPatch.context() as patch:
        session = Session(broker, patch)
        session.names |= GIVEN[page](session) if page in GIVEN else {}

        for block in programs(page):
            session.run(block)
        session.arrive()

        is_publishing = any("publish(" in block.text and "def test_" not in block.text for block in programs(page))
        assert not is_publishing or any(map(broker.waiting, levels))
        session.consume()
        AFTERWARDS.get(page, comes_out)(session)
        session.close()


def test_the_tables_speak_of_pages_with_programs() -> None:
    """And the tests that are named are there."""
    assert {*GIVEN, *AFTERWARDS} <= {*pages()}
    assert all(programs(page) and (ROOT / test).exists() for page, test in ELSEWHERE.items())
