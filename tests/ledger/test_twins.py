"""Which plans are equal: the settings digest follows what a plan will do, however it is written down."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import samples
from world import World

from ledger import canonical
from ledger.digests import sha256
from ledger.twins import descended_digest, fresh_digest

SETTINGS = {"learning_rate": "0.001", "steps": 4, "lora_targets": ["q_proj"], "packing": False}
SPLIT, TREE = samples.digest("a split"), samples.digest("a tree")
CHECKPOINT = samples.digest("a checkpoint")


def digest(settings=None, *, method="sft", split=SPLIT, tree=TREE, reward=None) -> str:
    """The digest of the plan with something changed."""
    return fresh_digest(method, {**SETTINGS, **(settings or {})}, split, tree, reward)


PLAIN = digest()


def test_the_digest_is_over_four_named_things():
    """What the specification writes out is what the function hashes, so any program can derive it."""
    twin = {"method": "sft", "settings": SETTINGS, "split": SPLIT, "model": TREE}
    assert sha256(canonical.encode(twin)) == PLAIN
    rewarded = {**twin, "reward": TREE}
    assert sha256(canonical.encode(rewarded)) == digest(reward=TREE)
    child = {"of": PLAIN, "start": "exact", "parent": CHECKPOINT}
    assert sha256(canonical.encode(child)) == descended_digest(PLAIN, "exact", CHECKPOINT)


def test_the_order_of_the_names_does_not_matter():
    """The same settings written backwards are the same settings."""
    backwards = dict(reversed(SETTINGS.items()))
    assert list(backwards) != list(SETTINGS)
    assert fresh_digest("sft", backwards, SPLIT, TREE) == PLAIN


DIFFERENT: dict[str, Callable[[], str]] = {
    "a number": lambda: digest({"steps": 5}),
    "a real number": lambda: digest({"learning_rate": "0.002"}),
    "a list": lambda: digest({"lora_targets": ["v_proj"]}),
    "a switch": lambda: digest({"packing": True}),
    "a switch that is a number": lambda: digest({"packing": 0}),
    "a setting more": lambda: digest({"save_steps": 0}),
    "the method": lambda: digest(method="rl"),
    "the split": lambda: digest(split=TREE),
    "the model": lambda: digest(tree=SPLIT),
    "a reward": lambda: digest(reward=SPLIT),
    "weights of a parent": lambda: descended_digest(PLAIN, "weights", CHECKPOINT),
    "a parent, exactly": lambda: descended_digest(PLAIN, "exact", CHECKPOINT),
    "another parent": lambda: descended_digest(PLAIN, "exact", SPLIT),
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_one_difference_is_another_digest(name):
    """Whatever decides what a run does changes the digest, and no two of the changes give the same one."""
    digests = {PLAIN, *(make() for make in DIFFERENT.values())}
    assert DIFFERENT[name]() != PLAIN
    assert len(digests) == 1 + len(DIFFERENT)


def test_the_same_model_registered_twice_is_the_same_model():
    """The tree counts, not the record: registering again makes no other plan of an equal one."""
    world = World()
    first = world.add("plan.prepared")
    draft = world.draft("plan.prepared")
    draft.refs["model"] = world.add("model.registered").id
    draft.body["settings"] = first.body["settings"]
    second = world.admit(draft)
    assert second.ref("model") != first.ref("model")
    assert second.body["settings_digest"] == first.body["settings_digest"]
