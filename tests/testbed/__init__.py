"""Tests of the testbed: brokers wherever they can be had."""
