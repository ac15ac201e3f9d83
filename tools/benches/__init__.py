"""Benches: what something costs, measured beside what it is held against, in one run on one machine."""
