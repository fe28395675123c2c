"""The model as C: `make compiled` says by DELAYCTL_COMPILED=1 that it is what these tests are to run on."""

import os
from pathlib import Path

import delayctl.simulator.clock
import delayctl.simulator.rabbitmq
import pytest


@pytest.mark.parametrize("module", [delayctl.simulator.clock, delayctl.simulator.rabbitmq])
def test_the_tests_run_on_what_they_are_meant_for(module: object) -> None:
    """Compiled modules stand beside their sources, so a wrong path would go unnoticed."""
    is_source = Path(str(getattr(module, "__file__", ""))).suffix == ".py"
    assert is_source != ("DELAYCTL_COMPILED" in os.environ)
