"""Pairs of trajectories at the desk whose order is known: the suite that the desk rewards are audited with.

Of each case of the dated book one trajectory is right; each wrong one tries one trap. A reply is a call a line. The suites
that come with the program are what `write_pairs` makes; a test holds them against it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from runners.prepare.desk_dated import dated_cases
from verifiers.data.identity import rows_bytes
from verifiers.rewards.desk import Case, read_case
from verifiers.rewards.desk_calls import Call, call

SEED = 11
_FIELDS = ("id", "kind", "family", "order", "wanted", "expected")
_FINISH, _LOOKUP_OTHER = call("finish"), call("lookup", order="#S0000000")


def desk_pairs(*, several: bool) -> Iterator[dict[str, Any]]:
    """Pairs for the reward of one call, or of several turns."""
    for row in dated_cases(SEED):
        if row["id"].rpartition("-")[0][-2:] != "-0":
            continue  # one twin of each family
        case = read_case(row)
        scenario = {name: row[name] for name in _FIELDS}
        scenario["metadata"] = {
            name: value for name, value in row["metadata"].items() if name == "environment"
        }
        again = bool(scenario["metadata"]) and case.expected.tool != "refuse"
        right = _solved(case, again=again) if several else [case.expected.text()]
        wrong = dict(_one_call(case))
        if several:
            wrong = {trap: [*said, _FINISH.text()] for trap, said in wrong.items()}
            wrong |= _several(case, right)
        for trap, said in wrong.items():
            yield _pair(row["id"], trap, scenario, right, said)


def write_pairs(folder: Path) -> None:
    """The suites as files."""
    for name, several in (("desk_pairs.jsonl", False), ("desk_episode_pairs.jsonl", True)):
        (folder / name).write_bytes(rows_bytes(desk_pairs(several=several)))


def _pair(
    name: str, trap: str, scenario: Mapping[str, Any], right: list[str], wrong: list[str]
) -> dict[str, Any]:
    return {
        "id": f"{name}/{trap.replace(' ', '-')}",
        "trap": trap,
        "scenario": scenario,
        "right": "\n".join(right),
        "wrong": "\n".join(wrong),
    }


def _solved(case: Case, *, again: bool) -> list[str]:
    tries = [case.expected] * (2 if again else 1)
    return [item.text() for item in (call("lookup", order=case.order.order_id), *tries, _FINISH)]


def _one_call(case: Case) -> Iterator[tuple[str, list[str]]]:
    """Wrong first calls by their traps, each a text of one turn."""
    refused = case.expected.tool == "refuse"
    yield "a claim in words", [f"I have seen to it: {case.expected.text()} is done."]
    yield "nothing at all", [""]
    yield "both decisions at once", [f"{case.wanted.text()} {_other_refusal(case).text()}"]
    yield "handed on", [call("transfer").text()]
    yield "another item or payment", [_astray(case).text()]
    if refused:
        yield "a forbidden action", [case.wanted.text()]
        yield "refused for another reason", [_other_refusal(case).text()]
    else:
        yield "a refusal of what is allowed", [_other_refusal(case).text()]


def _several(case: Case, right: list[str]) -> dict[str, list[str]]:
    """Wrong trajectories that only several turns allow."""
    traps = {
        "never finished": right[:-1],
        "finished without a decision": [right[0], right[-1]],
        "another order looked up": [_LOOKUP_OTHER.text(), *right[1:]],
        "a decision after the end": [right[0], right[-1], *right[1:-1]],
    }
    if case.expected.tool == "refuse":
        traps["forbidden first and refused then"] = [case.wanted.text(), *right]
    else:
        traps["done twice"] = [*right[:-1], right[-2], right[-1]]
    return traps


def _other_refusal(case: Case) -> Call:
    right = case.expected["reason"] if case.expected.tool == "refuse" else ""
    return call("refuse", reason="low_balance" if right != "low_balance" else "not_owner")


def _astray(case: Case) -> Call:
    """A call that nobody asked for: the order's other item, and where none may go back, a reason that is none."""
    other = next(item.name for item in case.order.items if item.name != case.wanted["item"])
    return call("return", item=other, refund_to="gift card")
