"""One attack on a ledger folder, seen by a writer, by readers and by the owner who restores.

What is due follows from three things: the history that the database holds afterwards, the head in the
high-water file, and the seal that the reader brings.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from random import Random

from world import ORIGIN, key

from campaigns.rollback_attacks import ATTACKS, Story, tell
from campaigns.rollback_world import (
    WHY,
    Case,
    Content,
    History,
    Named,
    WrongError,
    alarm,
    codes,
    content,
    expect,
    expect_mark,
    mark_of,
    report,
    root_of,
)
from ledger import seals, statements
from ledger.book import INDEX
from ledger.highwater import HighWater, path_of
from ledger.records.base import Seen, Statement
from ledger.restores import KIND

MARKS = ("present", "present", "lagging", "absent", "empty", "damaged", "foreign")
SEALS = ("none", "older", "equal", "beyond", "fork")
DAMAGED = "HIGHWATER_INVALID"


@dataclass
class Scene:
    """A ledger after an attack, and all that decides what is due.

    Attributes:
        story: how it came about.
        found: what the database holds, None where it cannot be read.
        mark: the history whose head the high-water file of the ledger holds, None for no file.
        readable_mark: the file is absent or a head of this ledger.
    """

    story: Story
    found: Content | None
    mark: History | None
    readable_mark: bool

    @property
    def now(self) -> History:
        """The history in the folder."""
        return self.found.ids if self.found else ()

    @property
    def good(self) -> bool:
        """Whether somebody with the keys wrote exactly this history."""
        return len(self.now) > 0 and any(
            one[: len(self.now)] == self.now for one in self.story.known
        )

    @property
    def alarm(self) -> str:
        """What the high-water file makes of it."""
        return alarm(self.now, self.mark, Named()) if self.readable_mark else DAMAGED


def attacked(case: Case, random: Random, attack: str, mark: str) -> Scene:
    """A story, and what one attack and one fate of the high-water file make of it."""
    story = tell(case, random)
    ATTACKS[attack](story, random)
    if random.random() < 0.3 and story.place.exists():
        shutil.rmtree(story.place / "blobs", ignore_errors=True)
    if random.random() < 0.3 and story.place.exists():
        (story.place / INDEX).unlink(missing_ok=True)
    held = _set_mark(story, mark, random)
    found = content(story.place, story.scratch)
    same_ledger = found is None or not found.ids or found.ids[0] == story.whole[0]
    readable = mark not in ("damaged", "foreign") or not same_ledger
    return Scene(story, found, held if same_ledger else None, readable)


def _set_mark(story: Story, mark: str, random: Random) -> History | None:
    """Give the high-water file its fate; the history that it then speaks of."""
    path = path_of(story.state, story.whole[0])
    data = path.read_bytes()
    if mark == "present":
        return story.whole
    if mark == "lagging":  # as a crash between commit and write leaves it
        path.write_bytes(story.old_mark)
        return story.before
    if mark == "absent":
        path.unlink()
    elif mark == "empty":
        path.write_bytes(b"")
    elif mark == "damaged":
        path.write_bytes(data[: random.randrange(1, len(data))])
    else:
        other = HighWater("sha256:" + "1" * 64, 5, bytes(32), "sha256:" + "2" * 64)
        path.write_bytes(other.encode())
    return None


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
    return _owner(scene, random)


def mark_bytes(story: Story) -> bytes | None:
    """The high-water file as it is."""
    path = path_of(story.state, story.whole[0])
    return path.read_bytes() if path.exists() else None


def _unreadable(scene: Scene) -> str:
    """No ledger, or a database that no history gave: never verified, never written."""
    story = scene.story
    found = report(story.place, story.state)
    expect(found.verdict == "verified", False, "a ledger that nobody wrote is verified")
    code = story.case.note(story.place, story.state)
    if code is None:
        raise WrongError("a writer went on in a ledger that nobody wrote")
    return f"refused {code}"


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


def _owner(scene: Scene, random: Random) -> str:
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
