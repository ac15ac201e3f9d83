"""The dossier in a headless Chromium: silent, without a request, and readable at 360 and at 1440 pixels."""

from __future__ import annotations

from pathlib import Path

import browser
import pytest
from study_data import Answers, failing
from study_world import StudyWorld

from ledger.book import Ledger
from runners.assess.account import account_of
from runners.assess.dossier.page import build
from runners.cli.dossier import _picture

PROGRAM = browser.find()
WIDTHS = (360, 1440)
READABLE_PX = 10.0
pytestmark = pytest.mark.skipif(
    PROGRAM is None, reason="no Chromium is installed: apt-get install -y chromium"
)
LOST = Answers(frozenset({25}), forbidden=frozenset({13}), cut=frozenset({14}))


@pytest.fixture(scope="module")
def window(tmp_path_factory):
    """One browser for all."""
    assert PROGRAM is not None
    with browser.browser(PROGRAM, tmp_path_factory.mktemp("profile")) as running:
        yield running


def granted() -> StudyWorld:
    """A study to its grant, with a long word as the scope."""
    made = StudyWorld()
    gate = made.gate(made.here())
    made.grant(
        gate, made.approve(gate), scope="<img src=http://x.test/a onerror=alert(1)>" + "x" * 400
    )
    return made


def failed() -> StudyWorld:
    """A study whose gate failed."""
    made = StudyWorld(baseline_answers=failing(3), tested_answers=LOST)
    made.gate(made.here())
    return made


@pytest.fixture(scope="module", params=[granted, failed])
def page(request, tmp_path_factory) -> Path:
    """A dossier of each."""
    folder = tmp_path_factory.mktemp(request.param.__name__)
    made = request.param()
    made.world.replay(folder / "ledger").close()
    with Ledger.read(folder / "ledger") as ledger:
        account = account_of(ledger, ledger.of_kind("gate.decided")[-1])
        picture = _picture(ledger, ledger.get(account["about"]["checkpoint"]))
    out = folder / "dossier.html"
    out.write_text(build(account, picture))
    return out


@pytest.mark.parametrize("width", WIDTHS)
def test_a_dossier_is_silent_and_fits(window, page, width) -> None:
    """Nothing is logged, nothing but the file itself is asked for, nothing stands out of the window, no text is tiny."""
    seen = window.visit(page, width)
    assert seen.logged == []
    assert seen.requests == [page.as_uri()]
    assert seen.page_width <= width
    assert seen.too_wide == []
    assert seen.smallest_text >= READABLE_PX
    assert seen.picture.startswith(b"\x89PNG")
    page.with_name(f"{width}.png").write_bytes(seen.picture)  # for whoever wants to look


LOUD = {
    "a script that logs": "<script>console.error('x')</script>",
    "a script that fails": "<script>nowhere()</script>",
    "an image elsewhere": "<img src='http://x.test/a.png'>",
    "a wide box": "<div style='width:5000px'>x</div>",
    "tiny text": "<p style='font-size:4px'>x</p>",
}


@pytest.mark.parametrize("name", LOUD)
def test_a_bad_page_is_noticed(window, tmp_path, name) -> None:
    """A page that logs, fails, fetches, is too wide or too small is noticed by the very same look."""
    file = tmp_path / "bad.html"
    file.write_text(f"<!DOCTYPE html><html><body><p>x</p>{LOUD[name]}</body></html>")
    seen = window.visit(file, 360)
    noticed = (
        seen.logged
        or seen.requests != [file.as_uri()]
        or seen.too_wide
        or seen.smallest_text < READABLE_PX
    )
    assert noticed


def test_the_policy_stops_what_got_past_the_escaping(window, page, tmp_path) -> None:
    """Markup put into a finished page runs nothing, fetches nothing and restyles nothing."""
    put = "<script>document.title='run'</script><img src='http://x.test/a'><style>p,td{font-size:1px}</style></main>"
    file = tmp_path / "spoiled.html"
    file.write_text(page.read_text().replace("</main>", put))
    seen = window.visit(file, 360)
    assert seen.requests == [file.as_uri()]
    assert len(seen.logged) == 3
    assert seen.smallest_text >= READABLE_PX
