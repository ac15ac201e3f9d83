"""`evidence`: the table of commands and the entry point.

A subcommand's module is imported when the command is used, so `evidence --help` loads nothing but click
and this table. To add a command, add a line to `REGISTRY`.
"""

from __future__ import annotations

import itertools
import os
import sys

import click

from runners.cli import boundary
from runners.cli.commands import LazyGroup
from runners.cli.context import App

_HERE = "runners.cli"

REGISTRY: dict[str, dict[str, tuple[str, str]]] = {
    "The ledger": {
        "init": (f"{_HERE}.identity:init", "Make a ledger, its root key and its writer key"),
        "key": (f"{_HERE}.keys:key", "List, make, enrol and revoke keys"),
        "policy": (f"{_HERE}.policy:policy", "Declare the floors of every promotion"),
        "note": (f"{_HERE}.notes:note", "Record words about a record"),
        "seal": (f"{_HERE}.seals:seal", "Sign the ledger's size and root"),
        "statement": (
            f"{_HERE}.statement:statement",
            "Ask for statements, sign them, hand them in",
        ),
        "backup": (
            f"{_HERE}.upkeep:backup",
            "Copy the ledger while others append, and verify the copy",
        ),
        "gc": (f"{_HERE}.upkeep:gc", "Remove blobs that no record names"),
        "import": (
            f"{_HERE}.bundle:import_",
            "Make a ledger of a bundle, after everything in it was verified",
        ),
        "restore": (f"{_HERE}.restore:restore", "Go on from a backup, by root's statement"),
    },
    "The work": {
        "data": (f"{_HERE}.data:data", "Ingest, split and audit data"),
        "model": (f"{_HERE}.model:model", "Register models"),
        "plan": (
            f"{_HERE}.plan:plan",
            "Prepare a run: every effective setting, before it does anything",
        ),
        "run": (f"{_HERE}.run:run", "Launch runs, see how they stand, go on after a break"),
        "checkpoint": (
            f"{_HERE}.checkpoint:checkpoint",
            "List checkpoints, get them back, check what they say",
        ),
        "reward": (f"{_HERE}.reward:reward", "Try rewards before anything is trained on them"),
        "eval": (f"{_HERE}.evaluation:evaluation", "Put models to the same cases and compare them"),
        "judge": (f"{_HERE}.judge:judge", "Qualify judges before anything they say counts"),
        "study": (
            f"{_HERE}.study:study",
            "Fix what would count before any run, and read tables from elsewhere",
        ),
        "nominate": (
            f"{_HERE}.nominate:nominate",
            "Nominate one checkpoint for each planned seed of a study, by a comparison on validation",
        ),
        "review": (
            f"{_HERE}.review:review",
            "Review a test before it is read, and sign what you are asked to state",
        ),
        "promote": (f"{_HERE}.promote:promote", "Promote a checkpoint, or record why not"),
        "promotion": (
            f"{_HERE}.promotion:promotion",
            "Approve, grant, check and withdraw promotions",
        ),
        "demo": (f"{_HERE}.demo:demo", "Do the whole job on real input"),
    },
    "The evidence": {
        "log": (f"{_HERE}.history:log", "List records, newest first"),
        "show": (f"{_HERE}.history:show", "Show one record"),
        "lineage": (f"{_HERE}.lineage:lineage", "Show what a record rests on, or what rests on it"),
        "diff": (f"{_HERE}.diff:diff", "Show what differs between two runs, plans or checkpoints"),
        "audit": (
            f"{_HERE}.audit:audit",
            "Audit what stands behind a checkpoint, and run it again",
        ),
        "explain": (
            f"{_HERE}.explain:explain",
            "Say why something passed or failed, and what is on faith",
        ),
        "dossier": (
            f"{_HERE}.dossier:dossier",
            "Write everything behind a gate, a promotion or a checkpoint on one page",
        ),
        "query": (f"{_HERE}.query:query", "Ask the ledger in SQL"),
        "segments": (
            f"{_HERE}.segments:segments",
            "Seal long history for quick questions, and check it",
        ),
        "prove": (
            f"{_HERE}.seals:prove",
            "Prove that a record is under a seal, or check such a proof",
        ),
        "export": (f"{_HERE}.bundle:export", "Take evidence out, for others to verify"),
        "verify": (f"{_HERE}.verify:verify", "Check everything again from the bytes"),
        "schema": (f"{_HERE}.schema:schema", "Show what a kind of record holds and needs"),
    },
}


@click.group(
    cls=LazyGroup,
    registry=REGISTRY,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(package_name="evidence-ledger", prog_name=boundary.PROGRAM)
def root() -> None:
    """A signed, hash-chained ledger of evidence for fine-tuning language models.

    Results are written to stdout, progress and hints to stderr. Exit codes: 0 done or verified, 1 refused
    or found wrong, 2 misused, unreadable or incomplete, 130 interrupted.
    """


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return its exit code.

    Args:
        arguments: what follows the program's name; those of the process where None.
    """
    given = sys.argv[1:] if arguments is None else arguments
    if "_EVIDENCE_COMPLETE" in os.environ:
        root.main(given, prog_name=boundary.PROGRAM)  # a shell asks for completions
    options = itertools.takewhile(lambda word: word != "--", given)
    return boundary.run(App(as_json="--json" in options), root, given)


if __name__ == "__main__":
    sys.exit(main())
