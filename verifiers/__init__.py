"""Verifiers decide what counts: pure, free of torch, called by runners and by `evidence verify`."""
