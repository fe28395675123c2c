"""The same publisher within asyncio: its futures can be awaited."""

import asyncio
import os
from pathlib import Path

from delayctl.publishers import DelayPublisher

TOPOLOGY = Path(__file__).with_name("service.yaml")


async def remind(publisher: DelayPublisher, number: int) -> str:
    """One task of many; while it waits for its confirmation the others run."""
    return await publisher.publish(f"order {number}", key="order.created", delay="3s", message_id=f"order-{number}")


async def main(url: str) -> None:
    """Publish from many tasks at once."""
    # Connecting and closing wait for the broker, so they are done beside the event loop.
    publisher = await asyncio.to_thread(DelayPublisher, url, topology=TOPOLOGY)
    try:
        confirmed = await asyncio.gather(*(remind(publisher, number) for number in range(1000)))
        print(f"confirmed {len(confirmed):,} messages, the last is {confirmed[-1]}")
    finally:
        await asyncio.to_thread(publisher.close)


if __name__ == "__main__":
    asyncio.run(main(os.environ.get("DELAYCTL_URL", "amqp://guest:guest@127.0.0.1:5672/")))
