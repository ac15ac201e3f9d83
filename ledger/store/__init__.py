"""Stores: where records and seals lie, durable and untrusted."""
