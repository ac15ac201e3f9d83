"""Draws: nobody's choice, without putting back, and with the chance of escape that is printed."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from hashlib import sha256
from math import sqrt
from pathlib import Path

import pytest
from scipy.stats import hypergeom

from verifiers.judgement.draws import Stratum, draw, escape, escapes, taken

ROOTS = [sha256(f"root {number}".encode()).digest() for number in range(2000)]


def strata(cases: int = 64, share: str = "0.05", updates: int = 60, take: int = 3) -> list[Stratum]:
    """A seed's updates, and the cases of one arm."""
    names = tuple(f"case{number}" for number in range(cases))
    path = tuple(f"update{number}" for number in range(updates))
    return [
        Stratum("update", "checkpoint", path, take),
        Stratum("arm", "arm", names, taken(share, cases)),
    ]


def test_a_draw_follows_from_its_root_alone() -> None:
    """The same root hits the same targets, another root others; the first index is the documented formula."""
    once = draw(ROOTS[0], strata())
    assert once == draw(ROOTS[0], strata())
    assert once != draw(ROOTS[1], strata())
    number = int.from_bytes(sha256(ROOTS[0] + bytes(8)).digest())
    assert once[0].record == f"update{number % 60}"
    assert [item.index for item in once] == list(range(len(once)))


def test_a_draw_takes_whole_shares_without_putting_back() -> None:
    """Three updates, and 5 % of 64 cases rounded up, each once; more than there are takes all."""
    for root in ROOTS[:50]:
        found = draw(root, strata())
        assert Counter(item.role for item in found) == {"update": 3, "arm": 4}
        assert len({(item.record, item.case) for item in found}) == 7
        every = draw(root, strata(cases=2, updates=2))
        assert {item.record for item in every if item.role == "update"} == {"update0", "update1"}


def test_every_member_is_hit_as_often() -> None:
    """Over 2,000 roots each of 64 cases is hit about 125 times, within five standard deviations."""
    hits = Counter(item.case for root in ROOTS for item in draw(root, strata()) if item.case)
    expected = len(ROOTS) * 4 / 64
    assert len(hits) == 64
    assert all(abs(count - expected) < 5 * sqrt(expected) for count in hits.values())


@pytest.mark.parametrize("share", ["0.05", "0.1", "0.25", "0.5", "0.8"])
@pytest.mark.parametrize("demanded", ["0.05", "0.2"])
def test_a_forged_share_escapes_as_often_as_is_said(share: str, demanded: str) -> None:
    """Of 2,000 real draws those that meet no forged case are as many as the hypergeometric chance says, within 4 deviations."""
    made = strata(share=demanded)
    forged = {f"case{number}" for number in range(taken(share, 64))}
    chance = float(escape(64, len(forged), made[1].take))
    missed = sum(not forged & {item.case for item in draw(root, made)} for root in ROOTS)
    deviation = sqrt(max(chance * (1 - chance), 1 / len(ROOTS)) / len(ROOTS))
    assert abs(missed / len(ROOTS) - chance) < 4 * deviation


def test_the_chance_is_that_of_scipy() -> None:
    """The exact chance agrees with an independent implementation, and is 1 and 0 at its ends."""
    for members, forged, take in ((64, 4, 4), (64, 32, 4), (8, 1, 1), (60, 6, 3), (32, 30, 2)):
        theirs = hypergeom.pmf(0, members, forged, take)
        assert float(escape(members, forged, take)) == pytest.approx(theirs, rel=1e-12)
    assert escape(64, 0, 4) == 1
    assert escape(64, 61, 4) == 0


def test_what_is_printed_names_the_weakest_place_and_all_places() -> None:
    """One place is the one where a forgery escapes most easily; all forged alike escape only together."""
    small = Stratum("pass", "pass", tuple("abcdefgh"), 1)
    found = escapes([*strata(), small], ["0.25", "1.0"])
    chances = [escape(60, 15, 3), escape(64, 16, 4), escape(8, 2, 1)]
    assert found[0].one == max(chances) == Fraction(3, 4)
    assert found[0].every == chances[0] * chances[1] * chances[2]
    assert (found[1].one, found[1].every) == (0, 0)


def test_the_page_prints_what_is_computed() -> None:
    """The figures of docs/spec/reruns.md are those of a draw of four from 64."""
    page = (Path(__file__).parents[3] / "docs/spec/reruns.md").read_text(encoding="utf-8")
    (row,) = [line for line in page.splitlines() if line.startswith("| escapes in one arm")]
    told = [cell.strip() for cell in row.split("|")[2:-1]]
    shares = ("0.01", "0.05", "0.1", "0.25", "0.5", "1.0")
    chances = [escape(64, taken(share, 64), taken("0.05", 64)) for share in shares]
    assert told == [f"{float(chance):.3f}" for chance in chances]


def test_a_share_is_taken_exactly() -> None:
    """5 % of 20 is one case and not two: the share is read as the decimal that was declared."""
    assert [taken("0.05", members) for members in (0, 1, 20, 21, 40)] == [0, 1, 1, 2, 2]
