"""Sampling outside the learner's own process: asking a server, renewing its weights, and seeing that it has them."""
