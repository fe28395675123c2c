"""What a doctor finds on a cluster: leaders on one node, too few replicas, nodes that are gone or out of sight."""

import uuid
from collections.abc import Iterator

import pytest

from testbed.members import Cluster
from testbed.needs import needed
from tests.conftest import TopologyFile
from tests.faults.test_cluster import CLUSTERS, WAYS
from tests.support.examined import Patient
from tests.support.rabbit import Rabbit

FILE = """
version: 1
delay:
  levels:
    1h: {type: quorum}
    2h: {type: quorum}
    3h: {type: quorum}
    4h: {}
queues:
  lone.queue:
    type: quorum
    arguments: {x-message-ttl: 3600000, x-dead-letter-exchange: delay.exchange, x-quorum-initial-group-size: 1}
"""


@pytest.fixture(params=CLUSTERS)
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """Three nodes for one test: it leaves them dead, and tried again it needs others."""
    with needed(WAYS[request.param]()) as found:
        yield found


@pytest.fixture
def patient(cluster: Cluster, topology: TopologyFile) -> Patient:
    """A topology that was applied at the last of three nodes, and is looked at from the first."""
    first, _, last = cluster.members
    # Not removed: the cluster is in no state to do so in the end, and goes itself.
    rabbit = Rabbit(last.broker, f"doctor-{uuid.uuid4().hex[:12]}")
    rabbit.create()
    file = topology.write(FILE)
    assert rabbit.delayctl("apply", file, "--yes").code == 0
    return Patient(Rabbit(first.broker, rabbit.vhost), file)


def test_a_cluster_falls_ill(cluster: Cluster, patient: Patient) -> None:
    """From bad to worse: leader skew (H214), few replicas (H213), a node down (H103, H211, H212), a partition (H104)."""
    first, second, last = cluster.members

    whole = patient.until_found("H213", "H214")
    last.kill()
    thin = patient.until_found("H103", "H211", "H212")
    is_old = cluster.broker.version.startswith("3.")
    if is_old:  # Later releases keep no tables that could go apart.
        first.rabbitmqctl("eval", f"erlang:disconnect_node('{second.name}').")
        apart = patient.until_found("H104")
    second.kill()
    leaderless = {"delay.1h.queue", "delay.2h.queue", "delay.3h.queue"}
    patient.until(
        lambda a: len(a.of("H103")) == 2 and {finding["at"] for finding in a.of("H211")} >= leaderless,
        "nobody but the first",
    )

    assert (whole.code, whole.codes - {"H105"}) == (0, {"H213", "H214"})
    assert whole.of("H214")[0]["message"].startswith(f"{last.name} leads 5 of 5 waits, and there are 3 nodes")
    assert whole.of("H213")[0]["message"] == "lone.queue has 1 replica on 3 nodes"
    assert thin.code == 1
    assert thin.of("H103")[0]["seen"] == ["1 wait of this topology only there: delay.4h.queue"]
    assert "delay.4h.queue" in {finding["at"] for finding in thin.of("H211")}
    assert f"2 of 3 replicas, those on {last.name} are missing" in thin.of("H212")[0]["message"]
    assert not is_old or {finding["at"] for finding in apart.of("H104")} <= {first.name, second.name}
