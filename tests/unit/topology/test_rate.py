"""Rates and sizes as people write them."""

from fractions import Fraction

import pytest
from delayctl.topology.rate import Rate
from delayctl.topology.size import parse_size, size_text


@pytest.mark.parametrize(
    ("text", "per_second", "shown"),
    [
        ("200/s", Fraction(200), "200/s"),
        ("60/m", Fraction(1), "1/s"),
        ("5000/m", Fraction(250, 3), "5000/m"),
        ("7200/h", Fraction(2), "2/s"),
        ("1000000/d", Fraction(1_000_000, 86_400), "1000000/d"),
        ("0.5/s", Fraction(1, 2), "30/m"),
        ("0.5/d", Fraction(1, 172_800), "0.5/d"),
        ("123456789012.123456/s", Fraction("123456789012.123456"), "123456789012.123456/s"),
        ("999999999999.5/s", Fraction("999999999999.5"), "999999999999.5/s"),
        ("0.000001/d", Fraction(1, 86_400_000_000), "0.000001/d"),
    ],
)
def test_a_rate_is_exact_and_shown_without_fractions_where_it_can_be(
    text: str, per_second: Fraction, shown: str
) -> None:
    """Whatever unit it was written in."""
    rate = Rate.parse(text)

    assert (rate, str(rate)) == (Rate(per_second), shown)


@pytest.mark.parametrize("text", ["", "200", "200/", "/s", "200/w", "200 /s", "0/s", "0.0/d", "-1/s", "1e3/s", ".5/s"])
def test_anything_else_is_no_rate(text: str) -> None:
    """Nothing is guessed, and nothing ever happens zero times a second."""
    with pytest.raises(ValueError, match="is not a rate"):
        Rate.parse(text)


def test_a_rate_that_no_unit_can_write_is_rounded() -> None:
    """Computed rates are shown too."""
    assert str(Rate(Fraction(1, 7))) == "12342.857143/d"


def test_rates_have_an_order() -> None:
    """By how often, not by how they are written."""
    assert Rate.parse("90/m") < Rate.parse("2/s") < Rate.parse("1000000/d")


@pytest.mark.parametrize(
    ("text", "size", "shown"),
    [
        ("4GiB", 4 * 1024**3, "4GiB"),
        ("4 GiB", 4 * 1024**3, "4GiB"),
        ("4Gi", 4 * 1024**3, "4GiB"),
        ("512MB", 512_000_000, "512MB"),
        ("2048MiB", 2 * 1024**3, "2GiB"),
        ("1500kB", 1_500_000, "1500kB"),
        ("1TB", 10**12, "1TB"),
        ("1001", 1001, "1001"),
        ("9223372036854775807", 2**63 - 1, "9223372036854775807"),
    ],
)
def test_a_size_is_shown_in_its_largest_unit(text: str, size: int, shown: str) -> None:
    """Without a fraction."""
    assert (parse_size(text), size_text(size)) == (size, shown)


@pytest.mark.parametrize("text", ["", "0", "GiB", "4gb", "4XB", "1.5GiB", "-1", "9223372036854775808", "9" * 30])
def test_anything_else_is_no_size(text: str) -> None:
    """Nor is nothing, or more than any broker has."""
    with pytest.raises(ValueError, match="is not a size"):
        parse_size(text)
