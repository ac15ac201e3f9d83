"""One attack on a ledger folder, seen by readers, by a writer and by the owner.

What is due follows from three things: the history that the database holds afterwards, the head in the
high-water file, and the seal that the reader brings.
"""

from __future__ import annotations

from random import Random

from campaigns.rollback_owner import owner
from campaigns.rollback_scene import DAMAGED, Scene, mark_bytes
from campaigns.rollback_story import Story
from campaigns.rollback_world import (
    codes,
    expect,
    report,
    root_of,
)
from ledger import seals
from ledger.errors import LedgerError


def judge(scene: Scene, random: Random, seal: str) -> str:
    """Put the scene to readers, writer and owner; what became of it, in a few words.

    Raises:
        WrongError: one of them answered other than is due.
    """
    story = scene.story
    if not scene.good:
        return _unreadable(scene)
    _readers(scene, seal)
    due = scene.alarm
    if due:
        before = mark_bytes(story)
        expect(story.case.note(story.place, story.state), due, "a writer")
        expect(mark_bytes(story), before, "the file after a refusal")
    return owner(scene, random)


def _unreadable(scene: Scene) -> str:
    """No ledger, or a database that no history gave: never verified, and no alarm is ever taken down by it.

    A writer does not check old signatures at opening; with no alarm it may go on where only those are wrong.
    """
    story, due = scene.story, scene.alarm
    found = report(story.place, story.state)
    expect(found.verdict == "verified", False, "a ledger that nobody wrote is verified")
    before = mark_bytes(story)
    if due:
        answer = story.case.restore(story.place, story.state)
        expect(isinstance(answer, str), True, "a restore of what nobody wrote is refused")
        expect(mark_bytes(story), before, "the file after that restore")
    code = _code_of(story)
    if due:
        expect(code is None, False, "a writer went on in a ledger that nobody wrote")
        expect(mark_bytes(story), before, "the file after the refusal")
    return f"never verified, writer: {code or 'not told, no mark'}"


def _code_of(story: Story) -> str | None:
    """What a writer is told who opens and appends."""
    try:
        return story.case.note(story.place, story.state)
    except LedgerError as error:
        return error.code


def _readers(scene: Scene, seal: str) -> None:
    """Without a file, with it, and with a seal: what each reader is told."""
    story = scene.story
    cut = scene.found is not None and scene.found.sealed > len(scene.now)
    plain = report(story.place, None)
    expect(codes(plain), ["TAIL_CUT"] if cut else [], "a reader without a file")
    expect(plain.rollback, "unchecked", "rollback for a reader without a file")
    kept = report(story.place, story.state)
    expect(codes(kept), _due_codes(scene, cut=cut, seal_missing=False), "a reader with the file")
    if kept.verdict == "verified":
        reached = "unchecked" if scene.mark is None else "high water reached"
        expect(kept.rollback, reached, "rollback for a reader with the file")
    if seal != "none":
        _reader_with_seal(scene, story.seals[seal], cut=cut)


def _reader_with_seal(scene: Scene, note: bytes, *, cut: bool) -> None:
    head = seals.read_unverified(note)
    held = len(scene.now) >= head.size and root_of(scene.now[: head.size]) == head.root
    alone = report(scene.story.place, None, note)
    due = ["TAIL_CUT"] if cut else [] if held else ["EXPECTED_SEAL"]
    expect(codes(alone), due, "a reader with a seal")
    if not due:
        expect(alone.rollback, "expected seal found", "rollback for a reader with a seal")
    both = report(scene.story.place, scene.story.state, note)
    expect(
        codes(both),
        _due_codes(scene, cut=cut, seal_missing=not held),
        "a reader with seal and file",
    )


def _due_codes(scene: Scene, *, cut: bool, seal_missing: bool) -> list[str]:
    """What a reader with a high-water file finds: a bad file first, a bad chain next, then the end."""
    if scene.alarm == DAMAGED:
        return [DAMAGED]
    if cut:
        return ["TAIL_CUT"]
    return sorted(["EXPECTED_SEAL"] * seal_missing + [scene.alarm] * bool(scene.alarm))
