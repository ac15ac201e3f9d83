"""The record book: signed, hash-chained records in an append-only store."""
