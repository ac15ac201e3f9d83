"""Hostile bundles against `import` and `verify --bundle`: changed bytes, other archives, links, holes, odd places."""

from __future__ import annotations

import os
from pathlib import Path
from random import Random

import bundle_world

from campaigns import bundle_attacks
from campaigns.hostile_bytes import Maker, odd_name, special
from campaigns.hostile_child import Attack
from campaigns.hostile_place import Place
from ledger.book import DATABASE
from ledger.staging import staging_of

NAME = "x.tar"


def _call(rng: Random, place: Place, file: Path) -> Attack:
    """Import it beside the user's ledger, or verify it where it lies."""
    if rng.random() < 0.5:
        return Attack(("verify", "--bundle", str(file)))
    return Attack(("--ledger", str(place.folder / "arrived"), "import", str(file)))


def _changed(kind: str) -> Maker:
    def make(rng: Random, place: Place) -> Attack:
        good = bundle_world.whole(place.stranger)
        made = bundle_attacks.KINDS[kind](rng, good)
        attack = _call(rng, place, place.put(NAME, made))
        # changes that leave the records as they are may be a good bundle, see the campaign bundles
        return Attack(attack.words, accepts=kind == "repack" or made == good)

    return make


def no_file(rng: Random, place: Place) -> Attack:
    """A folder, a pipe, a link, nothing, or five gigabytes of nothing where the bundle should be."""
    return _call(rng, place, special(rng, place, NAME))


def missing_blob(rng: Random, place: Place) -> Attack:
    """A bundle that lists a blob and does not hold it, its digest computed anew."""
    parts = bundle_world.members(bundle_world.whole(place.stranger))
    blobs = [at for at, (name, _) in enumerate(parts) if name.startswith("blobs/")]
    del parts[rng.choice(blobs)]
    return _call(rng, place, place.put(NAME, bundle_world.packed(parts)))


def words(rng: Random, place: Place) -> Attack:
    """A bundle whose members or words are what a terminal would obey."""
    parts = bundle_world.members(bundle_world.whole(place.stranger))
    nasty = odd_name(rng, "").decode("utf-8", "replace")
    name, content = parts[0]
    parts[0] = (name, content.replace(b"example.com", nasty.encode()))
    return _call(rng, place, place.put(odd_name(rng, ".tar"), bundle_world.packed(parts)))


def in_the_way(rng: Random, place: Place) -> Attack:
    """A link, a ledger or a file where an import or an export wants to write."""
    file = place.put(NAME, bundle_world.whole(place.stranger))
    target = place.folder / "arrived"
    match rng.randrange(4):
        case 0:
            staging_of(target).symlink_to(place.outside)
        case 1:
            target.symlink_to(place.outside)
        case 2:
            target.mkdir()
            (target / DATABASE).write_bytes(b"mine")
        case _:
            os.link(place.outside / "canary", place.input / "taken.tar")
            return Attack(place.own("export", "bundle", place.input / "taken.tar"))
    return Attack(("--ledger", str(target), "import", str(file)))


KINDS: dict[str, Maker] = {
    **{kind: _changed(kind) for kind in bundle_attacks.KINDS},
    "no-file": no_file,
    "missing-blob": missing_blob,
    "words": words,
    "in-the-way": in_the_way,
}
