"""Bundles: a ledger, or what one record rests on, as one file that travels (spec: bundles.md)."""
