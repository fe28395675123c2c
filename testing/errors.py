"""What can go wrong with a simulated broker, beside what goes wrong with real ones.

DelayctlError
├── NotAtRest      clients did not finish what they had begun
└── BrokerFailed   the simulation itself did: a fault of ours
"""

from delayctl.topology.errors import DelayctlError


class NotAtRest(DelayctlError):
    """Clients have not dealt with what they got, so that no time can pass."""


class BrokerFailed(DelayctlError):
    """Something went wrong in the simulation."""
