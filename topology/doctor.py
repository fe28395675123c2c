"""All that a doctor checks, by theme."""

from delayctl.topology import (
    checks_broker,
    checks_clients,
    checks_lint,
    checks_parked,
    checks_places,
    checks_settings,
    checks_waits,
)
from delayctl.topology.diagnosis import Check

_BY_THEME = (checks_broker, checks_waits, checks_places, checks_parked, checks_settings, checks_lint, checks_clients)
CHECKS: tuple[Check, ...] = tuple(check for theme in _BY_THEME for check in theme.CHECKS)
