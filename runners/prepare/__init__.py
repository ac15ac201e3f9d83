"""Preparation of data and models: whatever reads files before a ledger knows them."""
