"""Reading history: SQL over typed tables, and lineage over the edge index.

Nothing here verifies: answers say which size and root they were read at, and `evidence verify` says
whether that ledger is sound.
"""
