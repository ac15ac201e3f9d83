"""Outcomes that code can decide: the desk's rules, its calls, and the answerers to compare with."""
