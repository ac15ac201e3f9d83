"""Campaigns: long, seeded attacks on the core. Each is a program that counts what it tried and what escaped."""
