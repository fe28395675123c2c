"""Every derived name of a topology, in one place."""

import re
from dataclasses import dataclass
from typing import NamedTuple

MAX_NAME_BYTES = 255  # AMQP short strings hold no more.
# What the broker's HTTP server takes for steps in a path, percent-encoded or not.
DOT_SEGMENTS = frozenset({".", ".."})
ANY = "any"  # What a route waits at that takes any delay, and the first word of all names of the ladder.


class WaitNames(NamedTuple):
    """The names of one delay queue, of what leads into it, and of what may rule it."""

    level: str
    entrance: str
    queue: str
    policy: str


_OF_A_SPREAD = re.compile(r"delay\.([^.]+)\.spread\.exchange")
_OF_A_SHARD = re.compile(rf"delay\.(?!{ANY}\.)([^.]+)\.[1-9][0-9]*\.exchange")
_OF_A_RUNG = re.compile(rf"delay\.{ANY}\.([0-9]{{2}})\.(?:gate\.exchange|(?:next\.)?(?:exchange|queue))")


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

    def level_of(self, queue: str) -> str | None:
        """What a delay queue of this name belongs to: a level, a shard, a step, or what leads round one; None for other queues."""
        head, tail = self.delay_queue("\0").split("\0")
        is_ours = queue.startswith(head) and queue.endswith(tail) and len(queue) > len(head) + len(tail)
        return queue.removeprefix(head).removesuffix(tail) if is_ours else None

    def policy(self, level: str) -> str:
        """The policy that holds the tunable settings of this level."""
        return f"{self.prefix}delay.{level}.policy"

    def spread(self, level: str) -> str:
        """Where the messages of a level with several queues are given to one of them."""
        return f"{self.prefix}delay.{level}.spread.exchange"

    def spread_level(self, exchange: str) -> str | None:
        """The level whose messages an exchange spreads; None for every other exchange."""
        found = _OF_A_SPREAD.fullmatch(exchange.removeprefix(self.prefix)) if exchange.startswith(self.prefix) else None
        return found[1] if found else None

    def shard_level(self, exchange: str) -> str | None:
        """The level that has this exchange before one of its queues; None for every other exchange."""
        found = _OF_A_SHARD.fullmatch(exchange.removeprefix(self.prefix)) if exchange.startswith(self.prefix) else None
        return found[1] if found else None

    def shard_queues(self, level: str) -> str:
        """All queues of a level with several, as people speak of them."""
        return self.delay_queue(f"{level}.*")

    def wait(self, level: str) -> WaitNames:
        """All that belongs to the one queue of this level, or to a shard."""
        return WaitNames(level, self.entrance(level), self.delay_queue(level), self.policy(level))

    def next(self, level: str) -> WaitNames:
        """What leads round the queue of this level while it is changed; no level has a dot in its own name."""
        return self.wait(f"{level}.next")

    @staticmethod
    def next_entrance(entrance: str) -> str:
        """The entrance of what leads round the queue behind this one while it is changed."""
        return f"{entrance.removesuffix('.exchange')}.next.exchange"

    def gate(self, step: int) -> str:
        """Where it is decided whether a message waits at this step of the ladder."""
        return f"{self.prefix}delay.{rung_name(step)}.gate.exchange"

    def is_gate(self, exchange: str) -> bool:
        """Say whether an exchange is a gate of the ladder."""
        return exchange.endswith(".gate.exchange") and self.step_of(exchange) is not None

    def is_entrance(self, exchange: str) -> bool:
        """Say whether an exchange has a name as those in which a wait begins have; gates have one, too."""
        head, tail = self.entrance("\0").split("\0")
        is_ours = exchange.startswith(head) and exchange.endswith(tail) and len(exchange) > len(head) + len(tail)
        return is_ours and exchange != self.unrouted_exchange()

    def step_of(self, name: str) -> int | None:
        """Which step of the ladder a gate, an entrance, a queue or what stands in for one belongs to; None for all else."""
        found = _OF_A_RUNG.fullmatch(name.removeprefix(self.prefix)) if name.startswith(self.prefix) else None
        return int(found[1]) if found else None

    def unrouted_exchange(self) -> str:
        """The alternate exchange of the exit."""
        return f"{self.prefix}delay.unrouted.exchange"

    def unrouted_queue(self) -> str:
        """Where messages are parked that have no way out."""
        return f"{self.prefix}delay.unrouted.queue"

    def retry_key(self, queue: str) -> str:
        """The routing key that leads a retried message back to this queue alone."""
        return f"{self.prefix}delay.retry.{queue}"

    def park_key(self, queue: str) -> str:
        """The routing key that leads a message into this parking queue alone."""
        return f"{self.prefix}delay.park.{queue}"

    def cancellations(self) -> str:
        """The stream of cancellations, which every consumer reads."""
        return f"{self.prefix}delay.cancelled.stream"

    def cancel_key(self) -> str:
        """The routing key that leads a cancellation there, from the exit."""
        return f"{self.prefix}delay.cancel"

    def toggle(self) -> tuple[str, str, str]:
        """The exchanges that stand between for the moment in which ways change their destinations: the front, the old side, the new."""
        begin = f"{self.prefix}delay.move"
        return f"{begin}.exchange", f"{begin}.before.exchange", f"{begin}.after.exchange"

    def lock(self) -> str:
        """The exclusive queue that keeps two runs apart."""
        return f"{self.prefix}delay.lock.queue"

    def verify_queue(self) -> str:
        """The queue that catches canaries."""
        return f"{self.prefix}delay.verify.queue"

    def verify_key(self, run: str, way: int) -> str:
        """The routing key of the canaries that one run sends one way."""
        return f"{self.prefix}delay.verify.{run}.{way}"

    def verify_pattern(self) -> str:
        """What takes the key of every canary and no other."""
        return f"{self.prefix}delay.verify.#"

    def calibration(self, token: str) -> str:
        """The queue that is filled to see what a waiting message takes."""
        return f"{self.prefix}delay.calibration.{token}.queue"

    def record(self, vhost: str) -> str:
        """The global parameter that remembers what was applied."""
        # A colon in the virtual host's name must not look like the one before the prefix.
        return f"delayctl:{vhost.replace('%', '%25').replace(':', '%3A')}:{self.prefix}"

    def is_given(self, name: str) -> bool:
        """Whether this is a name as delayctl gives them, which goes with the prefix."""
        return name.startswith(f"{self.prefix}delay.")

    def reserved(self, level: str) -> bool:
        """Say whether a level of this name would collide with another object of ours."""
        return level in {"unrouted", "lock", "move", "verify", ANY}


def shard_name(level: str, number: int) -> str:
    """What one of the queues of a level is called where levels are called by their names."""
    return f"{level}.{number}"


def rung_name(step: int) -> str:
    """What a step of the ladder is called where levels are called by their names; no level has a dot in its own."""
    return f"{ANY}.{step:02}"
