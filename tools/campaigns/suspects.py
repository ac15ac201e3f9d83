"""Campaign `suspects`: ledgers written by many hands, keys taken back at random, and who is suspect by brute force.

Each case grows a ledger up to a promotion, its records written by writers drawn anew each time, and revokes one to
three keys from random seqs. What is suspect is computed here from the page's words alone, over all records and all
refs; the product's walk, its pass, its warnings, its answer about each promotion and its refusal of further gates,
approvals and grants must agree with that.
"""

from __future__ import annotations

from random import Random
from typing import Any

import samples
from world import Draft, World, key

from campaigns.report import Outcome, Settings
from ledger.errors import EvidenceError
from ledger.record import Record
from ledger.suspects import find_suspect, first_seq, windows_of
from verifiers.report import Report
from verifiers.suspects import mark, refuse_suspect, report_suspects

SLICE = 80
FULL = 5_000
WRITERS = ("first", "second", "third")
OFFICES = ("reviewer", "promoter", "auditor")
ROLES = ["ingest", "train", "judge", "seal"]
ONLY_SPEAK = ("note.added", "promotion.withdrawn", "blob.withheld")
BUILT_ON_EVIDENCE = ("gate.decided", "promotion.approved", "promotion.granted")


class Crowd(World):
    """A world in which each record is written by a writer drawn at random.

    Args:
        random: draws the writers.
    """

    def __init__(self, random: Random) -> None:
        self.random = random
        self.hands: tuple[str, ...] = ("writer",)
        super().__init__()
        for name in WRITERS:
            self.enroll(name, ROLES)
        self.hands = WRITERS

    def draft(self, kind: str) -> Draft:
        """The kind's valid draft, by somebody."""
        made = super().draft(kind)
        if made.writer == "writer":
            made.writer = self.random.choice(self.hands)
        return made


def run(settings: Settings) -> Outcome:
    """Grow, revoke, compare."""
    outcome = Outcome(
        excluded={
            "suspicion of seals": "a seal kept beside the records names no record and is no evidence"
        }
    )
    total = FULL if settings.full else SLICE
    for number in range(total) if settings.case is None else [settings.case]:
        problems = _try(settings.random(number), outcome)
        outcome.failures += [f"case {number}: {problem}" for problem in problems]
        outcome.cases += 1
        settings.progress(number, total)
    return outcome


def _try(random: Random, outcome: Outcome) -> list[str]:
    world = _grown(random)
    taken = _revoke(world, random)
    problems = _compare(world, taken, outcome)
    for kind in BUILT_ON_EVIDENCE:
        problems += _build_on(world, kind, taken, outcome)
    return problems


def _grown(random: Random) -> Crowd:
    world = Crowd(random)
    for kind in ("promotion.granted", "leakage.accepted", "rollout.group", "promotion.refused"):
        world.need(kind)
    for kind in ONLY_SPEAK:
        draft = world.draft(kind)
        if kind == "note.added":
            draft.refs["about"] = [random.choice(world.records).id]
        world.admit(draft)
    world.hands = ("writer",)  # what follows is by a hand that is not taken back
    return world


def _revoke(world: Crowd, random: Random) -> dict[str, tuple[int, int]]:
    """Take keys back; (from, until) by key id, as somebody who reads the revocations would note them."""
    names = random.sample(WRITERS + OFFICES[:1], random.randint(1, 3))
    names += [name for name in names if random.random() < 0.3]  # more is learned later
    taken: dict[str, tuple[int, int]] = {}
    in_peace = random.random() < 0.1  # keys that only left
    for name in names:
        size = world.chain.size
        from_seq = random.choice((0, size, size - 1, *(random.randrange(size) for _ in range(6))))
        from_seq = size if in_peace else from_seq
        body = samples.body("key.revoked", key=key(name).id, from_seq=from_seq)
        try:
            record = world.admit(Draft("key.revoked", body, stater=world.root))
        except EvidenceError:
            assert key(name).id in taken  # the second time, no further back
            continue
        earliest, until = taken.get(key(name).id, (from_seq, record.seq))
        taken[key(name).id] = (min(from_seq, earliest), until)
    return taken


def _own(record: Record, taken: dict[str, tuple[int, int]]) -> bool:
    """Whether a key of the record was taken back from its seq or an earlier one, after it was written."""
    keys = {record.actor} | ({record.statement.key} if record.statement else set())
    return any(name in taken and taken[name][0] <= record.seq < taken[name][1] for name in keys)


def by_brute_force(world: World, taken: dict[str, tuple[int, int]]) -> tuple[set[str], set[str]]:
    """Ids of the records that are suspect by themselves, and of all that are suspect: grown until nothing is added."""
    own = {record.id for record in world.records if _own(record, taken)}
    found, before = set(own), -1
    while len(found) != before:
        before = len(found)
        for record in world.records:
            if record.kind not in ONLY_SPEAK and found & {ref for _, ref in record.all_refs()}:
                found.add(record.id)
    return own, found


def _compare(world: Crowd, taken: dict[str, tuple[int, int]], outcome: Outcome) -> list[str]:
    own, found = by_brute_force(world, taken)
    windows = windows_of(world.chain.state.keys)
    problems: list[str] = []
    for record in world.records:
        blamed = find_suspect([record], windows, world.by_id.get)
        sort = "own" if record.id in own else "descendant" if record.id in found else "sound"
        outcome.counts[f"record {sort}"] += 1
        if (blamed is not None) != (record.id in found) or (blamed and blamed.record.id not in own):
            problems.append(f"{record.kind} at {record.seq} is {sort}, the walk blames {blamed}")
    if not windows:
        outcome.counts["ledger without suspects"] += 1
        return problems + (["suspects without a window"] if found else [])
    return problems + _compare_pass(world, (own, found), windows, outcome)


def _compare_pass(
    world: Crowd, sets: tuple[set[str], set[str]], windows: Any, outcome: Outcome
) -> list[str]:
    own, found = sets
    marks = mark(world.records[first_seq(windows) :], world.chain.size, windows)
    counted = sum(t.own for t in marks.tallies), sum(t.descendants for t in marks.tallies)
    problems = []
    if counted != (len(own), len(found - own)):
        problems.append(f"the pass counts {counted}, there are {len(own)} and {len(found - own)}")
    report = Report(level="records")
    report_suspects(marks, report)
    void = {item.id for item in report.warnings if item.code == "PROMOTION_VOID"}
    wanted = {item.id for item in world.records if item.kind == "promotion.granted"} & found
    outcome.counts["promotion void" if wanted else "promotion sound"] += 1
    if void != wanted:
        problems.append(f"void promotions {void}, should be {wanted}")
    for record in world.records:
        asked = Report(level="records")
        refuse_suspect(record, windows, world.by_id.get, asked)
        if bool(asked.wrong) != (record.id in found):
            problems.append(f"asked about {record.kind} at {record.seq}: {asked.wrong}")
    return problems


def _build_on(
    world: Crowd, kind: str, taken: dict[str, tuple[int, int]], outcome: Outcome
) -> list[str]:
    """Try one more gate, approval or grant on the same evidence, by keys that count."""
    if kind != "gate.decided" and key("reviewer").id in taken:
        outcome.counts[f"{kind} not tried: its reviewer was taken back"] += 1
        return []
    draft = world.draft(kind)
    _, found = by_brute_force(world, taken)
    named = {
        ref for refs in draft.refs.values() for ref in ([refs] if isinstance(refs, str) else refs)
    }
    wanted = "EVIDENCE_SUSPECT" if named & found else "admitted"
    try:
        world.admit(draft)
    except EvidenceError as error:
        code = error.code
    else:
        code = "admitted"
    outcome.counts[f"{kind} {code}"] += 1
    return [] if code == wanted else [f"{kind} is {code}, should be {wanted}"]
