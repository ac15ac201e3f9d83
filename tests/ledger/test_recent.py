"""The records used last: which stay in memory, and how many."""

from __future__ import annotations

from world import World

from ledger.recent import Recent


def notes(count):
    """Records of a world."""
    world = World(staffed=False)
    return [world.add("note.added", text=str(number)) for number in range(count)]


def test_the_newest_records_are_found_and_the_oldest_dropped():
    """At least `size` records are kept and at most twice as many."""
    made, recent = notes(30), Recent(5)
    for done, record in enumerate(made, 1):
        recent.add(record)
        kept = [item for item in made[:done] if item.id in recent._young or item.id in recent._old]
        assert kept[-5:] == made[max(0, done - 5) : done]
        assert len(kept) <= 10


def test_a_record_that_is_asked_for_stays():
    """A record that later ones name again and again is never dropped."""
    made, recent = notes(40), Recent(4)
    recent.add(made[0])
    for record in made[1:]:
        recent.add(record)
        assert recent.get(made[0].id) is made[0]
    assert recent.get(made[1].id) is None


def test_clearing_forgets_both_generations():
    """After a rolled-back transaction nothing of it can be found."""
    made, recent = notes(6), Recent(4)
    for record in made:
        recent.add(record)
    recent.clear()
    assert [recent.get(record.id) for record in made] == [None] * 6
