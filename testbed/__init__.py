"""A broker wherever one can be had: for the demo, the tests and the benchmarks; not part of the wheel."""

from testbed.broker import BrokerUnavailable, RunningBroker
from testbed.container import container_broker
from testbed.find import find_broker
from testbed.native import native_cluster, native_node

__all__ = ["BrokerUnavailable", "RunningBroker", "container_broker", "find_broker", "native_cluster", "native_node"]
