"""Every derived name of a topology, in one place."""

from dataclasses import dataclass

MAX_NAME_BYTES = 255  # AMQP short strings hold no more.


@dataclass(frozen=True, slots=True)
class Names:
    """The names that one topology gives to its objects, all behind one prefix."""

    prefix: str = ""

    def exit(self) -> str:
        """Where expired messages come out."""
        return f"{self.prefix}delay.exchange"

    def entrance(self, level: str) -> str:
        """Where a message is published to wait at this level."""
        return f"{self.prefix}delay.{level}.exchange"

    def delay_queue(self, level: str) -> str:
        """Where messages of this level wait."""
        return f"{self.prefix}delay.{level}.queue"

    def policy(self, level: str) -> str:
        """The policy that holds the tunable settings of this level."""
        return f"{self.prefix}delay.{level}.policy"

    def unrouted_exchange(self) -> str:
        """The alternate exchange of the exit."""
        return f"{self.prefix}delay.unrouted.exchange"

    def unrouted_queue(self) -> str:
        """Where messages are parked that have no way out."""
        return f"{self.prefix}delay.unrouted.queue"

    def retry_key(self, queue: str) -> str:
        """The routing key that leads a retried message back to this queue alone."""
        return f"{self.prefix}delay.retry.{queue}"

    def lock(self) -> str:
        """The exclusive queue that keeps two runs apart."""
        return f"{self.prefix}delay.lock.queue"

    def record(self, vhost: str) -> str:
        """The global parameter that remembers what was applied."""
        # A colon in the virtual host's name must not look like the one before the prefix.
        return f"delayctl:{vhost.replace('%', '%25').replace(':', '%3A')}:{self.prefix}"

    def reserved(self, level: str) -> bool:
        """Say whether a level of this name would collide with another object of ours."""
        return level in {"unrouted", "lock"}
