"""The owner who restores, and those who may not: what each is told, and what the ledger and the file are afterwards."""

from __future__ import annotations

import shutil
from pathlib import Path
from random import Random

from world import ORIGIN, key

from campaigns.rollback_scene import Scene, mark_bytes
from campaigns.rollback_story import Story
from campaigns.rollback_world import (
    WHY,
    WrongError,
    content,
    expect,
    expect_mark,
    mark_of,
    report,
    root_of,
)
from ledger import statements
from ledger.records.base import Seen, Statement
from ledger.restores import KIND


def owner(scene: Scene, random: Random) -> str:
    """The owner tries to restore; where that is right, writers go on and verify says what was lost."""
    story, due = scene.story, scene.alarm
    cut = scene.found is not None and scene.found.sealed > len(scene.now)
    if due == "LEDGER_ROLLED_BACK" and not cut:
        _impostors(scene, random)
        _restored(scene)
        return f"{due}, restored"
    refusal = "TAIL_CUT" if cut and due == "LEDGER_ROLLED_BACK" else due or "NOT_ROLLED_BACK"
    before = mark_bytes(story)
    expect(story.case.restore(story.place, story.state), refusal, "a restore that is not due")
    expect(mark_bytes(story), before, "the file after a refused restore")
    if due:
        return f"{due}, not restored: {refusal}"
    if cut:
        expect(
            story.case.note(story.place, story.state),
            "TAIL_CUT",
            "a writer under a seal beyond the end",
        )
        expect(mark_bytes(story), before, "the file after that refusal")
        return "no mark beyond it, a seal tells: TAIL_CUT"
    _goes_on(scene)
    return "no alarm"


def _goes_on(scene: Scene) -> None:
    """A writer appends, and the file is at the head afterwards."""
    story = scene.story
    expect(story.case.note(story.place, story.state, 2), None, "a writer without an alarm")
    after = story.learn(story.place)
    expect(after[:-2], scene.now, "what the writer found")
    expect_mark(story.state, after)


def _impostors(scene: Scene, random: Random) -> None:
    """Whoever is not root, or does not state exactly this, records nothing and lowers nothing."""
    story, before = scene.story, mark_bytes(scene.story)
    for name, (signer, changes, code) in sorted(_IMPOSTORS.items()):
        if random.random() < 0.5:
            continue
        made = {part: value(scene) if callable(value) else value for part, value in changes.items()}
        expect(story.case.restore(story.place, story.state, signer, **made), code, name)
        expect(mark_bytes(story), before, f"the file after {name}")
    expect(content(story.place, story.scratch), scene.found, "the ledger after the impostors")


def _other_loss(scene: Scene) -> dict[str, object]:
    lost = {"size": len(scene.now) + 1, "root": "0" * 64}
    return {"lost_from": len(scene.now), "high_water": lost, "why": WHY}


def _older_head(scene: Scene) -> Seen:
    return Seen(size=1, root=root_of(scene.now[:1]).hex())


_IMPOSTORS: dict[str, tuple[str, dict[str, object], str]] = {
    "the writer's word": ("writer", {}, "STATEMENT_ROLE"),
    "a stranger's word": ("nobody", {}, "KEY_UNKNOWN"),
    "a nonce that was used": ("root", {"nonce": f"{1001:032x}"}, "STATEMENT_REPLAYED"),
    "another ledger's statement": (
        "root",
        {"ledger": "example.com/other"},
        "STATEMENT_INVALID",
    ),
    "another kind's statement": ("root", {"kind": "key.revoked"}, "STATEMENT_INVALID"),
    "a statement of another loss": ("root", {"body": _other_loss}, "STATEMENT_INVALID"),
    "a statement over an older head": ("root", {"seal": _older_head}, "STATEMENT_STALE"),
}


def _restored(scene: Scene) -> None:
    """Root restores: the record, the lower mark, writers who go on, and the same statement no second time."""
    story, kept = scene.story, scene.story.case.folder / "kept"
    shutil.copytree(story.place, kept)
    statement = _statement(scene)
    done = story.case.restore(story.place, story.state, ready=statement)
    if isinstance(done, str):
        raise WrongError(f"root's restore was refused: {done}")
    now = (*scene.now, done.record.id)
    expect_mark(story.state, now)
    expect(done.record.body, _due_body(scene), "the restore record")
    expect(story.case.note(story.place, story.state, 2), None, "a writer after the restore")
    found = report(story.place, story.state)
    expect((found.verdict, found.rollback), ("verified", "high water reached"), "after the restore")
    warned = [item.seq for item in found.warnings if item.code == "LEDGER_RESTORED"]
    expect(warned, [len(scene.now)], "what verify says was lost")
    _once_only(story, kept, statement)


def _due_body(scene: Scene) -> dict[str, object]:
    mark = scene.mark
    if mark is None:
        raise WrongError("a restore without a mark")
    lost = {"size": len(mark), "root": root_of(mark).hex()}
    return {"lost_from": len(scene.now), "high_water": lost, "why": WHY}


def _statement(scene: Scene) -> Statement:
    seen = Seen(size=len(scene.now), root=root_of(scene.now).hex())
    return statements.make(
        key("root"),
        ledger=ORIGIN,
        kind=KIND,
        refs={},
        body=_due_body(scene),
        seal=seen,
        nonce=scene.story.case.nonce(),
    )


def _once_only(story: Story, kept: Path, statement: Statement) -> None:
    """The copy is put back once more: the statement was about the first loss, not about this one."""
    before = mark_of(story.state, story.whole[0])
    shutil.rmtree(story.place)
    shutil.copytree(kept, story.place)
    answer = story.case.restore(story.place, story.state, ready=statement)
    expect(answer, "STATEMENT_INVALID", "a statement used for a second loss")
    expect(mark_of(story.state, story.whole[0]), before, "the file after it")
