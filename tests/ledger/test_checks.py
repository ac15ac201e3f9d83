"""The rules beyond refs (docs/spec/rules.md): each has a case that it refuses and one that it lets by."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import pytest
import samples
from descent import (
    begun,
    continued,
    end,
    from_weights,
    heir_launched,
    incomplete,
    launch,
    like_another,
    of_preferences,
    plan,
    publish,
    redone_otherwise,
    resumed_after_heir,
    resumed_incomplete,
    resumed_superseded,
    resumed_without_files,
    resumption,
    unloaded,
    unnamed_redo,
    without_files,
)
from several import by_two, other_hardware, ranks_of_one, two_ranks  # noqa: F401 - looked up by name
from world import DRAFTS, Draft, World, enrolment, key

from ledger import canonical
from ledger.checks import CHECKS
from ledger.checks.identity import rotation_message
from ledger.errors import EvidenceError
from ledger.twins import fresh_digest

WEAK = "01" + "00" * 31
"""The neutral point: any message verifies under it."""
NOT_A_POINT = "02" + "00" * 31


class Refusal(NamedTuple):
    """A rule, what is done to a good draft, and the code that must come of it."""

    rule: str
    name: str
    kind: str
    spoil: Callable[[World, Draft], None]
    code: str


def bodied(**changes) -> Callable[[World, Draft], None]:
    """Spoil fields of the body."""
    return lambda _, draft: draft.body.update(changes)


def nested(field: str, **changes) -> Callable[[World, Draft], None]:
    """Spoil fields of an object in the body."""
    return lambda _, draft: draft.body[field].update(changes)


def without(role: str) -> Callable[[World, Draft], None]:
    """Take a ref away."""

    def spoil(_: World, draft: Draft) -> None:
        del draft.refs[role]

    return spoil


def refer(role: str, make: Callable[[World], object]) -> Callable[[World, Draft], None]:
    """Put another record, or a list of them, under a role."""

    def spoil(world: World, draft: Draft) -> None:
        made = make(world)
        draft.refs[role] = [item.id for item in made] if isinstance(made, list) else made.id

    return spoil


def enrolling(name: str, **changes) -> Callable[[World, Draft], None]:
    """Enrol the key of a name with changes."""
    return lambda world, draft: draft.body.update({**enrolment(world, name, ["ingest"]), **changes})


def future_seq(world: World, draft: Draft) -> None:
    """Let the revocation begin after itself."""
    draft.body["from_seq"] = world.chain.size + 1


def revoke_twice(world: World, draft: Draft) -> None:
    """Revoke the key before the draft does, from as early a seq."""
    world.add("key.revoked", key=draft.body["key"], from_seq=draft.body["from_seq"])


def rotate_to_enrolled(world: World, draft: Draft) -> None:
    """Hand root over to the writer's key, well signed."""
    writer = key("writer")
    message = rotation_message(world.chain.state.ledger_id, key("root").id, writer.id, world.seen())
    draft.body.update(
        new_key=writer.id, new_public=writer.public.hex(), acceptance=writer.sign(message).hex()
    )


def rotation_elsewhere(world: World, draft: Draft) -> None:
    """Use an acceptance that the new key signed for another ledger of the same name."""
    new = key("root-after-rotation")
    message = rotation_message(samples.digest("x"), key("root").id, new.id, world.seen())
    draft.body["acceptance"] = new.sign(message).hex()


def rotation_replayed(world: World, _: Draft) -> None:
    """Let another history grow under an acceptance: the draft's was made for the head before."""
    world.add("note.added")


def withheld_elsewhere(_: World, draft: Draft) -> None:
    """Withhold a blob that the record does not name."""
    draft.body["digest"] = samples.digest("no blob of it")


def older_state(world: World, draft: Draft) -> None:
    """Let a statement come between the snapshot's state and its record."""
    draft.body.update(DRAFTS["snapshot.recorded"](world).body)
    world.add("policy.declared")
    draft.body["tree"] = [item.hex() for item in world.chain.tree.to_hashes()]


def older_tree(world: World, draft: Draft) -> None:
    """Take the compact range of another head."""
    old = draft.body["tree"]
    draft.body.update(DRAFTS["snapshot.recorded"](world).body)
    draft.body["tree"] = [*old, samples.ZERO]


def rewarded(world: World, draft: Draft, **settings: object) -> None:
    """Turn the plan into a reinforcement plan that is in order but for the settings given."""
    draft.body["method"] = "rl"
    good = {"lora_dropout": "0.0", "reference": "adapter_off", "kl_coefficient": "0.05"}
    draft.body["settings"] = {**good, **settings}
    draft.refs["reward"] = world.need("reward.audited").id


def reinforcement(**settings: object) -> Callable[[World, Draft], None]:
    """A reinforcement plan with one setting spoiled."""
    return lambda world, draft: rewarded(world, draft, **settings)


def unrewarded(world: World, draft: Draft) -> None:
    """A reinforcement plan without a reward."""
    rewarded(world, draft)
    del draft.refs["reward"]


def inverted(world: World, draft: Draft) -> None:
    """A reinforcement plan whose reward's audit found an inversion."""
    rewarded(world, draft)
    draft.refs["reward"] = world.add("reward.audited", inversions=1).id


def found_something(world: World, draft: Draft) -> None:
    """An audit with findings that nobody accepted."""
    draft.refs["audit"] = world.add("leakage.audited", verdict="findings").id


def accepted_elsewhere(world: World, draft: Draft) -> None:
    """An audit with findings beside the acceptance of an earlier audit."""
    draft.refs["acceptance"] = world.need("leakage.accepted").id
    found_something(world, draft)


def twin_live(world: World, draft: Draft) -> None:
    """Launch a plan with the same settings first."""
    launched = world.need("run.launched")
    plan = world.by_id[str(launched.ref("plan"))]
    draft.body["settings"] = plan.body["settings"]


def twin_prepared_before(world: World, draft: Draft) -> None:
    """Prepare two plans with the same settings, launch one and then try the other."""
    first = world.add("plan.prepared")
    second = world.add("plan.prepared", settings=first.body["settings"])
    world.admit(Draft("run.launched", samples.body("run.launched"), {"plan": second.id}))
    draft.refs["plan"] = first.id


def digest_of_another(world: World, draft: Draft) -> None:
    """Take the digest of a plan with other settings: a live run's twin would pass for something else."""
    draft.body["settings_digest"] = world.add("plan.prepared").body["settings_digest"]


def digest_as_if_fresh(world: World, draft: Draft) -> None:
    """Begin from a checkpoint's weights under the digest of a fresh start."""
    draft.refs["parent"] = world.need("checkpoint.published").id
    tree = world.by_id[str(draft.refs["model"])].body["tree"]
    fresh = fresh_digest("sft", draft.body["settings"], str(draft.refs["split"]), tree)
    draft.body.update(start="weights", settings_digest=fresh)


def digest_of_another_reward(world: World, draft: Draft) -> None:
    """A reinforcement plan under the digest of one whose reward has other code."""
    rewarded(world, draft)
    tree = world.by_id[str(draft.refs["model"])].body["tree"]
    draft.body["settings_digest"] = fresh_digest(
        "rl", draft.body["settings"], str(draft.refs["split"]), tree, samples.digest("other code")
    )


def launched_before(world: World, draft: Draft) -> None:
    """Launch the plan, end its run, and launch it again."""
    draft.refs["plan"] = str(world.need("run.launched").ref("plan"))
    world.need("run.ended")


def completed(world: World) -> str:
    """Id of a run that was completed."""
    launched, _ = world.live_run()
    for _ in range(2):
        world.add("update.acknowledged")
    world.add("run.ended", outcome="completed")
    return launched.id


def resume_completed(world: World, draft: Draft) -> None:
    """Resume a run that reached its end."""
    world.add("run.launched")
    draft.refs["run"] = completed(world)


def resume_live(world: World, draft: Draft) -> None:
    """Resume a run that nobody ended."""
    draft.refs["run"] = world.add("run.launched").id


def other_checkpoint(world: World, draft: Draft) -> None:
    """Resume from another run's checkpoint."""
    world.add("run.launched")
    draft.refs["checkpoint"] = world.add("checkpoint.published").id
    draft.body["from_update"] = 1


def after_end(world: World, draft: Draft) -> None:
    """End the run before the draft belongs to it."""
    world.add("run.ended")
    assert draft.refs["run"] == world.newest("run.ended").refs["run"]


def forget_update(world: World, draft: Draft) -> None:
    """End a run without naming its newest update."""
    world.add("update.acknowledged")
    draft.body["counters"].update(datums=2, updates=1)


def complete_short(world: World, draft: Draft) -> None:
    """Call a run completed that acknowledged one update of two."""
    world.add("update.acknowledged")
    draft.body.update(DRAFTS["run.ended"](world).body, outcome="completed")
    draft.refs.update(DRAFTS["run.ended"](world).refs)


def completed_without(name: str) -> Callable[[World, Draft], None]:
    """Leave out the checkpoint or the weights of a completed run."""

    def spoil(world: World, draft: Draft) -> None:
        whole_budget(world, draft)
        (draft.refs if name in draft.refs else draft.body).pop(name)

    return spoil


def completed_by_an_earlier(world: World, draft: Draft) -> None:
    """Name the checkpoint of the update before the last."""
    world.add("update.acknowledged")
    earlier = world.add("checkpoint.published")
    world.add("update.acknowledged")
    made = DRAFTS["run.ended"](world)
    draft.body.update(made.body, outcome="completed")
    draft.refs.update(made.refs, checkpoint=earlier.id)


def completed_with_others(world: World, draft: Draft) -> None:
    """Bind the weights of the update before the last."""
    whole_budget(world, draft)
    draft.body["weights"] = samples.weights_left(1)


def loaded_late(world: World, draft: Draft) -> None:
    """Say after an update that the weights were loaded from which the run began."""
    run = begun(world)
    parent = publish(world, run)
    end(world, run)
    heir = launch(world, from_weights(world, parent))
    made = DRAFTS["batch.built"](world)
    batch = world.admit(made)
    states = {"before": samples.weights(1), "after": samples.weights(2)}
    body = samples.body("update.acknowledged", **states)
    world.admit(Draft("update.acknowledged", body, {"run": heir.id, "batch": [batch.id]}))
    draft.body["mode"] = "weights"
    draft.refs.update(run=heir.id, checkpoint=parent.id)


def begun_again(world: World, draft: Draft) -> None:
    """Resume an heir from where it began and feed a batch before the parent's checkpoint was loaded again."""
    run = begun(world)
    parent = publish(world, run)
    end(world, run)
    heir = launch(world, plan(world, parent))
    end(world, heir)
    world.admit(resumption(heir, None, from_update=1))
    draft.body["step"] = 2
    draft.refs.update(run=heir.id, split=world.chain.state.runs[heir.id].split)


def otherwise_written(field: str, *, hosted: bool = False) -> Callable[[World, Draft], None]:
    """Keep a state's value and write it as a provider's."""

    def spoil(_: World, draft: Draft) -> None:
        draft.body[field] = {**draft.body[field], "scheme": "provider_policy"}
        if hosted:
            draft.body["hosted"] = "a provider"

    return spoil


def second_written(world: World, draft: Draft) -> None:
    """Let the second update begin at the state's value under another scheme."""
    second_update(world, draft)
    for field in ("before", "after"):
        otherwise_written(field)(world, draft)


def completed_written(world: World, draft: Draft) -> None:
    """Bind the right value under another scheme."""
    whole_budget(world, draft)
    state = draft.body["weights"]["state"]
    draft.body["weights"] = {
        **draft.body["weights"],
        "state": {**state, "scheme": "provider_policy"},
    }


def sampled_written(world: World, draft: Draft) -> None:
    """Sample by the newest state's value under another scheme."""
    world.add("update.acknowledged")
    draft.body.update(DRAFTS["rollout.group"](world).body)
    otherwise_written("state")(world, draft)


def stale_policy(world: World, draft: Draft) -> None:
    """Sample a group by the weights from before the newest update."""
    world.add("update.acknowledged")


def second_run_batch(world: World, draft: Draft) -> None:
    """Feed a batch that another run built."""
    world.add("run.launched")
    draft.refs["batch"] = [world.add("batch.built").id]


def second_run_group(world: World, draft: Draft) -> None:
    """Build a batch of another run's group."""
    del draft.refs["split"]
    world.add("run.launched")
    draft.refs["group"] = [world.add("rollout.group").id]


def acknowledged_before(world: World, draft: Draft) -> None:
    """Feed a batch that an update has used."""
    world.add("update.acknowledged")
    used = draft.refs["batch"]
    draft.body.update(DRAFTS["update.acknowledged"](world).body)
    draft.refs.update(DRAFTS["update.acknowledged"](world).refs, batch=used)


def leftover(world: World, draft: Draft) -> None:
    """Feed the second update a batch that was built for the first and not used."""
    unused = world.add("batch.built")
    second_update(world, draft)
    draft.refs["batch"] = [unused.id]


def spent(world: World, draft: Draft) -> None:
    """Acknowledge one update more than the budget."""
    for _ in range(2):
        world.add("update.acknowledged")
    made = DRAFTS["update.acknowledged"](world)
    draft.body.update(made.body)
    draft.refs.clear()
    draft.refs.update(made.refs)


def second_update(world: World, draft: Draft) -> None:
    """Make the draft the second update of its run, in order."""
    world.add("update.acknowledged")
    made = DRAFTS["update.acknowledged"](world)
    draft.body.update(made.body)
    draft.refs.update(made.refs)


def not_continued(world: World, draft: Draft) -> None:
    """Leave out the update before."""
    second_update(world, draft)
    del draft.refs["previous"]


def broken_state(world: World, draft: Draft) -> None:
    """Begin from other weights than the update before ended with."""
    second_update(world, draft)
    draft.body["before"] = samples.weights(7)


def redone(world: World, draft: Draft, **batch: object) -> None:
    """Make the draft redo step 1 after the run was resumed from its start."""
    first = world.add("update.acknowledged")
    run = world.live_run()[0]
    world.add("run.ended")
    world.admit(Draft("run.resumed", samples.body("run.resumed"), {"run": run.id}))
    rebuilt = world.add("batch.built", **batch)
    made = DRAFTS["update.acknowledged"](world)
    draft.body.update(made.body)
    draft.refs.clear()
    draft.refs.update(made.refs, batch=[rebuilt.id], replays=first.id)


def replay_of_other(world: World, draft: Draft) -> None:
    """Say that the second update redoes the first."""
    second_update(world, draft)
    draft.refs["replays"] = draft.refs["previous"]


def replay_with_other_batch(world: World, draft: Draft) -> None:
    """Redo a step on rows that the superseded one did not read."""
    redone(world, draft, digest=samples.digest("other rows"))


def not_newest(world: World, draft: Draft) -> None:
    """Publish the weights of an update that another one followed."""
    world.add("update.acknowledged")


def unjudged(world: World, draft: Draft) -> None:
    """Keep the judging and take the judge away."""
    del draft.refs["judge"]


def dialogues_unjudged(world: World, draft: Draft) -> None:
    """Put dialogues into a protocol that has no judge at all."""
    del draft.refs["judge"]
    draft.body.update(judging=None, passes=[], case_kinds={"desk": 1, "dialogue": 1})


def under_test(world: World, draft: Draft) -> None:
    """Transcribe a test protocol without a review."""
    draft.refs["protocol"] = world.add("protocol.registered", role="test").id


def reviewed_elsewhere(world: World, draft: Draft) -> None:
    """Transcribe a test protocol under the review of another one."""
    draft.refs["review"] = world.need("test.reviewed").id
    under_test(world, draft)


def read_by_a_stranger(world: World, draft: Draft) -> None:
    """Let a model that nobody nominated read a test."""
    review = world.need("test.reviewed")
    draft.refs.update(protocol=str(review.ref("protocol")), review=review.id)
    draft.body["cases"] = sum(world.by_id[draft.refs["protocol"]].body["case_kinds"].values())
    draft.refs["model"] = world.add("model.registered").id


def qualify(world: World, draft: Draft, **changes: object) -> None:
    """Claim a qualification and name the newest one."""
    draft.refs["qualification"] = world.add("judge.qualified", **changes).id
    draft.body["qualified"] = True


def failed_qualification(world: World, draft: Draft) -> None:
    """Name a qualification that was not reached."""
    qualify(world, draft, qualified=False, reasons=["position"])


def asked_otherwise(world: World, draft: Draft) -> None:
    """Name a qualification of the same judge, asked in another way."""
    qualify(world, draft, asked="likelihood")


def other_weights(world: World, draft: Draft) -> None:
    """Name a qualification that other weights of the judge's name reached."""
    qualify(world, draft, judge_weights=samples.digest("other weights"))


def floor_raised(world: World, draft: Draft) -> None:
    """Name a qualification by a floor that the policy in force no longer accepts."""
    qualify(world, draft)
    world.add("policy.declared", judge_accuracy="0.9")


def floor_of_its_own(world: World, draft: Draft) -> None:
    """Hold a judge against less than the policy demands."""
    draft.body.update(floor="0.5")


def below_the_floor(world: World, draft: Draft) -> None:
    """Say that a judge fell short."""
    draft.body.update(lower="0.7", reasons=["accuracy"], qualified=False)


def other_judge(world: World, draft: Draft) -> None:
    """Name another model's qualification."""
    world.add("model.registered")
    made = world.draft("judge.qualified")
    made.refs["model"] = world.newest("model.registered").id
    draft.refs["qualification"] = world.admit(made).id
    draft.body["qualified"] = True


def other_protocol(world: World, draft: Draft) -> None:
    """Name a second protocol where the arms and passes are of the first."""
    draft.refs["protocol"] = world.add("protocol.registered").id


def one_pass_twice(world: World, draft: Draft) -> None:
    """Two arms; the first is judged forwards twice and once backwards, the second only backwards."""
    first = draft.refs["arm"][0]
    second = world.add("arm.transcribed").id
    protocol = draft.refs["protocol"]

    def judged(arm: str, order: str, undecided: int) -> str:
        body = samples.body("judge.passed", order=order, undecided=undecided)
        return world.admit(Draft("judge.passed", body, {"protocol": protocol, "arm": arm})).id

    draft.refs["arm"] = [first, second]
    draft.refs["pass"] = [
        *draft.refs["pass"],
        judged(first, "forward", 1),
        judged(first, "reversed", 1),
    ]


def one_order(_: World, draft: Draft) -> None:
    """Leave the reversed order out."""
    draft.refs["pass"] = draft.refs["pass"][:1]


def candidate_of_other_protocol(world: World, draft: Draft) -> None:
    """Compare evaluations of two protocols."""
    world.add("protocol.registered")
    other = world.add("evaluation.completed")
    draft.refs["evaluation"] = [other.id]
    draft.body["candidates"][0]["evaluation"] = other.id


def baseline_among_candidates(_: World, draft: Draft) -> None:
    """Compare the baseline with itself."""
    draft.refs["evaluation"] = [draft.refs["baseline"]]
    draft.body["candidates"][0]["evaluation"] = draft.refs["baseline"]


def gate_failed(world: World, draft: Draft) -> None:
    """Let the gate say no, with approvals of that gate."""
    line = {**samples.body("gate.decided")["gates"][0], "passed": False}
    gate = world.add("gate.decided", gates=[line], passed=False)
    draft.refs["gate"] = gate.id
    draft.refs["approval"] = [world.add("promotion.approved").id]


def other_nomination(world: World, draft: Draft) -> None:
    """Name a nomination that the gate did not decide."""
    draft.refs["nomination"] = world.add("candidate.nominated").id


def other_checkpoint_granted(world: World, draft: Draft) -> None:
    """Promote a checkpoint that was not chosen."""
    world.add("update.acknowledged")
    draft.refs["checkpoint"] = world.add("checkpoint.published").id


def approvals_by(world: World, draft: Draft, *names: str) -> None:
    """Ask for two reviewers and have the gate approved by those named."""
    world.add("policy.declared", reviewers=2)
    gate = world.add("gate.decided")
    draft.refs.update(gate=gate.id, nomination=str(gate.ref("nomination")))
    refs = {"gate": gate.id, "checkpoint": draft.refs["checkpoint"]}
    made = []
    for name in names:
        body = samples.body("promotion.approved", reviewer=key(name).id, why=world.fresh())
        made.append(world.admit(Draft("promotion.approved", body, refs, stater=name)).id)
    draft.refs["approval"] = made


def policy_since_the_gate(world: World, draft: Draft) -> None:
    """Declare another policy after the gate was decided by the one before."""
    world.add("policy.declared", alpha="0.01")


def approved_by_one_twice(world: World, draft: Draft) -> None:
    """Count one reviewer for two."""
    approvals_by(world, draft, "reviewer", "reviewer")


def approval_of_other_gate(world: World, draft: Draft) -> None:
    """Take an approval that was given to another gate."""
    world.add("gate.decided")
    draft.refs["approval"] = [world.add("promotion.approved").id]


def kept_elsewhere(world: World, draft: Draft) -> None:
    """Promote a folder of which no tensor was ever compared with a state, through every step before."""
    hosted(world, draft, None)


def hosted(world: World, draft: Draft, by: str | None = "a provider") -> None:
    """Promote a checkpoint that a provider holds, through every step before."""
    world.add("run.ended")
    world.add("run.launched")
    before, after = ({"scheme": "provider_policy", "value": f"policy-{step}"} for step in (0, 1))
    world.add("update.acknowledged", before=before, after=after)
    world.add("checkpoint.published", state=after, hosted=by)
    world.add("candidate.nominated")
    world.add("gate.decided")
    world.add("promotion.approved")
    draft.refs.update(DRAFTS["promotion.granted"](world).refs)


def policy_left_out(world, _draft):
    """Declare a policy that the refusal does not name."""
    world.add("policy.declared")


def older_policy(world, draft):
    """Name a policy that another one has replaced."""
    draft.refs["policy"] = world.add("policy.declared").id
    world.add("policy.declared", seeds=9)


def on_suspect_evidence(world: World, draft: Draft) -> None:
    """Take the writer's key back from the checkpoint on, and let another judge write the draft."""
    world.enroll("writer2", ["judge"])
    start = world.need("checkpoint.published").seq
    body = samples.body("key.revoked", key=key("writer").id, from_seq=start)
    world.admit(Draft("key.revoked", body, stater="root"))
    draft.writer = "writer2"


def seeded(*seeds: int) -> Callable[[World, Draft], None]:
    """Plan other seeds."""
    return bodied(seeds=list(seeds))


def under_stricter_policy(world: World, draft: Draft) -> None:
    """Declare that more seeds are needed than the study plans."""
    world.add("policy.declared", seeds=9)


def measured(rate: str) -> Callable[[World, Draft], None]:
    """Name the baseline's own evaluation and state a rate."""

    def spoil(world: World, draft: Draft) -> None:
        evaluation = world.need("evaluation.completed")
        arm = world.by_id[evaluation.ref_list("arm")[0]]
        draft.refs |= {"evaluation": evaluation.id, "baseline": str(arm.ref("model"))}
        draft.body["baseline_rate"] = rate

    return spoil


def measured_elsewhere(world: World, draft: Draft) -> None:
    """State the rate of another model's evaluation."""
    measured(right_share(world))(world, draft)
    draft.refs["baseline"] = world.add("model.registered").id


def undecided_baseline(world: World, draft: Draft) -> None:
    """Name an evaluation that decided no case."""
    made = world.draft("evaluation.completed")
    made.body.update(success=0, failure=0, undecided=made.body["cases"])
    world.admit(made)
    measured("0.0")(world, draft)


def right_share(world: World) -> str:
    """The share of right answers of the sample evaluation."""
    body = world.need("evaluation.completed").body
    return canonical.real(body["success"] / (body["success"] + body["failure"]))


def of_study(
    seed: int | None = 3,
    rate: str | None = None,
    *,
    split: bool = False,
    named: int | None = None,
) -> Callable[[World, Draft], None]:
    """Make the plan a study's, with a seed, a learning rate or a split of its own."""

    def spoil(world: World, draft: Draft) -> None:
        study = world.need("study.registered")
        draft.refs["study"] = study.id
        draft.body["seeds"] = {} if seed is None else {"training": seed}
        draft.body["settings"] = {**draft.body["settings"], **study.body["settings"]}
        if named is not None:
            draft.body["settings"]["seed"] = named
        if rate is not None:
            draft.body["settings"]["learning_rate"] = rate
        if split:
            draft.refs["split"] = world.add("split.declared").id
            audit = Draft(
                "leakage.audited", samples.body("leakage.audited"), {"split": draft.refs["split"]}
            )
            draft.refs["audit"] = world.admit(audit).id

    return spoil


def seed_beside(named: object, told: int) -> Callable[[World, Draft], None]:
    """A seed in the settings, and one beside them."""

    def spoil(_: World, draft: Draft) -> None:
        draft.body["settings"] = {**draft.body["settings"], "seed": named}
        draft.body["seeds"] = {"training": told}

    return spoil


REFUSALS = [
    # keys, root, snapshots, restores
    Refusal("K1", "weak key", "key.enrolled", bodied(public_key=WEAK), "WEAK_KEY"),
    Refusal("K1", "no point", "key.enrolled", bodied(public_key=NOT_A_POINT), "KEY_MALFORMED"),
    Refusal("K1", "id of another", "key.enrolled", bodied(key=key("else").id), "KEY_ID_WRONG"),
    Refusal("K1", "twice", "key.enrolled", enrolling("writer"), "KEY_TWICE"),
    Refusal("K1", "root's own", "key.enrolled", enrolling("root"), "KEY_TWICE"),
    Refusal("K1", "back-dated", "key.enrolled", bodied(from_seq=0), "KEY_BACKDATED"),
    Refusal("K1", "role twice", "key.enrolled", bodied(roles=["seal", "seal"]), "KEY_ROLES"),
    Refusal("K1", "root role", "key.enrolled", bodied(roles=["root"]), "KEY_ROLES"),
    Refusal(
        "K1",
        "reviewer who trains",
        "key.enrolled",
        bodied(roles=["review", "train"]),
        "REVIEW_KEY_SHARED",
    ),
    Refusal(
        "K1",
        "auditor who judges",
        "key.enrolled",
        bodied(roles=["audit", "judge"]),
        "AUDIT_KEY_SHARED",
    ),
    Refusal(
        "K1",
        "auditor who trains",
        "key.enrolled",
        bodied(roles=["audit", "train"]),
        "AUDIT_KEY_SHARED",
    ),
    Refusal("K2", "stranger", "key.revoked", bodied(key=key("stranger").id), "KEY_UNKNOWN"),
    Refusal("K2", "twice", "key.revoked", revoke_twice, "KEY_UNKNOWN"),
    Refusal("K2", "root", "key.revoked", bodied(key=key("root").id), "KEY_ROLES"),
    Refusal("K2", "future", "key.revoked", future_seq, "KEY_BACKDATED"),
    Refusal("K3", "not the root", "root.rotated", bodied(old_key=key("writer").id), "ROOT_WRONG"),
    Refusal("K3", "weak key", "root.rotated", bodied(new_public=WEAK), "WEAK_KEY"),
    Refusal("K3", "other id", "root.rotated", bodied(new_key=key("else").id), "KEY_ID_WRONG"),
    Refusal("K3", "enrolled key", "root.rotated", rotate_to_enrolled, "KEY_TWICE"),
    Refusal("K3", "not accepted", "root.rotated", bodied(acceptance="0" * 128), "ROOT_WRONG"),
    Refusal("K3", "accepted elsewhere", "root.rotated", rotation_elsewhere, "ROOT_WRONG"),
    Refusal("K3", "acceptance replayed", "root.rotated", rotation_replayed, "ROOT_WRONG"),
    Refusal("K4", "older state", "snapshot.recorded", older_state, "SNAPSHOT_WRONG"),
    Refusal("K4", "older tree", "snapshot.recorded", older_tree, "SNAPSHOT_WRONG"),
    Refusal("K5", "elsewhere", "ledger.restored", bodied(lost_from=0), "RESTORE_WRONG"),
    Refusal("K6", "another's blob", "blob.withheld", withheld_elsewhere, "WITHHELD_OTHER"),
    Refusal("K5", "nothing lost", "ledger.restored", nested("high_water", size=1), "RESTORE_WRONG"),
    # plans
    Refusal(
        "P1",
        "audit of another split",
        "plan.prepared",
        refer("split", lambda world: world.add("split.declared", groups=5)),
        "AUDIT_OTHER_SPLIT",
    ),
    Refusal("P1", "findings", "plan.prepared", found_something, "LEAKAGE_NOT_ACCEPTED"),
    Refusal("P1", "other acceptance", "plan.prepared", accepted_elsewhere, "LEAKAGE_NOT_ACCEPTED"),
    Refusal("P2", "no reward", "plan.prepared", unrewarded, "REWARD_NOT_AUDITED"),
    Refusal("P2", "inverted reward", "plan.prepared", inverted, "REWARD_NOT_AUDITED"),
    Refusal("P2", "dropout", "plan.prepared", reinforcement(lora_dropout="0.1"), "RL_DROPOUT"),
    Refusal("P2", "reference", "plan.prepared", reinforcement(reference="none"), "RL_REFERENCE"),
    Refusal("P2", "no KL", "plan.prepared", reinforcement(kl_coefficient=None), "RL_KL"),
    Refusal("P2", "zero KL", "plan.prepared", reinforcement(kl_coefficient="0.0"), "RL_KL"),
    Refusal("P2", "KL no number", "plan.prepared", reinforcement(kl_coefficient="x"), "NOT_A_REAL"),
    Refusal("P3", "no parent", "plan.prepared", bodied(start="exact"), "PLAN_START"),
    Refusal(
        "P3",
        "fresh with a parent",
        "plan.prepared",
        refer("parent", lambda world: world.need("checkpoint.published")),
        "PLAN_START",
    ),
    Refusal("P3", "fork of nothing", "plan.prepared", bodied(fork=True), "PLAN_START"),
    Refusal("P4", "live twin", "plan.prepared", twin_live, "TWIN_UNCONFIRMED"),
    Refusal(
        "P8",
        "digest made up",
        "plan.prepared",
        bodied(settings_digest=samples.digest("x")),
        "SETTINGS_DIGEST_WRONG",
    ),
    Refusal(
        "P8",
        "digest of other settings",
        "plan.prepared",
        digest_of_another,
        "SETTINGS_DIGEST_WRONG",
    ),
    Refusal(
        "P8",
        "digest of a fresh start",
        "plan.prepared",
        digest_as_if_fresh,
        "SETTINGS_DIGEST_WRONG",
    ),
    Refusal(
        "P8",
        "digest of another reward",
        "plan.prepared",
        digest_of_another_reward,
        "SETTINGS_DIGEST_WRONG",
    ),
    Refusal("P5", "other model", "plan.prepared", continued(model=True), "PARENT_DIFFERS"),
    Refusal("P5", "other split", "plan.prepared", continued(split=True), "PARENT_DIFFERS"),
    Refusal("P5", "other settings", "plan.prepared", continued(settings={}), "PARENT_DIFFERS"),
    Refusal("P5", "other code", "plan.prepared", continued(code={}), "PARENT_DIFFERS"),
    Refusal("P5", "other libraries", "plan.prepared", continued(libraries={}), "PARENT_DIFFERS"),
    Refusal("P5", "other seeds", "plan.prepared", continued(seeds={}), "PARENT_DIFFERS"),
    Refusal("P5", "state not whole", "plan.prepared", incomplete, "STATE_INCOMPLETE"),
    Refusal("P5", "no files", "plan.prepared", without_files, "STATE_INCOMPLETE"),
    Refusal("P5", "more budget", "plan.prepared", continued(budget_updates=5), "BUDGET_EXCEEDED"),
    Refusal(
        "P5", "no budget left", "plan.prepared", continued(budget_updates=1), "BUDGET_EXCEEDED"
    ),
    Refusal("P6", "other settings", "plan.prepared", like_another(settings={}), "PARENT_DIFFERS"),
    Refusal("P6", "goes on too", "plan.prepared", like_another(parent=True), "PLAN_START"),
    Refusal("P7", "parent live", "plan.prepared", continued(ended=False), "RUN_STILL_OPEN"),
    Refusal("P7", "second heir", "plan.prepared", continued(heirs=1), "HEIR_EXISTS"),
    Refusal("P7", "parent complete", "plan.prepared", continued(spend=True), "BUDGET_EXCEEDED"),
    Refusal("P9", "other hardware", "plan.prepared", other_hardware, "WORLD_SIZE"),
    # runs
    Refusal("R1", "launched before", "run.launched", launched_before, "PLAN_LAUNCHED"),
    Refusal("R1", "live twin", "run.launched", twin_prepared_before, "TWIN_UNCONFIRMED"),
    Refusal("R1", "head ahead", "run.launched", nested("seen", size=10_000), "SEAL_AHEAD"),
    Refusal("R2", "live", "run.resumed", resume_live, "RUN_STILL_OPEN"),
    Refusal("R2", "completed", "run.resumed", resume_completed, "RUN_STILL_OPEN"),
    Refusal("R2", "other checkpoint", "run.resumed", other_checkpoint, "CHECKPOINT_OTHER_RUN"),
    Refusal("R2", "other step", "run.resumed", bodied(from_update=1), "UPDATE_OUT_OF_ORDER"),
    Refusal("R2", "superseded", "run.resumed", resumed_superseded, "CHECKPOINT_SUPERSEDED"),
    Refusal("R2", "state not whole", "run.resumed", resumed_incomplete, "STATE_INCOMPLETE"),
    Refusal("R2", "no files", "run.resumed", resumed_without_files, "STATE_INCOMPLETE"),
    Refusal("R2", "heir went on", "run.resumed", resumed_after_heir, "HEIR_EXISTS"),
    Refusal("R6", "second heir", "run.launched", heir_launched, "HEIR_EXISTS"),
    Refusal("R7", "elsewhere", "checkpoint.restored", not_newest, "CHECKPOINT_OTHER_UPDATE"),
    Refusal(
        "R7",
        "weights of no plan",
        "checkpoint.restored",
        bodied(mode="weights"),
        "CHECKPOINT_OTHER_UPDATE",
    ),
    Refusal("R7", "scheme", "checkpoint.restored", otherwise_written("state"), "STATE_BROKEN"),
    Refusal(
        "R7", "weights once more", "checkpoint.restored", loaded_late, "CHECKPOINT_OTHER_UPDATE"
    ),
    Refusal("R7", "state", "checkpoint.restored", bodied(state=samples.weights(7)), "STATE_BROKEN"),
    Refusal(
        "R7",
        "part",
        "checkpoint.restored",
        bodied(digests={"x": samples.digest("x")}),
        "STATE_DIFFERS",
    ),
    Refusal("R7", "no fork", "checkpoint.restored", bodied(fork=True), "PLAN_START"),
    Refusal("R3", "stop", "run.stop_requested", after_end, "RUN_NOT_OPEN"),
    Refusal("R5", "ended", "run.reconciled", after_end, "RUN_NOT_OPEN"),
    Refusal("R3", "group", "rollout.group", after_end, "RUN_NOT_OPEN"),
    Refusal("R3", "rejected group", "rollout.rejected", after_end, "RUN_NOT_OPEN"),
    Refusal("R3", "batch", "batch.built", after_end, "RUN_NOT_OPEN"),
    Refusal("R3", "update", "update.acknowledged", after_end, "RUN_NOT_OPEN"),
    Refusal("R3", "checkpoint", "checkpoint.published", after_end, "RUN_NOT_OPEN"),
    Refusal("R3", "end", "run.ended", after_end, "RUN_NOT_OPEN"),
    Refusal("R4", "groups", "run.ended", nested("counters", groups=1), "COUNTERS_WRONG"),
    Refusal("R4", "datums", "run.ended", nested("counters", datums=1), "COUNTERS_WRONG"),
    Refusal("R4", "updates", "run.ended", nested("counters", updates=1), "COUNTERS_WRONG"),
    Refusal("R4", "update left out", "run.ended", forget_update, "UPDATE_NOT_CONTINUED"),
    Refusal("R4", "short", "run.ended", complete_short, "SHORT_RUN"),
    Refusal("R4", "failure unnamed", "run.ended", bodied(outcome="failed"), "BODY_INVALID"),
    Refusal("R4", "failure of none", "run.ended", bodied(failure="refused"), "BODY_INVALID"),
    Refusal(
        "R8", "no checkpoint", "run.ended", completed_without("checkpoint"), "COMPLETION_UNBOUND"
    ),
    Refusal("R8", "no weights", "run.ended", completed_without("weights"), "COMPLETION_UNBOUND"),
    Refusal("R8", "earlier", "run.ended", completed_by_an_earlier, "COMPLETION_UNBOUND"),
    Refusal("R8", "scheme", "run.ended", completed_written, "COMPLETION_UNBOUND"),
    Refusal("R8", "other state", "run.ended", completed_with_others, "COMPLETION_UNBOUND"),
    Refusal("R9", "resumed", "batch.built", unloaded(), "STATE_NOT_RESTORED"),
    Refusal("R9", "heir", "batch.built", unloaded(launched=True), "STATE_NOT_RESTORED"),
    Refusal(
        "R9",
        "weights",
        "batch.built",
        unloaded(launched=True, start="weights"),
        "STATE_NOT_RESTORED",
    ),
    Refusal("R9", "begun again", "batch.built", begun_again, "STATE_NOT_RESTORED"),
    # learning
    Refusal("U1", "rewards", "rollout.group", bodied(rewards=["1.0"]), "GROUP_SIZE"),
    Refusal("U1", "advantages", "rollout.group", bodied(advantages=["1.0"]), "GROUP_SIZE"),
    Refusal("U1", "members", "rollout.group", bodied(members=3), "GROUP_SIZE"),
    Refusal("U1", "old policy", "rollout.group", stale_policy, "STATE_BROKEN"),
    Refusal(
        "U2",
        "other split",
        "batch.built",
        refer("split", lambda world: world.add("split.declared", groups=5)),
        "BATCH_OTHER_SPLIT",
    ),
    Refusal("U1", "scheme", "rollout.group", sampled_written, "STATE_BROKEN"),
    Refusal("U2", "other run", "batch.built", second_run_group, "BATCH_OTHER_RUN"),
    Refusal("U2", "other step", "batch.built", bodied(step=2), "UPDATE_OUT_OF_ORDER"),
    Refusal("U2", "no rows", "batch.built", bodied(rows=[]), "BODY_INVALID"),
    Refusal(
        "U2",
        "rows twice",
        "batch.built",
        bodied(rows_blob=samples.blob("rows of a batch")),
        "BODY_INVALID",
    ),
    Refusal(
        "U2",
        "read and dropped",
        "batch.built",
        bodied(dropped=[{"row": samples.digest("row b"), "reason": "too_long"}]),
        "BODY_INVALID",
    ),
    Refusal("U3", "other step", "update.acknowledged", bodied(step=2), "UPDATE_OUT_OF_ORDER"),
    Refusal("U3", "budget", "update.acknowledged", spent, "BUDGET_EXCEEDED"),
    Refusal("U3", "not continued", "update.acknowledged", not_continued, "UPDATE_NOT_CONTINUED"),
    Refusal("U3", "broken state", "update.acknowledged", broken_state, "STATE_BROKEN"),
    Refusal("U3", "scheme", "update.acknowledged", second_written, "STATE_BROKEN"),
    Refusal(
        "U3",
        "scheme left",
        "update.acknowledged",
        otherwise_written("after"),
        "STATE_BROKEN",
    ),
    Refusal("U4", "used", "update.acknowledged", acknowledged_before, "BATCH_ALREADY_ACKNOWLEDGED"),
    Refusal(
        "U4", "other run", "update.acknowledged", second_run_batch, "BATCH_ALREADY_ACKNOWLEDGED"
    ),
    Refusal("U4", "other step", "update.acknowledged", leftover, "BATCH_OTHER_STEP"),
    Refusal(
        "U5", "no gradient", "update.acknowledged", bodied(gradient_norm="0.0"), "BAD_GRADIENT"
    ),
    Refusal(
        "U5", "below zero", "update.acknowledged", bodied(gradient_norm="-1.0"), "BAD_GRADIENT"
    ),
    Refusal("U5", "no gradient of pairs", "update.acknowledged", of_preferences, "BAD_GRADIENT"),
    Refusal("U6", "other update", "update.acknowledged", replay_of_other, "REPLAY_OTHER_UPDATE"),
    Refusal(
        "U6", "other batch", "update.acknowledged", replay_with_other_batch, "REPLAY_OTHER_BATCH"
    ),
    Refusal("U6", "not named", "update.acknowledged", unnamed_redo, "REPLAY_OTHER_UPDATE"),
    Refusal("U6", "other state", "update.acknowledged", redone_otherwise, "REPLAY_OTHER_STATE"),
    Refusal("U7", "not newest", "checkpoint.published", not_newest, "CHECKPOINT_OTHER_UPDATE"),
    Refusal("U7", "step", "checkpoint.published", bodied(step=2), "CHECKPOINT_OTHER_UPDATE"),
    Refusal(
        "U7", "state", "checkpoint.published", bodied(state=samples.weights(7)), "STATE_BROKEN"
    ),
    Refusal("U7", "scheme", "checkpoint.published", otherwise_written("state"), "STATE_BROKEN"),
    Refusal(
        "U7",
        "hosted",
        "checkpoint.published",
        otherwise_written("state", hosted=True),
        "STATE_BROKEN",
    ),
    Refusal(
        "U7", "hosted tensors", "checkpoint.published", bodied(hosted="a provider"), "BODY_INVALID"
    ),
    Refusal("U7", "updates", "checkpoint.published", bodied(spent_updates=2), "COUNTERS_WRONG"),
    Refusal("U7", "datums", "checkpoint.published", bodied(spent_datums=1), "COUNTERS_WRONG"),
    Refusal("U9", "no ranks", "update.acknowledged", by_two(), "WORLD_SIZE"),
    Refusal("U9", "a rank missing", "update.acknowledged", by_two((0, 1)), "WORLD_SIZE"),
    Refusal(
        "U9", "a rank more", "update.acknowledged", by_two((0, 1), (1, 1), (2, 1)), "WORLD_SIZE"
    ),
    Refusal("U9", "two for one", "update.acknowledged", ranks_of_one, "WORLD_SIZE"),
    Refusal("U9", "a rank twice", "update.acknowledged", by_two((0, 1), (0, 1)), "RANKS_WRONG"),
    Refusal("U9", "out of order", "update.acknowledged", by_two((1, 1), (0, 1)), "RANKS_WRONG"),
    Refusal("U9", "rank 1 drifts", "update.acknowledged", by_two((0, 1), (1, 7)), "RANKS_DISAGREE"),
    Refusal("U9", "both drift", "update.acknowledged", by_two((0, 7), (1, 7)), "RANKS_DISAGREE"),
    # evaluation
    Refusal("E1", "judge away", "protocol.registered", unjudged, "JUDGE_MISSING"),
    Refusal("E1", "passes away", "protocol.registered", bodied(passes=[]), "JUDGE_MISSING"),
    Refusal("E1", "judging away", "protocol.registered", bodied(judging=None), "JUDGE_MISSING"),
    Refusal("E1", "dialogues", "protocol.registered", dialogues_unjudged, "JUDGE_MISSING"),
    Refusal(
        "E1",
        "pass of other judging",
        "protocol.registered",
        bodied(passes=["direction"]),
        "PASS_KIND",
    ),
    Refusal("E2", "a case too few", "arm.transcribed", bodied(cases=1), "CASES_MISSING"),
    Refusal("E2", "test unreviewed", "arm.transcribed", under_test, "TEST_NOT_REVIEWED"),
    Refusal("E2", "other review", "arm.transcribed", reviewed_elsewhere, "TEST_NOT_REVIEWED"),
    Refusal("E2", "a stranger", "arm.transcribed", read_by_a_stranger, "TEST_OTHER_ARM"),
    Refusal("E3", "other protocol", "judge.passed", other_protocol, "PROTOCOL_MISMATCH"),
    Refusal("E3", "unplanned pass", "judge.passed", bodied(pass_kind="position_swap"), "PASS_KIND"),
    Refusal("E3", "unproven judge", "judge.passed", bodied(qualified=True), "JUDGE_UNQUALIFIED"),
    Refusal("E3", "failed judge", "judge.passed", failed_qualification, "JUDGE_UNQUALIFIED"),
    Refusal("E3", "another judge's", "judge.passed", other_judge, "JUDGE_UNQUALIFIED"),
    Refusal("E3", "asked otherwise", "judge.passed", asked_otherwise, "JUDGE_UNQUALIFIED"),
    Refusal("E3", "other weights", "judge.passed", other_weights, "JUDGE_UNQUALIFIED"),
    Refusal("E3", "by a lower floor", "judge.passed", floor_raised, "JUDGE_UNQUALIFIED"),
    Refusal("E4", "other protocol", "evaluation.completed", other_protocol, "PROTOCOL_MISMATCH"),
    Refusal("E4", "one order", "evaluation.completed", one_order, "PASSES_MISSING"),
    Refusal("E4", "no pass", "evaluation.completed", without("pass"), "PASSES_MISSING"),
    Refusal("E4", "one arm twice", "evaluation.completed", one_pass_twice, "PASSES_MISSING"),
    Refusal("E4", "sum", "evaluation.completed", bodied(success=2), "COUNTERS_WRONG"),
    Refusal("E5", "protocols", "comparison.made", candidate_of_other_protocol, "PROTOCOL_MISMATCH"),
    Refusal("E5", "itself", "comparison.made", baseline_among_candidates, "PAIRING_BROKEN"),
    Refusal(
        "E5",
        "another evaluation",
        "comparison.made",
        lambda _, draft: draft.body["candidates"][0].update(evaluation=samples.digest("x")),
        "PAIRING_BROKEN",
    ),
    Refusal("E6", "lower floor", "judge.qualified", floor_of_its_own, "QUALIFICATION_WRONG"),
    Refusal("E6", "below it", "judge.qualified", bodied(lower="0.7"), "QUALIFICATION_WRONG"),
    Refusal("E6", "too few", "judge.qualified", bodied(total=59), "QUALIFICATION_WRONG"),
    Refusal(
        "E6",
        "with a reason",
        "judge.qualified",
        bodied(reasons=["position"]),
        "QUALIFICATION_WRONG",
    ),
    Refusal(
        "E6", "for no reason", "judge.qualified", bodied(qualified=False), "QUALIFICATION_WRONG"
    ),
    # studies
    Refusal("S1", "seed twice", "study.registered", seeded(1, 2, 3, 4, 5, 5), "STUDY_SEEDS"),
    Refusal("S1", "streams", "study.registered", bodied(streams=2), "STUDY_SEEDS"),
    Refusal(
        "S1",
        "around the end",
        "study.registered",
        bodied(seeds=[0, 8, 16, 24, 32, 2**32 - 1], streams=2),
        "STUDY_SEEDS",
    ),
    Refusal("S1", "other settings", "study.registered", bodied(settings={}), "STUDY_WRONG"),
    Refusal("S1", "alpha", "study.registered", bodied(alpha="0.1"), "STUDY_LAXER"),
    Refusal("S1", "fewer cases", "study.registered", bodied(cases=31), "STUDY_LAXER"),
    Refusal("S1", "smaller gain", "study.registered", bodied(minimum_gain="0.01"), "STUDY_LAXER"),
    Refusal("S1", "few seeds", "study.registered", seeded(1, 2), "STUDY_LAXER"),
    Refusal("S1", "policy", "study.registered", under_stricter_policy, "STUDY_LAXER"),
    Refusal("S1", "gain", "study.registered", bodied(attainable_gain="0.02"), "STUDY_UNATTAINABLE"),
    Refusal("S1", "p", "study.registered", bodied(minimum_p="0.0625"), "STUDY_UNATTAINABLE"),
    Refusal("S1", "power", "study.registered", bodied(power="0.79"), "STUDY_UNDERPOWERED"),
    Refusal("S1", "at best", "study.registered", bodied(best_power="0.064"), "STUDY_UNDERPOWERED"),
    Refusal("S2", "other rate", "study.registered", measured("0.75"), "STUDY_WRONG"),
    Refusal("S2", "another's rate", "study.registered", measured_elsewhere, "STUDY_WRONG"),
    Refusal("S2", "nothing decided", "study.registered", undecided_baseline, "STUDY_WRONG"),
    Refusal(
        "S2",
        "other cases",
        "study.registered",
        refer("protocol", lambda world: world.need("protocol.registered")),
        "STUDY_WRONG",
    ),
    Refusal("S3", "other seed", "plan.prepared", of_study(seed=7), "STUDY_OTHER"),
    Refusal("S3", "no seed", "plan.prepared", of_study(seed=None), "STUDY_OTHER"),
    Refusal("S3", "other setting", "plan.prepared", of_study(rate="0.5"), "STUDY_OTHER"),
    Refusal("S3", "other split", "plan.prepared", of_study(split=True), "STUDY_OTHER"),
    Refusal("S4", "of a study", "plan.prepared", of_study(named=4), "SEED_DIFFERS"),
    Refusal("S4", "of none", "plan.prepared", seed_beside(5, 6), "SEED_DIFFERS"),
    Refusal("S4", "true for 1", "plan.prepared", seed_beside(True, 1), "SEED_DIFFERS"),
    Refusal("S4", "as text", "plan.prepared", seed_beside("5", 5), "SEED_DIFFERS"),
    # promotion
    Refusal(
        "G1",
        "not nominated",
        "candidate.nominated",
        bodied(chosen=samples.digest("x")),
        "NOMINATION_OTHER",
    ),
    Refusal("G2", "fails with every line", "gate.decided", bodied(passed=False), "GATE_WRONG"),
    Refusal(
        "G3",
        "another's name",
        "promotion.approved",
        bodied(reviewer=key("reviewer2").id),
        "REVIEWER_OTHER",
    ),
    Refusal("G4", "gate failed", "promotion.granted", gate_failed, "GATE_FAILED"),
    Refusal("G4", "other nomination", "promotion.granted", other_nomination, "GATE_FAILED"),
    Refusal(
        "G4", "other checkpoint", "promotion.granted", other_checkpoint_granted, "NOMINATION_OTHER"
    ),
    Refusal(
        "G4", "other bytes", "promotion.granted", bodied(tree=samples.digest("x")), "PROMOTED_BYTES"
    ),
    Refusal("G4", "hosted", "promotion.granted", hosted, "PROMOTED_BYTES"),
    Refusal("G4", "no tensors", "promotion.granted", kept_elsewhere, "PROMOTED_BYTES"),
    Refusal(
        "G4", "one reviewer twice", "promotion.granted", approved_by_one_twice, "REVIEW_MISSING"
    ),
    Refusal(
        "G4", "other gate's approval", "promotion.granted", approval_of_other_gate, "REVIEW_MISSING"
    ),
    Refusal("G4", "policy since", "promotion.granted", policy_since_the_gate, "POLICY_OTHER"),
    Refusal("G7", "fresh with findings", "test.reviewed", bodied(fresh=False), "REVIEW_WRONG"),
    Refusal("G5", "policy left out", "promotion.refused", policy_left_out, "POLICY_OTHER"),
    Refusal("G5", "an older policy", "promotion.refused", older_policy, "POLICY_OTHER"),
    *(
        Refusal("G6", kind, kind, on_suspect_evidence, "EVIDENCE_SUSPECT")
        for kind in ("gate.decided", "promotion.approved", "promotion.granted")
    ),
]


@pytest.mark.parametrize("case", REFUSALS, ids=lambda case: f"{case.rule} {case.name}")
def test_rule_refuses(case):
    """The good draft, spoiled in one way, is refused by the rule's code and nothing moves."""
    world = World()
    draft = world.draft(case.kind)
    case.spoil(world, draft)
    record = world.sign(draft)
    before = world.chain.state.to_bytes(), world.chain.size
    with pytest.raises(EvidenceError) as caught:
        world.chain.admit(record)
    assert caught.value.code == case.code
    assert (world.chain.state.to_bytes(), world.chain.size) == before


def test_promotion_without_any_policy_is_refused():
    """G4: with no policy declared there is no number of reviewers that would be enough."""
    world = World()
    approval = world.need("promotion.approved")
    gate = world.by_id[str(approval.ref("gate"))]
    checkpoint = world.by_id[str(approval.ref("checkpoint"))]
    refs = {
        "gate": gate.id,
        "nomination": str(gate.ref("nomination")),
        "approval": [approval.id],
        "checkpoint": checkpoint.id,
    }
    body = samples.body("promotion.granted", tree=checkpoint.body["tree"])
    with pytest.raises(EvidenceError) as caught:
        world.admit(Draft("promotion.granted", body, refs, stater="promoter"))
    assert caught.value.code == "POLICY_MISSING"


ACCEPTED = [
    ("P1 findings that a reviewer accepted", "plan.prepared", "accept_findings"),
    ("P2 a reinforcement plan in order", "plan.prepared", "in_order"),
    ("P3 weights of a parent", "plan.prepared", "from_parent"),
    ("P4 a twin after its run ended", "plan.prepared", "twin_ended"),
    ("R2 going on from the run's own checkpoint", "run.resumed", "own_checkpoint"),
    ("R4 the whole budget", "run.ended", "whole_budget"),
    ("R4 a failure with its code", "run.ended", "named_failure"),
    ("U2 a batch of the run's own groups", "batch.built", "own_groups"),
    ("U2 a batch whose rows stand in a blob", "batch.built", "rows_apart"),
    ("U3 an update that follows", "update.acknowledged", "following"),
    ("U5 a reinforcement update without gradient", "update.acknowledged", "rl_zero_gradient"),
    ("U6 the superseded update redone", "update.acknowledged", "redo"),
    ("U9 two processes that came to one state", "update.acknowledged", "two_ranks"),
    ("E1 desk cases without a judge", "protocol.registered", "desk_only"),
    ("E2 a test under its own review", "arm.transcribed", "reviewed_test"),
    ("E3 a judge that qualified", "judge.passed", "qualify"),
    ("E6 a judge below the floor is not qualified", "judge.qualified", "below_the_floor"),
    ("E4 two arms, each judged both ways", "evaluation.completed", "two_arms"),
    ("S1 weak and descriptive", "study.registered", "weak_but_descriptive"),
    ("S2 the baseline's own evaluation", "study.registered", "measured_baseline"),
    ("S3 a plan of the study", "plan.prepared", "of_the_study"),
    ("S4 a seed in both places", "plan.prepared", "seeded_twice"),
    ("S4 a seed in the settings only", "plan.prepared", "seeded_once"),
    ("G2 a gate that fails where a line does", "gate.decided", "failed_gate"),
    ("G4 as many reviewers as demanded", "promotion.granted", "two_reviewers"),
    ("G5 the policy in force", "promotion.refused", "policy_in_force"),
    ("K1 a key from a later seq on", "key.enrolled", "later_key"),
]


def accept_findings(world, draft):
    """Have the audit's findings accepted."""
    found_something(world, draft)
    body = samples.body("leakage.accepted")
    refs = {"audit": draft.refs["audit"]}
    draft.refs["acceptance"] = world.admit(
        Draft("leakage.accepted", body, refs, stater="reviewer")
    ).id


def weak_but_descriptive(_, draft):
    """Say that no promotion can rest on it."""
    draft.body.update(seeds=[1], power="0.1", alpha="0.5", descriptive=True)


def measured_baseline(world, draft):
    """State the rate that was measured, and the protocol's cases."""
    measured(right_share(world))(world, draft)
    draft.body.update(baseline_rate=right_share(world))


def of_the_study(world, draft):
    """One of its seeds, its settings, its split."""
    of_study()(world, draft)


def seeded_twice(world, draft):
    """One of the study's, in the settings too."""
    of_study(named=3)(world, draft)


def seeded_once(_, draft):
    """No training seed is told."""
    draft.body["settings"] = {**draft.body["settings"], "seed": 3}


def policy_in_force(world, draft):
    """Name the newest policy."""
    world.add("policy.declared")
    draft.refs["policy"] = world.add("policy.declared", seeds=9).id


def in_order(world, draft):
    """Nothing spoiled."""
    rewarded(world, draft)


def from_parent(world, draft):
    """Begin from a checkpoint's weights."""
    draft.refs["parent"] = world.need("checkpoint.published").id
    draft.body["start"] = "weights"


def twin_ended(world, draft):
    """End the equal plan's run."""
    twin_live(world, draft)
    world.add("run.ended")


def own_checkpoint(world, draft):
    """Resume where the checkpoint was taken."""
    world.add("run.launched")
    checkpoint = world.add("checkpoint.published")
    world.add("run.ended")
    draft.refs.update(run=str(checkpoint.ref("run")), checkpoint=checkpoint.id)
    draft.body["from_update"] = 1


def whole_budget(world, draft):
    """Acknowledge both updates of the budget."""
    for _ in range(2):
        world.add("update.acknowledged")
    made = DRAFTS["run.ended"](world)
    draft.body.update(made.body, outcome="completed")
    draft.refs.update(made.refs)


def named_failure(_, draft):
    """Say how it failed."""
    draft.body.update(outcome="failed", failure="no_signal")


def own_groups(world, draft):
    """Read a group instead of rows."""
    del draft.refs["split"]
    draft.refs["group"] = [world.add("rollout.group").id]
    draft.body["rows"] = []


def rows_apart(_, draft):
    """A blob of rows, another row dropped."""
    dropped = [{"row": samples.digest("row c"), "reason": "too_long"}]
    draft.body.update(rows=[], rows_blob=samples.blob("rows of a batch"), dropped=dropped)


def following(world, draft):
    """Second in order."""
    second_update(world, draft)


def rl_zero_gradient(world, draft):
    """A run of a reinforcement plan."""
    plan = world.draft("plan.prepared")
    rewarded(world, plan)
    world.admit(plan)
    world.add("run.launched")
    made = DRAFTS["update.acknowledged"](world)
    draft.refs.clear()
    draft.refs.update(made.refs)
    draft.body["gradient_norm"] = "0.0"


def redo(world, draft):
    """The same batch again."""
    redone(world, draft)


def desk_only(_, draft):
    """Desk cases score themselves."""
    del draft.refs["judge"]
    draft.body.update(judging=None, passes=[], rubric=None, case_kinds={"desk": 2})


def reviewed_test(world, draft):
    """The review is of this protocol, and the model is the baseline of its nomination's study."""
    nomination = world.need("candidate.nominated")
    protocol = world.add("protocol.registered", role="test")
    refs = {"nomination": nomination.id, "protocol": protocol.id}
    body = samples.body("test.reviewed")
    review = world.admit(Draft("test.reviewed", body, refs, stater="reviewer"))
    draft.refs.update(protocol=str(review.ref("protocol")), review=review.id)


def two_arms(world, draft):
    """Both passes for the second arm too."""
    second = DRAFTS["evaluation.completed"](world)
    draft.refs["arm"] = [*draft.refs["arm"], *second.refs["arm"]]
    draft.refs["pass"] = [*draft.refs["pass"], *second.refs["pass"]]


def failed_gate(_, draft):
    """One line fails, so the gate does."""
    draft.body["gates"][0]["passed"] = draft.body["passed"] = False


def two_reviewers(world, draft):
    """Two reviewers where two are demanded."""
    approvals_by(world, draft, "reviewer", "reviewer2")


def later_key(world, draft):
    """The window begins in the future."""
    draft.body["from_seq"] = world.chain.size + 100


@pytest.mark.parametrize(("name", "kind", "change"), ACCEPTED, ids=[case[0] for case in ACCEPTED])
def test_rule_lets_by(name, kind, change):
    """A draft that a rule looks at closely and finds in order is admitted."""
    world = World()
    draft = world.draft(kind)
    globals()[change](world, draft)
    draft.statement = None
    assert world.admit(draft).kind == kind


def test_every_numbered_check_has_a_refusal_here():
    """Each check's rule number, read from its docstring, has at least one case in the table."""
    numbers = {
        (check.__doc__ or "").split(":")[0]
        for checks in CHECKS.values()
        for check in checks
        if check.__doc__
    }
    assert numbers == {case.rule for case in REFUSALS}


def test_run_goes_on_from_its_checkpoint_with_its_counters():
    """After a resume the counters, the next step and the state are the checkpoint's."""
    world = World()
    world.add("run.launched")
    checkpoint = world.add("checkpoint.published")
    world.add("update.acknowledged")
    world.add("run.ended")
    refs = {"run": str(checkpoint.ref("run")), "checkpoint": checkpoint.id}
    world.admit(Draft("run.resumed", samples.body("run.resumed", from_update=1), refs))
    run = world.live_run()[1]
    assert (run.live, run.datums, run.last_update) == (1, 2, checkpoint.ref("update"))
    assert run.last_state == samples.weights(1)["value"]


OF_AN_OPEN_RUN = [
    "run.stop_requested",
    "run.ended",
    "rollout.group",
    "rollout.rejected",
    "batch.built",
    "update.acknowledged",
    "checkpoint.published",
    "checkpoint.restored",
    "operation.intended",
]


@pytest.mark.parametrize("kind", OF_AN_OPEN_RUN)
def test_nothing_more_of_a_run_is_recorded_after_a_restore(kind):
    """A run that was open at a restore is unconfirmed: what would have been its next record is refused."""
    world = World()
    draft = world.draft(kind)
    world.add("ledger.restored")
    assert refused_code(world, draft) == "RUN_NOT_OPEN"


def refused_code(world, draft):
    """The code with which a draft is refused."""
    with pytest.raises(EvidenceError) as caught:
        world.admit(draft)
    return caught.value.code


def unconfirmed_run(world):
    """A run that was open when the ledger was restored, with one checkpoint."""
    checkpoint = world.add("checkpoint.published")
    world.add("ledger.restored")
    return str(checkpoint.ref("run")), checkpoint


def reconciled(run_id, found):
    """A reconciliation of a run."""
    return Draft("run.reconciled", samples.body("run.reconciled", found=found), {"run": run_id})


def test_an_unconfirmed_run_goes_on_only_once_it_was_found_dead():
    """It is neither resumed nor twinned while unconfirmed; found alive changes nothing, found dead ends it."""
    world = World()
    run_id, checkpoint = unconfirmed_run(world)
    refs = {"run": run_id, "checkpoint": checkpoint.id}
    resume = Draft("run.resumed", samples.body("run.resumed", from_update=1), refs)
    twin = world.draft("plan.prepared")
    twin.body["settings"] = world.by_id[world.chain.state.runs[run_id].plan].body["settings"]
    for found in ("alive", "unreachable"):
        world.admit(reconciled(run_id, found))
        assert world.chain.state.runs[run_id].status == "unconfirmed"
        resume.statement = None
        assert refused_code(world, resume) == "RUN_STILL_OPEN"
        assert refused_code(world, twin) == "TWIN_UNCONFIRMED"
    world.admit(reconciled(run_id, "dead"))
    assert world.chain.state.runs[run_id].status == "ended"
    world.admit(resume)
    assert world.live_run()[0].id == run_id


def test_a_restore_leaves_ended_runs_ended():
    """Only runs that were open at the restore become unconfirmed."""
    world = World()
    ended = str(world.add("run.ended").ref("run"))
    world.add("ledger.restored")
    assert world.chain.state.runs[ended].status == "ended"


def test_reconciliation_that_found_the_run_alive_leaves_it_open():
    """Only `dead` ends a run; `alive` and `unreachable` leave it live."""
    world = World()
    launched = world.live_run()[0]
    for found in ("alive", "unreachable"):
        world.add("run.reconciled", found=found)
        assert world.chain.state.runs[launched.id].status == "running"
    world.add("run.reconciled", found="dead")
    assert world.chain.state.runs[launched.id].status == "ended"
