"""Checks on an answer's text that code decides; they override what a judge says.

Everything compares *plain* text: NFKC, casefold, digits of any script as ASCII, white space collapsed. Known
limits: a figure spelled in words is not seen as a figure, and an assertion is told from a quoted refusal by
words of negation in the same clause, in English.

The texts are anybody's, and of any length. So each pattern looks at a stretch of like characters from its beginning only,
and gives nothing of it back (`++`): what a pattern costs grows with the text and not with its square.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from verifiers.judgement.rubric import Rubric

SIMILAR_SHARE = 0.85
REPEATED_SENTENCE_WORDS = 4
LOOP_WORDS = 6
LOOP_TIMES = 3

# A clause ends at a stop, at a turn of thought, or where a new subject begins: there a negation stops
# reaching. "I can't, under our policy, offer X" is one clause; "you're not happy, we offer X" is two.
_CLAUSE = re.compile(
    r"(?<![.!?;:])[.!?;:]++(?=\s|$)|\n+|\s[-\u2014]+\s|\u2014"
    r"|,\s+(?=(?:and|or|so|we|i|you|your|it|this|that|the|an?|our|they|please|no)\b)"
    r"|\band (?=(?:i|we|you)\b)|\b(?:but|however|instead|yet|then)\b"
)
_NEGATION = re.compile(
    r"\b(?:not|no|never|cannot|unable|neither|nor|without|refuse[ds]?|declin(?:e|es|ed)"
    r"|den(?:y|ies|ied)|rather than|prohibit(?:s|ed)?|forbid(?:s|den)?)\b|n't\b|\bcant\b|\bwont\b"
)
_NEGATED_AFTER = re.compile(
    r"^(?:\W*+\w++){0,3}?\W*+\b(?:(?:is|are|was|were|will|can|could|would|may|must|does|do|has|have)"
    r"(?:n't\b| not\b| never\b)|isn't\b|cannot\b|can't\b|won't\b)"
    r"|^(?:\W*+\w++){0,2}?\W*+\b(?:is|are) (?:prohibited|forbidden|impossible|unavailable|excluded)\b"
)
# Negated words that grant all the same.
_FALSE_NEGATION = re.compile(
    r"\bnot only\b|\bno (?:problem|worries|doubt|trouble)\b|\bnot a problem\b|^no,"
    r"|(?:\bnot|n't) (?:hesitate|worry|mind|refuse|deny|decline)\b"
)
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)?")
_FIGURE = re.compile(r"(?<![^\W_])[^\W_]*\d[^\W_]*(?:[.,:/_-][^\W_]*\d[^\W_]*)*")
_RANGE = re.compile(r"^(\d+)-(\d+)$")
_GROUPED = re.compile(r"^\d{1,3}(?:,\d{3})+(?:\.\d+)?$")
_NUMBER = re.compile(r"^\d+(?:\.\d+)?$")
# Typographic apostrophes and the dashes of ranges.
_PUNCTUATION = str.maketrans(
    dict.fromkeys("\u2018\u2019", "'") | dict.fromkeys("\u2010\u2011\u2012\u2013", "-")
)
# Of a plain text, whose lines begin without white space.
_ENUMERATION = re.compile(r"^\d{1,2}[.)]\s+", re.MULTILINE)


def plain(text: str) -> str:
    """Text as the checks compare it; line breaks are kept, other white space is collapsed."""
    folded = unicodedata.normalize("NFKC", text).casefold().translate(_PUNCTUATION)
    folded = "".join(_ascii_digit(char) for char in folded)
    return "\n".join(" ".join(line.split()) for line in folded.splitlines())


def asserted_phrases(reply: str, must_avoid: Iterable[str]) -> list[str]:
    """The forbidden phrases that the reply asserts, in the order given.

    A phrase behind a negation in its own clause ("I can't offer a full refund") is a refusal, not an
    assertion.
    """
    clauses = _clauses(plain(reply))
    whole = _joined(plain(reply))
    found = []
    for phrase in must_avoid:
        needle = _joined(plain(phrase))
        if needle and _asserted(needle, clauses, whole):
            found.append(phrase)
    return found


def invented_figures(reply: str, sources: Iterable[str]) -> list[str]:
    """Figures (amounts, dates, ids, counts) of the reply that stand in no source, in reading order.

    Numbers compare by value, so `$1,299.00` is `1299`. The numbers of a numbered list are no figures.
    """
    known = {figure for source in sources for figure in _figures(plain(source))}
    bare = _ENUMERATION.sub("", plain(reply))
    return [figure for figure in dict.fromkeys(_figures(bare)) if figure not in known]


def clauses_of(text: str) -> list[list[str]]:
    """A text's sentences in order, each as its clauses, plain; a question keeps its mark."""
    marked = plain(text).replace("?", " ?.")
    return [_clauses(sentence) for sentence in _SENTENCE.split(marked)]


def is_negated(before: str, after: str) -> bool:
    """Whether what stands between two parts of a clause is negated there."""
    return _negated(before, "", after)


def numbers_of(text: str) -> list[str]:
    """The figures of a text that are plain numbers, by value, in reading order."""
    return [figure for figure in _figures(plain(text)) if _NUMBER.match(figure)]


def repeats_itself(reply: str) -> bool:
    """Whether the reply says a sentence twice, or the same six words three times."""
    text = plain(reply)
    sentences = Counter(tuple(_words(sentence)) for sentence in _SENTENCE.split(text))
    if any(n > 1 and len(words) >= REPEATED_SENTENCE_WORDS for words, n in sentences.items()):
        return True
    runs = Counter(_shingles(_words(text), LOOP_WORDS))
    return any(count >= LOOP_TIMES for count in runs.values())


def repeats_earlier(reply: str, earlier: Iterable[str]) -> bool:
    """Whether the reply is nearly an earlier turn: at least 0.85 of the word triples in common."""
    mine = set(_shingles(_words(plain(reply)), 3))
    return any(_similar(mine, set(_shingles(_words(plain(turn)), 3))) for turn in earlier)


def words_of(text: str) -> list[str]:
    """The words of a text in order, plain."""
    return _words(plain(text))


def word_count(text: str) -> int:
    """Words of a text."""
    return len(words_of(text))


def decide(rubric: Rubric, case: Mapping[str, Any], reply: str) -> dict[str, bool]:
    """The verdict of every check of the rubric that code decides, by check id.

    Args:
        rubric: whose code checks are decided.
        case: a dialogue case: `policy_facts`, `messages`, `reference`, `must_avoid`.
        reply: the answer.
    """
    earlier = _contents(turn for turn in case["messages"] if turn["role"] == "assistant")
    verdicts = {
        "policy.must_avoid": not asserted_phrases(reply, case["must_avoid"]),
        "accuracy.figures": not invented_figures(reply, _sources(case)),
        "non_repetition.reply": not repeats_itself(reply),
        "non_repetition.earlier_turns": not repeats_earlier(reply, earlier),
        "tone.length": 1 <= word_count(reply) <= rubric.max_words,
    }
    return {name: verdicts[name] for name in rubric.ids("code")}


def _sources(case: Mapping[str, Any]) -> list[str]:
    """Where a figure may come from: facts, what was said before, and the reviewed reference."""
    return [*case["policy_facts"], *_contents(case["messages"]), case["reference"]]


def _contents(turns: Iterable[Mapping[str, Any]]) -> list[str]:
    """The texts of turns; a turn that only calls a tool has none."""
    return [turn["content"] for turn in turns if isinstance(turn.get("content"), str)]


def _ascii_digit(char: str) -> str:
    if char.isascii() or not char.isdecimal():
        return char
    return str(unicodedata.decimal(char))


def _joined(text: str) -> str:
    return " ".join(text.split())


def _clauses(text: str) -> list[str]:
    return [_joined(clause) for clause in _CLAUSE.split(text) if clause and clause.strip()]


def _asserted(needle: str, clauses: Sequence[str], whole: str) -> bool:
    """Whether any occurrence of the phrase stands in a clause that does not negate it."""
    holding = [clause.partition(needle) for clause in clauses if needle in clause]
    if not holding:
        # The phrase itself reaches over a clause's end ("yes, you may"): being there asserts it.
        return needle in whole
    return any(not _negated(before, needle, after) for before, _, after in holding)


def _negated(before: str, needle: str, after: str) -> bool:
    # A phrase that is itself a negation ("no refund") is asserted by being said.
    if _NEGATION.search(needle):
        return False
    if _NEGATION.search(_FALSE_NEGATION.sub(" ", before)):
        return True
    return _NEGATED_AFTER.search(_FALSE_NEGATION.sub(" ", after)) is not None


def _figures(text: str) -> list[str]:
    return [value for match in _FIGURE.finditer(text) for value in _values(match.group())]


def _values(figure: str) -> list[str]:
    """A figure's comparable values: both ends of a range ("3-5 days"), otherwise one."""
    ends = _RANGE.match(figure)
    return [_value(end) for end in (ends.groups() if ends else (figure,))]


def _value(figure: str) -> str:
    """A figure as it is compared: a number by its value, anything else (an id, a date) as written."""
    if _GROUPED.match(figure):
        figure = figure.replace(",", "")
    if not _NUMBER.match(figure):
        return figure
    whole, _, part = figure.partition(".")
    whole, part = whole.lstrip("0") or "0", part.rstrip("0")
    return f"{whole}.{part}" if part else whole


def _words(text: str) -> list[str]:
    return _WORD.findall(text)


def _shingles(words: Sequence[str], length: int) -> list[tuple[str, ...]]:
    return [tuple(words[start : start + length]) for start in range(len(words) - length + 1)]


def _similar(one: set[tuple[str, ...]], other: set[tuple[str, ...]]) -> bool:
    union = len(one | other)
    return union > 0 and len(one & other) / union >= SIMILAR_SHARE
