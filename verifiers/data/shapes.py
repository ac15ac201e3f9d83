"""Rows in shapes of other tools: prompts with answers, conversations up to where they part, tau2 tasks."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from verifiers.data.chat import Refused

_TOKEN = re.compile(r"#?[^\W]+")
_ADDRESS = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
_ORDER = re.compile(r"#W\d+")
_TASK_FIELDS = {"user_scenario", "evaluation_criteria"}


def is_prompt(row: dict[str, Any]) -> bool:
    """Whether a row is of prompt and completion, as TRL and others write it."""
    return "prompt" in row and "completion" in row and "messages" not in row


def as_chat(row: dict[str, Any]) -> dict[str, Any]:
    """A chat row of a prompt and a completion, both texts or both lists of turns.

    Raises:
        Refused: `wrong_type`; `prompt_answered`, the prompt holds an assistant's turn, which a chat row would
            train on like the completion.
    """
    prompt, completion = row["prompt"], row["completion"]
    rest = {name: value for name, value in row.items() if name not in ("prompt", "completion")}
    if isinstance(prompt, str) and isinstance(completion, str):
        prompt = [{"role": "user", "content": prompt}]
        completion = [{"role": "assistant", "content": completion}]
    elif not (isinstance(prompt, list) and isinstance(completion, list)):
        raise Refused("wrong_type", "prompt and completion are not both texts or both lists")
    if any(isinstance(turn, dict) and turn.get("role") == "assistant" for turn in prompt):
        raise Refused("prompt_answered", "the prompt holds an assistant's turn")
    return {**rest, "messages": [*prompt, *completion]}


def is_preference(row: dict[str, Any]) -> bool:
    """Whether a row has a chosen and a rejected answer and no kind, as TRL and others write it."""
    return row.keys() >= {"chosen", "rejected"} and not row.keys() & {"kind", "messages"}


def as_preference(row: dict[str, Any]) -> dict[str, Any]:
    """A preference of two answers to a prompt; without one, the prompt is what both conversations open with.

    Raises:
        Refused: `missing_field`, two texts without a prompt; `wrong_type`.
    """
    chosen, rejected = _turns(row["chosen"], "assistant"), _turns(row["rejected"], "assistant")
    if "prompt" in row:
        prompt = _turns(row["prompt"], "user")
    elif isinstance(row["chosen"], str) or isinstance(row["rejected"], str):
        raise Refused("missing_field", "the row has no prompt")
    else:
        common = _common(chosen, rejected)
        prompt, chosen, rejected = chosen[:common], chosen[common:], rejected[common:]
    return {**row, "kind": "preference", "prompt": prompt, "chosen": chosen, "rejected": rejected}


def is_feedback(row: dict[str, Any]) -> bool:
    """Whether a row is a prompt, a completion and whether it was liked, and no kind."""
    return is_prompt(row) and isinstance(row.get("label"), bool) and "kind" not in row


def as_feedback(row: dict[str, Any]) -> dict[str, Any]:
    """Feedback on one answer to a prompt.

    Raises:
        Refused: `wrong_type`.
    """
    prompt, completion = _turns(row["prompt"], "user"), _turns(row["completion"], "assistant")
    return {**row, "kind": "feedback", "prompt": prompt, "completion": completion}


def _turns(said: Any, role: str) -> list[Any]:
    if isinstance(said, str):
        return [{"role": role, "content": said}]
    if isinstance(said, list):
        return said
    raise Refused("wrong_type", "a prompt or an answer is neither a text nor a list of turns")


def _common(left: list[Any], right: list[Any]) -> int:
    """How many turns two conversations open with; at least one is left to each."""
    most = max(min(len(left), len(right)) - 1, 0)
    return next((at for at in range(most) if left[at] != right[at]), most)


def is_task(row: dict[str, Any]) -> bool:
    """Whether a row is a task of tau2."""
    return row.keys() >= _TASK_FIELDS and "kind" not in row


@dataclass
class People:
    """A tau2 database as far as tasks need it: users by id, e-mail address and postcode; owners of orders."""

    users: dict[str, tuple[str, str]] = field(default_factory=dict)
    by_address: dict[str, str] = field(default_factory=dict)
    by_postcode: defaultdict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    owner_of: dict[str, str] = field(default_factory=dict)
    reservations: set[str] = field(default_factory=set)

    def add(self, database: Mapping[str, Any]) -> None:
        """Take in a database; entries of another shape name nobody."""
        for user, record in _entries(database.get("users")):
            name, address = record.get("name"), record.get("address")
            names = name if isinstance(name, dict) else {}
            first, last = (str(names.get(part, "")) for part in ("first_name", "last_name"))
            self.users[user] = (first.casefold(), last.casefold())
            self.by_address[str(record.get("email", "")).casefold()] = user
            if isinstance(address, dict):
                self.by_postcode[str(address.get("zip", ""))].append(user)
        for order, record in _entries(database.get("orders")):
            self.owner_of[order] = str(record.get("user_id", ""))
        self.reservations.update(name for name, _ in _entries(database.get("reservations")))

    def named(self, text: str) -> tuple[set[str], set[str], set[str]]:
        """(users by their id, users however they are meant, reservations) in a text."""
        tokens = set(_TOKEN.findall(text))
        said = tokens & self.users.keys()
        lower = {token.casefold() for token in tokens}
        meant = said | {self.owner_of[token] for token in tokens & self.owner_of.keys()}
        meant |= {
            self.by_address[address]
            for address in map(str.casefold, _ADDRESS.findall(text))
            if address in self.by_address
        }
        meant |= {
            user
            for code in tokens & self.by_postcode.keys()
            for user in self.by_postcode[code]
            if set(self.users[user]) <= lower
        }
        return said, meant - {""}, tokens & self.reservations


def task_as_scenario(task: dict[str, Any], people: People | None) -> dict[str, Any]:
    """A tau2 task as a scenario: the reason for the call opens, what is known is context, the criteria are expected.

    Orders are named by their pattern; users, customers and reservations where a database says who they are.

    Raises:
        Refused: `missing_field`, `wrong_type`.
    """
    scenario = task["user_scenario"]
    told = scenario.get("instructions") if isinstance(scenario, dict) else None
    if not isinstance(told, dict) or not isinstance(task["evaluation_criteria"], dict):
        raise Refused("wrong_type", "the task's instructions or criteria are not objects")
    for name in ("reason_for_call", "domain"):
        if not isinstance(told.get(name), str):
            raise Refused("missing_field", f"the task's instructions have no {name}")
    text = orjson.dumps(task).decode()
    row = {
        "id": task.get("id"),
        "kind": "scenario",
        "family": told["domain"],
        "opening": told["reason_for_call"],
        "policy_facts": [],
        "context": str(told.get("known_info") or ""),
        "turns": [],
        "expected": task["evaluation_criteria"],
        "must_avoid": [],
        "metadata": {"instructions": told},
        "order_id": sorted(set(_ORDER.findall(text))),
    }
    if people is not None:
        said, meant, reservations = people.named(text)
        row |= {"user_id": sorted(said), "customer_id": sorted(meant)}
        row["reservation_id"] = sorted(reservations)
    return {name: value for name, value in row.items() if value != [] or not name.endswith("_id")}


def _entries(table: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, record in table.items() if isinstance(table, dict) else ():
        if isinstance(record, dict):
            yield str(name), record
