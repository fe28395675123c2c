"""Delayed and retried messages on RabbitMQ."""

__version__ = "0.1.0"
