"""Brokers in virtual time: two hours of delays pass in a millisecond, and always in the same way."""
