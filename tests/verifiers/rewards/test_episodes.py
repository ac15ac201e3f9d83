"""Episodes: what each call is answered, what a whole trajectory earns, and that a replay takes nothing on trust."""

from __future__ import annotations

import json

import pytest
from desk_world import CANCEL, GIVE_BACK, ORDER, desk_case, order, refusal

from ledger.errors import EvidenceError
from runners.prepare.desk_dated import FAMILIES, VARIANTS, dated_cases
from verifiers.data.rows import parse_rows
from verifiers.learning.trace import ASSISTANT, Turn
from verifiers.rewards.desk_baselines import best_constant, record_ignored, right_refusals
from verifiers.rewards.desk_calls import call
from verifiers.rewards.episodes import REWARDS, script_digest

DESK, SEVERAL, SUPPORT = (
    REWARDS[key] for key in (("desk", 1), ("desk_episode", 1), ("support", 3))
)
LOOKUP, FINISH = call("lookup", order="#W1"), call("finish")
DELIVERED = order(status="delivered")
FOREIGN = order(caller_id="bob_2")


def play(reward, row, *said):
    """The turns of a trajectory in which the policy says these, and why it stopped."""
    episode, answer, turns = reward.begin(row), None, []
    for item in said:
        if answer is not None:
            turns.append(Turn(reward.role, answer, 1))
        text = item if isinstance(item, str) else item.text()
        turns.append(Turn(ASSISTANT, text, 1))
        episode, answer = episode.answer(text)
    return turns, "end" if episode.over else "turns"


def earned(reward, row, *said):
    """The reward and its parts."""
    return reward.score(row, *play(reward, row, *said))


SEVERAL_TURNS = [
    ("looks up, acts, finishes", desk_case(), (LOOKUP, CANCEL, FINISH), 1.0),
    ("acts and finishes", desk_case(), (CANCEL, FINISH), 1.0),
    ("acts and never finishes", desk_case(), (LOOKUP, CANCEL), 0.0),
    ("finishes without acting", desk_case(), (LOOKUP, FINISH), 0.05),
    ("refuses what is allowed", desk_case(), (refusal("wrong_status"), FINISH), 0.05),
    ("refuses what is forbidden", desk_case(of=DELIVERED), (refusal("wrong_status"), FINISH), 1.0),
    ("refuses for another reason", desk_case(of=DELIVERED), (refusal("not_owner"), FINISH), 0.05),
    ("tries what is forbidden, then refuses", desk_case(of=DELIVERED), (CANCEL, refusal("wrong_status"), FINISH), 0.0),
    ("does what nobody asked for", desk_case(), (call("modify_payment", method="paypal"), FINISH), 0.0),
    ("acts twice", desk_case(), (CANCEL, CANCEL, FINISH), 0.0),
    ("acts after it decided", desk_case(of=DELIVERED), (refusal("wrong_status"), GIVE_BACK, FINISH), 0.0),
    ("looks up another order", desk_case(), (call("lookup", order="#W2"), CANCEL, FINISH), 0.0),
    ("refuses somebody else's order", desk_case(of=FOREIGN), (LOOKUP, refusal("not_owner"), FINISH), 1.0),
    ("only says that it acted", desk_case(), ("I have cancelled your order.", FINISH), 0.0),
    ("needs two tries at the form", desk_case(), ("Cancel!", CANCEL, FINISH), 0.95),
    ("tries again what failed once", desk_case(metadata={"environment": {"fails_once": "cancel"}}), (CANCEL, CANCEL, FINISH), 1.0),
    ("tries what is forbidden on a tool that fails", desk_case(of=DELIVERED, metadata={"environment": {"fails_once": "cancel"}}), (CANCEL, refusal("wrong_status"), FINISH), 0.0),
    ("gives up on what failed once", desk_case(metadata={"environment": {"fails_once": "cancel"}}), (CANCEL, FINISH), 0.05),
]  # fmt: skip


@pytest.mark.parametrize(
    ("row", "said", "due"), [case[1:] for case in SEVERAL_TURNS], ids=[c[0] for c in SEVERAL_TURNS]
)
def test_what_several_turns_earn(row, said, due):
    """Only a desk that is where the right call leads, with nothing forbidden tried, and finished, earns it all."""
    value, parts = earned(SEVERAL, row, *said)
    assert value == pytest.approx(due)
    assert all(0 <= part <= 1 for part in parts.values())


def test_each_trajectory_has_its_own_order():
    """Two episodes of one row do not see each other's actions."""
    row = desk_case()
    begun = SEVERAL.begin(row)
    first, _ = begun.answer(CANCEL.text())
    assert first.desk.order.status == "cancelled"
    assert begun.desk.order == ORDER


def test_a_lookup_shows_the_record_and_not_whose_it_is():
    """The record comes as JSON without the names of owner and caller; of a foreign order nothing comes at all."""
    _, answer = SEVERAL.begin(desk_case()).answer(LOOKUP.text())
    shown = json.loads(answer)["order"]
    assert shown["status"] == "pending"
    assert not shown.keys() & {"owner_id", "caller_id"}
    _, answer = SEVERAL.begin(desk_case(of=FOREIGN)).answer(LOOKUP.text())
    assert json.loads(answer) == {"error": "not_owner"}


@pytest.mark.parametrize(
    ("said", "stop", "due"),
    [
        (CANCEL.text(), "end", 1.0),
        (CANCEL.text(), "length", 0.0),
        (refusal("wrong_status").text(), "end", 0.05),
        ("I have cancelled your order.", "end", 0.0),
        (call("modify_payment", method="paypal").text(), "end", 0.0),
        (LOOKUP.text(), "end", 0.0),
    ],
)
def test_what_one_call_earns(said, stop, due):
    """The same call as in the evaluation succeeds; a wrong refusal earns no more than a wrong form of help."""
    assert DESK.score(desk_case(), [Turn(ASSISTANT, said, 3)], stop)[0] == pytest.approx(due)


SCENARIO = {
    "id": "s", "kind": "scenario", "family": "f", "opening": "Please refund the kettle, 39.90 dollars.",
    "policy_facts": ["No refund after 30 days."], "context": "Delivered 45 days ago. 39.90 dollars.",
    "turns": ["Really no refund of the kettle?"], "expected": {"decision": "refuse"}, "must_avoid": ["full refund"],
}  # fmt: skip
NO = "I'm sorry, 30 days have passed, so I can't refund the kettle."
YES = "I have refunded the 39.90 dollars."


def test_a_scripted_customer_says_what_the_row_says():
    """Whatever the reply, the customer's next turn is the row's, and after the last one the episode is over."""
    for reply in (NO, YES, ""):
        episode, answer = SUPPORT.begin(SCENARIO).answer(reply)
        assert (answer, episode.over) == (SCENARIO["turns"][0], False)
    assert episode.answer(NO)[0].over


@pytest.mark.parametrize(("replies", "low", "high"), [
    ((NO, "No, I really can't refund it; 30 days have passed."), 0.5, 1.0),
    ((YES, "No, I really can't refund it; 30 days have passed."), 0.0, 0.0),
    ((NO, YES), 0.0, 0.0),
    ((NO,), 0.01, 0.25),
])  # fmt: skip
def test_what_a_scripted_conversation_earns(replies, low, high):
    """A forbidden grant is not taken back by a refusal after it, and half a conversation earns less than any whole one that is right."""
    value, parts = earned(SUPPORT, SCENARIO, *replies)
    assert low <= value <= high
    assert parts["finished"] == float(len(replies) == 2)


def spoiled_turns():
    """Trajectories that were not so, each with the code that says it."""
    turns, _ = play(SEVERAL, desk_case(), LOOKUP, CANCEL, FINISH)
    other = Turn("tool", '{"done":"refund"}', 1)
    yield "another answer", [turns[0], other, *turns[2:]], "end", "EPISODE_WRONG"
    yield "another speaker", [turns[0], Turn("user", turns[1].text, 1), *turns[2:]], "end", "EPISODE_WRONG"  # fmt: skip
    yield "behind the end", [*turns, Turn("tool", "more", 1)], "end", "EPISODE_WRONG"
    yield "a turn behind the end", [*turns, turns[-1]], "end", "GROUP_CUT"
    yield "before the end", turns[:3], "end", "GROUP_CUT"
    yield "over, yet out of turns", turns, "turns", "GROUP_CUT"


@pytest.mark.parametrize(("what", "turns", "stop", "code"), list(spoiled_turns()))
def test_a_trajectory_that_was_not_so_is_refused(what, turns, stop, code):
    """The environment is asked again at every turn, and the end is where the episode has it."""
    with pytest.raises(EvidenceError) as refused:
        SEVERAL.score(desk_case(), turns, stop)
    assert refused.value.code == code, what


@pytest.mark.parametrize("told", [{"fails_once": "fly"}, {"weather": "fine"}, "fails"])
def test_an_environment_that_nobody_knows_breaks_the_case(told):
    """What the environment is told is one known field with a tool's name."""
    with pytest.raises(EvidenceError) as refused:
        SEVERAL.begin(desk_case(metadata={"environment": told}))
    assert refused.value.code == "CASE_BROKEN"


def test_a_script_is_what_the_environment_is_told():
    """Another record, another failing tool or another customer is another script; an answer that is expected is none."""
    failing = desk_case(metadata={"environment": {"fails_once": "cancel"}})
    rows = [desk_case(), desk_case(of=DELIVERED), failing, SCENARIO, {**SCENARIO, "turns": []}]
    assert len({script_digest(row) for row in rows}) == len(rows)
    assert script_digest({**SCENARIO, "id": "other"}) == script_digest(SCENARIO)
    with pytest.raises(EvidenceError) as refused:
        script_digest({"kind": "chat"})
    assert refused.value.code == "CASE_BROKEN"


def test_the_dated_book_is_rows_of_twins():
    """Every case is an accepted row; of each twin one may be acted on; whoever ignores the record is right on half."""
    cases = list(dated_cases(seed=3))
    data = b"".join(json.dumps(case).encode() + b"\n" for case in cases)
    assert [len(parse_rows([data]).rows), len(cases)] == [2 * VARIANTS * len(FAMILIES)] * 2
    ignored = record_ignored(cases)
    assert sum(ignored.values()) == right_refusals(cases) == len(cases) // 2
    assert best_constant(cases)[1] < len(cases) / 2
    assert all(case["metadata"]["synthetic"] for case in cases)
    assert cases == list(dated_cases(seed=3)) != list(dated_cases(seed=4))
    families = {case["family"] for case in cases}
    assert {
        "window_closed",
        "already_refunded",
        "open_dispute",
        "not_owner",
        "last_day",
    } <= families


@pytest.mark.parametrize("reward", [DESK, SEVERAL], ids=["one call", "several turns"])
def test_the_right_calls_earn_everything_in_the_dated_book(reward):
    """Every case of the book can be solved."""
    for row in dated_cases(seed=5):
        right = call(row["expected"]["tool"], **row["expected"]["arguments"])
        again = [right] if row["metadata"].get("environment") and right.tool != "refuse" else []
        said = [right] if reward is DESK else [*again, right, FINISH]
        assert earned(reward, row, *said)[0] == 1.0
