"""For the tests of services: a simulated RabbitMQ that real clients connect to, in virtual time."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from delayctl.testing.simulated import SimulatedBroker

__all__ = ["SimulatedBroker"]


def __getattr__(name: str) -> Any:
    # Late: pytest loads the plugin beside it in every run, also of those who never ask for a broker.
    if name == "SimulatedBroker":
        from delayctl.testing.simulated import SimulatedBroker  # noqa: PLC0415

        return SimulatedBroker
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
