"""Runners do the work and write the evidence; the command line is their top."""
