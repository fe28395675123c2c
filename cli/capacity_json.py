"""What room messages need, for programs. Pure: nothing is read, nothing is printed."""

from dataclasses import asdict
from typing import Any

from delayctl.cli.capacity_views import Answer
from delayctl.topology.calibration import Calibration
from delayctl.topology.capacity import Need
from delayctl.topology.rate import Rate


def capacity_json(answer: Answer) -> dict[str, Any]:
    """An answer as programs read it; what is not known is null."""
    capacity = answer.capacity
    return {
        "fits": capacity.fits,
        "file": answer.file,
        "waits": [_need_json(need) for need in capacity.needs],
        "memory_bytes": capacity.memory,
        "log_memory_bytes": capacity.log,
        "disk_bytes": capacity.disk,
        "available": {
            "memory_bytes": capacity.available.memory,
            "disk_bytes": capacity.available.disk,
            "source": capacity.available.source or None,
            "messages": capacity.most_messages(capacity.needs[0]) if len(capacity.needs) == 1 else None,
        },
        "calibrations": [_calibration_json(calibration) for calibration in answer.calibrations],
        "troubles": [asdict(shortfall) for shortfall in capacity.shortfalls],
        "notes": list(answer.notes),
    }


def _need_json(need: Need) -> dict[str, Any]:
    return {
        "name": need.name,
        "queue": need.shape,
        "delay_ms": need.delay.ms if need.delay else None,
        "rate_per_second": _per_second(need.rate),
        "waiting": need.waiting,
        "max_length": need.limit,
        "advised_max_length": need.advised,
        "carries_per_second": _per_second(need.carries),
        "body_bytes": need.body,
        "memory_bytes_per_message": need.memory_each,
        "memory_bytes": need.memory if need.room is not None else None,
        "disk_bytes_per_message": need.disk_each,
        "disk_bytes": need.disk if need.room is not None else None,
        "fits": not need.is_short,
        "figures_from": need.footprint.source,
    }


def _per_second(rate: Rate | None) -> float | None:
    return None if rate is None else float(rate.per_second)


def _calibration_json(calibration: Calibration) -> dict[str, Any]:
    return {
        "queue": calibration.shape,
        "rabbitmq_version": calibration.version,
        "node": calibration.node,
        "body_bytes": calibration.body,
        "messages": calibration.messages,
        "queue_bytes_per_message": round(calibration.queue_each, 1),
        "node_bytes_per_message": round(calibration.held_each, 1),
        "node_all_bytes_per_message": round(calibration.used_each, 1),
        "disk_bytes_per_message": None if calibration.disk_each is None else round(calibration.disk_each, 1),
        "confirmed_per_second": round(calibration.per_second, 1),
        "settled": calibration.is_settled,
        "complete": calibration.is_whole,
        "readings": [asdict(reading) for reading in calibration.readings],
    }
