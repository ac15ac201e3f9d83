"""Rows, their identity, splits and leakage audits: pure functions of the bytes they are given."""
