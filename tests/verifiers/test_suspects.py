"""Suspects: what a revocation from an earlier seq reaches, what it voids, and what is refused afterwards."""

from __future__ import annotations

import pytest
import samples
from world import DRAFTS, Draft, World, key

from ledger.errors import EvidenceError, UsageError
from ledger.suspects import Window, find_suspect, first_seq, suspect_key, windows_in, windows_of
from verifiers import suspects
from verifiers.verify import Options, verify

SECOND = "second trainer"


def staffed() -> World:
    """A world with a second trainer, whose key is the one that gets lost."""
    world = World()
    world.enroll(SECOND, ["train", "judge", "ingest"])
    return world


def lose(world: World, name: str, from_seq: int):
    """Revoke a name's key from an earlier seq."""
    body = samples.body("key.revoked", key=key(name).id, from_seq=from_seq)
    return world.admit(Draft("key.revoked", body, stater=world.root))


def wrote(world: World, kind: str, name: str = SECOND, **changes):
    """Admit the kind's draft, written by a name."""
    draft = world.draft(kind)
    draft.writer = name
    draft.body.update(changes)
    return world.admit(draft)


def checked(world: World, folder, **options):
    """A verification of the world's ledger at level records."""
    return verify(world.write(folder), Options(workers=1, **options))


def codes(findings) -> list[str]:
    """The codes of some findings."""
    return [item.code for item in findings]


def promoted() -> tuple[World, Draft]:
    """A world with a promotion whose checkpoint the second trainer published."""
    world = staffed()
    checkpoint = wrote(world, "checkpoint.published")
    world.need("promotion.granted")
    return world, checkpoint


def test_a_window_is_kept_in_the_state_and_never_begins_before_the_key():
    """The state holds where suspicion begins: the named seq, not before the enrolment, None where it reaches nothing."""
    world = staffed()
    for name, from_seq, expected in (
        (SECOND, 0, world.chain.state.keys[key(SECOND).id].from_seq),
        ("auditor", world.chain.size - 1, world.chain.size - 1),
    ):
        lose(world, name, from_seq)
        assert world.chain.state.keys[key(name).id].suspect_from == expected
    lose(world, "reviewer2", world.chain.size)
    assert world.chain.state.keys[key("reviewer2").id].suspect_from is None
    assert set(windows_of(world.chain.state.keys)) == {key(SECOND).id, key("auditor").id}


def test_edges_of_a_window():
    """The named seq is inside, the seq before it and the revocation itself are not."""
    world = staffed()
    before, first, last = (wrote(world, "note.added") for _ in range(3))
    body = samples.body("key.revoked", key=key(SECOND).id, from_seq=first.seq)
    revoked = world.admit(Draft("key.revoked", body, writer=SECOND, stater=world.root))
    windows = windows_of(world.chain.state.keys)
    assert windows == {key(SECOND).id: Window(first.seq, revoked.seq)}
    assert first_seq(windows) == first.seq
    named = [suspect_key(record, windows) for record in (before, first, last, revoked)]
    assert named == [None, key(SECOND).id, key(SECOND).id, None]


def test_what_rests_on_a_suspect_is_suspect_whenever_it_was_written(folder):
    """Descendants before and after the revocation are counted, own records and descendants apart."""
    world = staffed()
    source = wrote(world, "source.ingested")
    dataset = world.add("dataset.parsed")
    revoked = lose(world, SECOND, source.seq)
    split = world.add("split.declared")
    assert split.ref_list("dataset") == [dataset.id]
    other = world.add("source.ingested", name="clean")
    report = checked(world, folder)
    assert report.verdict == "verified"
    (warning,) = report.warnings
    assert (warning.code, warning.step, warning.seq) == ("KEY_SUSPECT", "V14", revoked.seq)
    assert "1 of its own, 2 that rest on suspect ones" in warning.message
    windows = windows_of(world.chain.state.keys)
    found = {
        record.seq: find_suspect([record], windows, world.by_id.get)
        for record in (source, dataset, split, other)
    }
    assert {seq for seq, item in found.items() if item} == {source.seq, dataset.seq, split.seq}
    assert found[split.seq].record.id == source.id


def test_a_statement_counts_at_the_seq_of_its_record(folder):
    """A statement signed over an older head and used inside the window makes its record suspect."""
    world = World()
    audit = world.need("leakage.audited")
    world.seal()
    early = world.draft("leakage.accepted")
    early.statement = world.state_of(early)  # signed now, before anything is suspect
    start = world.chain.size
    world.add("note.added")
    accepted = world.admit(early)
    lose(world, "reviewer", start + 1)
    windows = windows_of(world.chain.state.keys)
    assert suspect_key(accepted, windows) == key("reviewer").id
    report = checked(world, folder, record=accepted.id)
    assert (report.verdict, codes(report.wrong)) == ("wrong", ["EVIDENCE_SUSPECT"])
    assert suspect_key(audit, windows) is None


def test_a_statement_made_in_time_is_no_use_after_the_revocation():
    """A revoked reviewer's statement over an older sealed head is refused when it comes too late."""
    world = World()
    world.need("leakage.audited")
    world.seal()
    early = world.draft("leakage.accepted")
    early.statement = world.state_of(early)
    lose(world, "reviewer", world.chain.size)
    with pytest.raises(EvidenceError) as caught:
        world.admit(early)
    assert caught.value.code == "KEY_OUT_OF_WINDOW"


def test_a_promotion_on_suspect_evidence_is_void(folder):
    """The ledger verifies with warnings that name the promotion; whoever asks about the promotion gets a no."""
    world, checkpoint = promoted()
    granted = world.newest("promotion.granted")
    lose(world, SECOND, checkpoint.seq)
    report = checked(world, folder)
    assert (report.verdict, report.wrong) == ("verified", [])
    assert codes(report.warnings) == ["KEY_SUSPECT", "PROMOTION_VOID"]
    assert report.warnings[1].id == granted.id
    asked = verify(folder, Options(workers=1, record=granted.id))
    assert (asked.verdict, asked.scope) == ("wrong", granted.id)
    (finding,) = asked.wrong
    assert (finding.code, finding.step, finding.id) == ("PROMOTION_VOID", "V14", granted.id)
    assert finding.actual == checkpoint.id


@pytest.mark.parametrize("kind", ["candidate.nominated", "gate.decided", "promotion.approved"])
def test_whoever_asks_about_a_suspect_record_gets_a_no(folder, kind):
    """Every record between the suspect and the promotion is wrong when it is asked about by name."""
    world, checkpoint = promoted()
    lose(world, SECOND, checkpoint.seq)
    report = checked(world, folder, record=world.newest(kind).id)
    assert (report.verdict, codes(report.wrong)) == ("wrong", ["EVIDENCE_SUSPECT"])


def test_what_does_not_rest_on_a_suspect_is_verified_by_name(folder):
    """A record before the window, and one that only speaks of a suspect, stay verified when asked about."""
    world, checkpoint = promoted()
    lose(world, SECOND, checkpoint.seq)
    note = world.draft("note.added")
    note.refs["about"] = [checkpoint.id]
    noted = world.admit(note)
    withdrawn = world.add("promotion.withdrawn")
    world.write(folder)
    for record in (world.newest("run.launched"), noted, withdrawn):
        report = verify(folder, Options(workers=1, record=record.id))
        assert report.verdict == "verified", record.kind


def test_a_revocation_from_now_leaves_no_suspect(folder):
    """Ending a key's window without reaching back warns of nothing."""
    world, _ = promoted()
    lose(world, SECOND, world.chain.size)
    report = checked(world, folder, record=world.newest("promotion.granted").id)
    assert (report.verdict, report.warnings) == ("verified", [])


@pytest.mark.parametrize("kind", ["gate.decided", "promotion.approved", "promotion.granted"])
def test_after_the_revocation_nothing_more_is_built_on_it(kind):
    """G6: a gate, an approval and a grant on suspect evidence are refused, naming record and revocation."""
    world, checkpoint = promoted()
    revoked = lose(world, SECOND, checkpoint.seq)
    with pytest.raises(EvidenceError) as caught:
        world.add(kind)
    error = caught.value
    assert (error.code, error.actual) == ("EVIDENCE_SUSPECT", checkpoint.id)
    assert f"record {checkpoint.seq}" in error.message
    assert f"record {revoked.seq} revoked" in error.message


def test_a_gate_may_say_no_about_suspect_evidence():
    """A gate that fails is no promotion, and may rest on what is suspect."""
    world, checkpoint = promoted()
    lose(world, SECOND, checkpoint.seq)
    line = {**samples.body("gate.decided")["gates"][0], "passed": False}
    assert world.add("gate.decided", gates=[line], passed=False).body["passed"] is False


def test_new_evidence_under_another_key_is_promoted_after_a_revocation():
    """A new checkpoint, nomination, gate, approval and grant by keys that count are admitted."""
    world, checkpoint = promoted()
    lose(world, SECOND, checkpoint.seq)
    for kind in ("run.launched", "checkpoint.published"):
        world.add(kind)
    baseline = world.need("study.registered")
    assert find_suspect([baseline], windows_of(world.chain.state.keys), world.by_id.get) is None
    for kind in (
        "protocol.registered",
        "arm.transcribed",
        "judge.passed",
        "evaluation.completed",
        "comparison.made",
        "candidate.nominated",
        "gate.decided",
        "promotion.approved",
    ):
        world.add(kind)
    made = DRAFTS["promotion.granted"](world)
    made.refs["approval"] = [world.newest("promotion.approved").id]
    made.stater = "promoter"
    assert world.admit(made).seq > checkpoint.seq


def test_more_may_be_learned_later(folder):
    """A second revocation widens the window and never narrows it; the key's last seq stays where it was."""
    world = staffed()
    notes = [wrote(world, "note.added") for _ in range(4)]
    first = lose(world, SECOND, world.chain.size)  # it only left
    state = world.chain.state.keys[key(SECOND).id]
    assert (state.until_seq, state.suspect_from) == (first.seq, None)
    lose(world, SECOND, notes[2].seq)
    assert (state.until_seq, state.suspect_from) == (first.seq, notes[2].seq)
    for from_seq in (notes[2].seq, notes[3].seq, world.chain.size):
        with pytest.raises(EvidenceError) as caught:
            lose(world, SECOND, from_seq)
        assert caught.value.code == "KEY_UNKNOWN"
    lose(world, SECOND, 0)
    assert (state.until_seq, state.suspect_from) == (first.seq, state.from_seq)
    with pytest.raises(EvidenceError):
        lose(world, SECOND, 0)  # nothing is left to take back
    revocations = [record for record in world.records if record.kind == "key.revoked"]
    assert windows_in(revocations) == {key(SECOND).id: Window(0, first.seq)}
    report = checked(world, folder)
    assert codes(report.warnings) == ["KEY_SUSPECT"]
    assert "4 of its own" in report.warnings[0].message


def test_two_revocations_count_each_suspect_once(folder):
    """A record of two lost keys belongs to the first revocation of its own; a descendant to the first that reaches it."""
    world = World()
    for name in ("first", "other"):
        world.enroll(name, ["ingest", "train", "judge"])
    source = wrote(world, "source.ingested", "first")
    dataset = wrote(world, "dataset.parsed", "other")
    split = world.add("split.declared")
    lose(world, "other", dataset.seq)
    lose(world, "first", source.seq)
    windows = windows_of(world.chain.state.keys)
    since = world.records[first_seq(windows) :]
    marks = suspects.mark(since, world.chain.size, windows)
    counts = {tally.key: (tally.own, tally.descendants) for tally in marks.tallies}
    assert counts == {key("other").id: (1, 1), key("first").id: (1, 0)}
    assert split.seq > dataset.seq
    report = checked(world, folder)
    assert codes(report.warnings) == ["KEY_SUSPECT", "KEY_SUSPECT"]


def test_more_void_promotions_than_are_named_are_counted(folder, monkeypatch):
    """Beyond the limit the last warning says how many more promotions are void."""
    monkeypatch.setattr(suspects, "PROMOTIONS_NAMED", 1)
    world, checkpoint = promoted()
    for _ in range(2):
        world.add("promotion.granted", scope=world.fresh())
    lose(world, SECOND, checkpoint.seq)
    report = checked(world, folder)
    assert codes(report.warnings) == ["KEY_SUSPECT", "PROMOTION_VOID"]
    assert "(and 2 later ones)" in report.warnings[1].message


def test_a_pass_that_begins_at_a_snapshot_reaches_back_too(folder):
    """With --since the suspects are those of the whole ledger: what a later revocation reaches lies before the snapshot."""
    world, checkpoint = promoted()
    kept = world.seal()
    lose(world, SECOND, checkpoint.seq)
    whole = checked(world, folder)
    tail = verify(folder, Options(workers=1, since="last", expect_seal=kept))
    assert tail.since > checkpoint.seq
    assert tail.warnings == whole.warnings
    assert codes(tail.warnings) == ["KEY_SUSPECT", "PROMOTION_VOID"]


def test_append_refuses_what_replay_refuses(folder):
    """The real book, reopened over a snapshot that holds the window, refuses the same grant."""
    world, checkpoint = promoted()
    lose(world, SECOND, checkpoint.seq)
    draft = DRAFTS["promotion.granted"](world)
    ledger = world.replay(folder)
    try:
        ledger.seal()
        ledger._chain = None  # the next append starts from the snapshot
        with pytest.raises(UsageError) as caught:
            ledger.append_stated(
                draft.kind, draft.body, draft.refs, signer=key("promoter"), nonce="f" * 32
            )
    finally:
        ledger.close()
    assert caught.value.code == "EVIDENCE_SUSPECT"
