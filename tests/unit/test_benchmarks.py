"""The benchmarks' own bookkeeping."""

from benchmarks.publish_ways import Answers
from benchmarks.results import read_results, results_text, with_section

OLD = """\
# Benchmark results

Written by hand.

## RabbitMQ 3 (a)

### First apply

| 1 |

## RabbitMQ 4 (b)

### First apply

| 2 |
"""


def test_results_keep_what_was_not_measured() -> None:
    """One section is renewed; all others stay, those without a mark included."""
    results = with_section(read_results(OLD), "RabbitMQ 4 (b)", "publish", "### Publish\n\n| 3 |\n", when="today")
    again = with_section(results, "RabbitMQ 4 (b)", "publish", "### Publish\n\n| 4 |", when="tomorrow")

    text = results_text("# Benchmark results", again)

    assert text.count("| 1 |") == text.count("| 2 |") == text.count("| 4 |") == 1
    assert "| 3 |" not in text
    assert text.index("| 2 |") < text.index("<!-- publish: tomorrow -->") < text.index("| 4 |")
    assert results_text("# Benchmark results", read_results(text)) == text


def test_answers_are_counted_once() -> None:
    """In whatever order they come, alone or for all before them."""
    answers = Answers()
    for tag, multiple in ((1, False), (4, False), (3, True), (6, False), (6, True), (5, True)):
        answers.add(tag, multiple=multiple)

    assert answers.count == 6
