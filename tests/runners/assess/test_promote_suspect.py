"""`evidence promote` weighs nothing that root took back."""

from __future__ import annotations

import pytest
import samples
from world import Draft, World, key

from ledger.errors import UsageError
from runners.assess.promote import comparisons_of, promote


class Judged(World):
    """A world in which what is transcribed is the newest checkpoint."""

    def draft(self, kind: str) -> Draft:
        """The kind's valid draft, an arm's of the checkpoint."""
        made = super().draft(kind)
        if kind == "arm.transcribed":
            del made.refs["model"]
            made.refs["checkpoint"] = self.need("checkpoint.published").id
        return made


def compared() -> tuple[World, str]:
    """A world whose checkpoint was compared, and the checkpoint's id."""
    world = Judged()
    checkpoint = world.need("checkpoint.published")
    world.add("comparison.made")
    return world, checkpoint.id


@pytest.mark.parametrize("kind", ["checkpoint.published", "plan.prepared", "comparison.made"])
def test_a_checkpoint_on_suspect_evidence_is_not_weighed(folder, kind):
    """A suspect anywhere under the checkpoint or its comparison refuses the command, and nothing is recorded."""
    world, checkpoint_id = compared()
    world.enroll("judge", ["judge"])
    start = world.newest(kind).seq
    body = samples.body("key.revoked", key=key("writer").id, from_seq=start)
    world.admit(Draft("key.revoked", body, stater="root"))
    with world.replay(folder) as ledger:
        ledger._key = key("judge")
        checkpoint, size = ledger.get(checkpoint_id), ledger.size
        assert comparisons_of(ledger, checkpoint)
        with pytest.raises(UsageError) as caught:
            promote(ledger, checkpoint)
        assert (caught.value.code, caught.value.record) == ("EVIDENCE_SUSPECT", checkpoint_id)
        assert ledger.size == size
