"""Planted leaks: held-out rows made from training rows in seven ways, and rows that share nothing; who is found?

The texts are sentences of real requests and policies (the tau2 domains), dealt into two pools. Training rows and
leaks are of the one, clean held-out rows of the other; every second clean row also borrows one sentence in four from
the training pool, as customers of one shop do. A leak counts as found where the audit names the very row it was made
from; a clean row that is named at all is a false alarm.
"""

from __future__ import annotations

import json
import random
import re
import string
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from campaigns.report import Outcome, Settings
from runners.prepare.tau2 import source_dir
from verifiers.data import leakage
from verifiers.data.identity import row_digest

LEAKS = {True: 1000, False: 63}
TRAINING = {True: 5000, False: 400}
MIN_RECALL = 0.95
MAX_FALSE_ALARMS = 0.01
SENTENCES = {"train": 3, "clean": 4}
DOMAINS = ("retail", "airline", "telecom")

Row = dict[str, Any]
Change = Callable[[str, random.Random], str]


@dataclass(frozen=True)
class Leak:
    """One held-out row that was made from a training row: its number, how it was made, both rows."""

    case: int
    way: str
    row: Row
    source: Row


def run(settings: Settings) -> Outcome:
    """Plant, audit, count."""
    outcome = Outcome()
    outcome.excluded = {
        "paraphrase": "other words for the same request share no run of words; no level looks for meaning",
        "translation": "the same",
        "very short texts": "a word changed in six to eight is a quarter of its runs: one in five is not found",
    }
    training, clean, leaks = _make(settings)
    if settings.case is not None:
        leaks = [leak for leak in leaks if leak.case == settings.case]
    found = _touched(training, [*clean, *(leak.row for leak in leaks)])
    settings.progress(len(leaks), len(leaks))
    _count_leaks(outcome, leaks, found)
    _count_clean(outcome, clean, found)
    control = _touched(training, clean[1::2])  # those that borrow nothing
    outcome.counts["control, a clean split: " + ("findings" if control else "clean")] += 1
    if control:
        outcome.failures.append("control: a split without a leak has findings")
    return outcome


def _count_leaks(
    outcome: Outcome, leaks: list[Leak], found: dict[str, dict[str, set[str]]]
) -> None:
    missed: list[str] = []
    levels: Counter[str] = Counter()
    for leak in leaks:
        by_level = found.get(row_digest(leak.row), {})
        source = row_digest(leak.source)
        naming = [level for level, others in by_level.items() if source in others]
        levels.update(f"{leak.way} by {level}" for level in naming)
        outcome.cases += 1
        outcome.counts[f"attack {leak.way}"] += 1
        outcome.counts[f"{leak.way}: {'found' if naming else 'missed'}"] += 1
        if not naming:
            missed.append(f"case {leak.case}: {leak.way} was not found")
    outcome.figures["levels"] = dict(sorted(levels.items()))
    outcome.figures["recall"] = round(1 - len(missed) / max(len(leaks), 1), 4)
    certain = [line for line in missed if not line.endswith("word edits was not found")]
    if outcome.figures["recall"] < MIN_RECALL:
        outcome.failures += missed
    else:
        outcome.failures += certain


def _count_clean(outcome: Outcome, clean: list[Row], found: dict[str, dict[str, set[str]]]) -> None:
    alarms = [row for row in clean if row_digest(row) in found]
    share = len(alarms) / len(clean)
    outcome.counts["clean: touched"] += len(alarms)
    outcome.counts["clean: left alone"] += len(clean) - len(alarms)
    outcome.figures["false_alarms"] = round(share, 4)
    if share > MAX_FALSE_ALARMS:
        outcome.failures += [f"clean row {row['id']} was named" for row in alarms]


def _touched(training: list[Row], held_out: list[Row]) -> dict[str, dict[str, set[str]]]:
    """Held-out digest -> level -> digests of the rows named."""
    role_of = {row_digest(row): "test" for row in held_out}
    role_of |= {row_digest(row): "train" for row in training}
    result = leakage.audit([*training, *held_out], role_of, [])
    found: dict[str, dict[str, set[str]]] = {}
    for finding in result.findings:
        found.setdefault(finding.held_out, {}).setdefault(finding.level, set()).add(finding.other)
    return found


def _make(settings: Settings) -> tuple[list[Row], list[Row], list[Leak]]:
    source = settings.random("rows")
    sentences = real_sentences()
    source.shuffle(sentences)
    half = len(sentences) // 2
    pool, other = sentences[:half], sentences[half:]
    training = _unlike(
        (_row(f"train-{n}", source.sample(pool, SENTENCES["train"]), source) for n in range(10**6)),
        TRAINING[settings.full],
    )
    count = LEAKS[settings.full]
    clean = [
        _row(
            f"clean-{n}",
            [*source.sample(other, SENTENCES["clean"] - 1), source.choice((pool, other)[n % 2])],
            source,
        )
        for n in range(count)
    ]
    chosen = source.sample(training, count)
    return training, clean, [_leak(case, row, settings) for case, row in enumerate(chosen)]


def _unlike(rows: Any, count: int) -> list[Row]:
    """The first rows of which no two share two sentences: then a leak has one source."""
    found: list[Row] = []
    pairs: set[tuple[str, str]] = set()
    for row in rows:
        one, two, three = row["metadata"]["sentences"]
        mine = {tuple(sorted(pair)) for pair in ((one, two), (one, three), (two, three))}
        if not mine & pairs:
            pairs |= mine
            found.append(row)
        if len(found) == count:
            break
    return found


def _row(name: str, sentences: list[str], source: random.Random) -> Row:
    order = f"#W{source.randrange(10**7):07}"
    text = " ".join([*sentences, f"My order is {order}."])
    return _chat(
        name, text, source.choice(("Done.", "I cannot do that.", "Please wait.")), sentences
    )


def _chat(name: str, question: str, answer: str, sentences: list[str]) -> Row:
    turns = [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]
    return {"id": name, "messages": turns, "metadata": {"sentences": sentences}}


def _leak(case: int, row: Row, settings: Settings) -> Leak:
    source = settings.random("leak", case)
    way = list(WAYS)[case % len(WAYS)]
    question, answer = (turn["content"] for turn in row["messages"])
    if way == "another label":
        answer = f"No: {answer}"
    made = _chat(f"leak-{case}", WAYS[way](question, source), answer, row["metadata"]["sentences"])
    return Leak(case, way, made, row)


def _as_it_is(text: str, _: random.Random) -> str:
    return text


def _other_case(text: str, source: random.Random) -> str:
    return source.choice((str.upper, str.lower, str.title, str.swapcase))(text)


def _other_spacing(text: str, source: random.Random) -> str:
    spaces = (" ", "  ", "\t", "\n", "\u00a0", "\u2003")
    return "".join(source.choice(spaces) if sign == " " else sign for sign in f" {text} ")


def _full_width(text: str, _: random.Random) -> str:
    return "".join(chr(ord(sign) + 0xFEE0) if "!" <= sign <= "~" else sign for sign in text)


def _other_ids(text: str, source: random.Random) -> str:
    return re.sub(r"\d", lambda _: source.choice(string.digits), text)


def _edited(text: str, source: random.Random) -> str:
    """One word in ten, and at least one, replaced, dropped, doubled, or changed with the next."""
    words = text.split()
    for _ in range(max(1, len(words) // 10)):
        place = source.randrange(len(words) - 1)
        words[place : place + 2] = source.choice(
            (
                ["indeed", words[place + 1]],
                [words[place + 1]],
                [words[place], words[place], words[place + 1]],
                [words[place + 1], words[place]],
            )
        )
    return " ".join(words)


WAYS: dict[str, Change] = {
    "exact": _as_it_is,
    "other case": _other_case,
    "other spacing": _other_spacing,
    "full width": _full_width,
    "other ids": _other_ids,
    "word edits": _edited,
    "another label": _as_it_is,
}


def real_sentences() -> list[str]:
    """Distinct sentences of 6 to 40 words from the tau2 domains' tasks and policies, in their order."""
    found: dict[str, None] = {}
    for text in _real_texts(source_dir().parent):
        for sentence in re.split(r"(?<=[.!?])\s+|\n+", text):
            plain = " ".join(sentence.strip(" -*#").split())
            if 6 <= len(plain.split()) <= 40 and plain.isascii():
                found[plain] = None
    return list(found)


def _real_texts(folder: Path) -> list[str]:
    texts: list[str] = []
    for domain in DOMAINS:
        small = folder / domain / "tasks_small.json"
        tasks = small if small.is_file() else folder / domain / "tasks.json"
        for task in json.loads(tasks.read_bytes()):
            told = task["user_scenario"]["instructions"]
            texts += [
                str(told.get(name) or "") for name in ("reason_for_call", "task_instructions")
            ]
        texts += [
            path.read_text(encoding="utf-8") for path in sorted((folder / domain).glob("*.md"))
        ]
    return texts
