"""The demo: a story told by the public commands."""
