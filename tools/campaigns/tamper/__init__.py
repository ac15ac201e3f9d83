"""The tampering campaigns' parts: base ledgers, attacks on them, and the judge of what became of each."""
