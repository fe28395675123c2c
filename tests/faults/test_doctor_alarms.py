"""What a doctor finds on a broker that is in need itself: alarms, blocked publishers, no figures. Its commands end it."""

import shlex

import pika
import pytest

from tests.conftest import TopologyFile
from tests.faults.killable import Killable
from tests.support.examined import FILE, Patient
from tests.support.rabbit import Rabbit


@pytest.fixture
def patient(mortal: Rabbit, topology: TopologyFile) -> Patient:
    """A topology that is well, on a broker of the test's own."""
    file = topology.write(FILE)
    assert mortal.delayctl("apply", file, "--yes").code == 0
    return Patient(mortal, file)


def run(killable: Killable, command: str) -> str:
    """Run a command that the doctor has named, as it is; the broker's own tool is where the test says."""
    tool, *words = shlex.split(command)
    assert tool == "rabbitmqctl"
    if words[0] == "-n":  # The tool is that of the one node there is.
        words = words[2:]
    return killable.rabbitmqctl(*words)


def test_h101_h102_h501_alarms(killable: Killable, patient: Patient) -> None:
    """They are told with their figures, and so is who can't publish; the commands that are named end them."""
    killable.rabbitmqctl("set_vm_memory_high_watermark", "absolute", "1MB")
    killable.rabbitmqctl("set_disk_free_limit", "9000000GB")
    connection = pika.BlockingConnection(pika.URLParameters(patient.rabbit.url))
    try:
        patient.until_found("H101", "H102")
        connection.channel().basic_publish("delay.1h.exchange", "order.created", b"a")
        answer = patient.until_found("H101", "H102", "H501")
        for code in ("H101", "H102"):
            run(killable, answer.of(code)[0]["commands"][-1])
        patient.until(lambda a: not {"H101", "H102", "H501"} & a.codes, "the end of the alarms")
    finally:
        connection.close()

    assert answer.code == 1
    assert [answer.of(code)[0]["severity"] for code in ("H101", "H102", "H501")] == ["error", "error", "warning"]
    assert all(" MB" in answer.of(code)[0]["seen"][0] for code in ("H101", "H102"))
    assert answer.of("H501")[0]["seen"][0].endswith(" of user guest")


def test_h106_a_broker_that_keeps_no_figures(killable: Killable, patient: Patient) -> None:
    """That is said instead of nothing; the command that is named brings them back."""
    killable.rabbitmqctl("eval", "application:set_env(rabbitmq_management_agent, disable_metrics_collector, true).")
    answer = patient.examined()
    run(killable, answer.of("H106")[0]["commands"][0])
    patient.until(lambda a: not a.of("H106"), "figures")

    assert answer.of("H106")[0]["message"].startswith("the broker keeps no figures")
