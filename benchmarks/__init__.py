"""Measurements, always beside something to compare with in the same run."""
