"""Updates of a script's own run are not done again, and that is said."""

from __future__ import annotations

import pytest
from world import World

from ledger.book import Ledger
from ledger.errors import UsageError
from runners.train.reexecute import reexecute


def test_a_script_s_own_updates_are_refused_by_name(tmp_path):
    """Re-execution of a run whose plan is of an adopted trainer ends in one error that says why."""
    world = World()
    plan = world.draft("plan.prepared")
    plan.body = {**plan.body, "settings": {**plan.body["settings"], "trainer": "SFTTrainer"}}
    world.admit(plan)
    update = world.add("update.acknowledged")
    world.write(tmp_path / "ledger")
    with Ledger.read(tmp_path / "ledger") as ledger:
        found = ledger.get(update.id)
        with pytest.raises(UsageError) as caught:
            reexecute(ledger, [found], tmp_path, tmp_path)
    assert caught.value.code == "REEXECUTION_FAILED"
    assert "script" in caught.value.message
