"""The command line: read, compute, show, return a code."""
