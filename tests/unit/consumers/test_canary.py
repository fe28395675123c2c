"""What DelayConsumer takes for a canary."""

import struct

import pytest
from delayctl.consumers.treatment import is_canary
from delayctl.publishers.frames import Properties, encode_properties


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        (Properties(headers={"delay-canary": "cafe"}), True),
        (Properties(headers={"kind": "delay-canary"}), False),
        (Properties(message_id="delay-canary"), False),
        (Properties(), False),
    ],
)
def test_only_the_header_makes_a_canary(properties: Properties, expected: bool) -> None:
    """A message that merely speaks of canaries is handled like any other."""
    header = struct.pack(">HHQ", 60, 0, 0) + encode_properties(properties)

    assert is_canary(header) is expected
