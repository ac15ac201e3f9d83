"""Fuzz targets of what is learned from and judged: rows, chats, tensors, verdicts, calls, settings, messages."""

from __future__ import annotations

import io
import json
import math
from typing import Any

from desk_world import GIVE_BACK, SWAP, desk_case

from campaigns.fuzz_oracle import Parts, expect, refusals
from campaigns.hostile_models import TENSOR, safetensors
from ledger import canonical
from ledger.errors import UsageError
from runners.assess.config import GenerationSettings
from runners.cli.policy import TEMPLATE
from runners.protocol import Channel, parse_line
from runners.settings import parse_object
from runners.train.config import SftSettings
from verifiers.data.chat import Refused, check_messages
from verifiers.data.identity import rows_bytes
from verifiers.data.json_text import loads_unique
from verifiers.data.rows import parse_rows, parse_sources
from verifiers.judgement import json_verdicts
from verifiers.judgement.rubric import Rubric, default_rubric
from verifiers.judgement.text_checks import decide
from verifiers.learning.tensors import file_state_digest, read_header
from verifiers.rewards.desk import read_case
from verifiers.rewards.desk_calls import Call, parse_call, read_call

MARK = b"\xef\xbb\xbf"


def check_rows(data: bytes) -> None:
    """Rows that were accepted are accepted again from what is kept of them; each line has one verdict."""
    with refusals():
        parsed = parse_sources([data], several=False)
        again = parse_rows([rows_bytes(parsed.rows)])
        expect(
            (again.rows, again.digests, again.rejects) == (parsed.rows, parsed.digests, []),
            "other rows",
        )
        lines = data.removeprefix(MARK).split(b"\n")
        count = len(lines) - (not lines[-1])
        expect(len(parsed.rows) + len(parsed.rejects) == count, "a line without a verdict")
        rows_bytes([item.as_json() for item in parsed.rejects])


def check_chat(data: bytes) -> None:
    """Turns follow the rules or one rule is named."""
    with refusals():
        value = loads_unique(data, 12)
        try:
            check_messages(value, ends_with="assistant")
        except Refused as refused:
            refused.message.encode()


def check_json_text(data: bytes) -> None:
    """What is read strictly is finite and reads back."""
    with refusals():
        value = loads_unique(data, 16)
        expect(_finite(value), "an infinity or NaN")
        expect(loads_unique(json.dumps(value).encode(), 16) == value, "another value")


def check_tensors(data: bytes) -> None:
    """A header that is accepted covers bytes without a gap; a digest is given of whole files only."""
    with refusals():
        entries = read_header(io.BytesIO(data))
        end = 0
        for entry in entries:
            expect(entry.start == end and entry.end >= entry.start, "a gap or an overlap")
            end = entry.end
    with refusals():
        expect(file_state_digest(io.BytesIO(data)).startswith("sha256:"), "no digest")


def check_verdict(data: bytes) -> None:
    """A judge's reply is exactly the checks asked for, or unreadable."""
    asked = ("accuracy.facts", "tone.respectful")
    text = data.decode("utf-8", "surrogateescape")
    verdict = json_verdicts.parse(text, asked)
    expect(verdict is None or tuple(verdict) == asked, "other checks")
    attempts = text.split("\0")
    expect(
        isinstance(json_verdicts.read_attempts(attempts, asked), dict | str),
        "no verdict and no reason",
    )


def check_rubric(data: bytes) -> None:
    """A rubric is whole or refused, and what it lets code decide, code decides."""
    with refusals():
        value = loads_unique(data, 8)
        if isinstance(value, dict):
            rubric = Rubric.read(value)
            rubric.digest()
            expect(rubric.required() <= {item.id for item in rubric.checks}, "an unknown check")


def check_text(data: bytes) -> None:
    """The checks that code decides give a verdict on any reply."""
    reply, _, rest = data.decode("utf-8", "replace").partition("\n")
    case = {
        "messages": [{"role": "user", "content": rest}],
        "policy_facts": [rest[:40]],
        "must_avoid": [rest[:12]],
        "reference": rest,
    }
    decided = decide(Rubric.read(default_rubric("json")), case, reply)
    expect(all(type(item) is bool for item in decided.values()), "a verdict that is none")


def check_call(data: bytes) -> None:
    """A text is one call, which reads back, or none."""
    found = parse_call(data.decode("utf-8", "surrogateescape"))
    if isinstance(found, Call):
        expect(parse_call(found.text()) == found, "another call")
    with refusals():
        value = loads_unique(data, 8)
        expect(read_call(read_call(value).as_json()) == read_call(value), "another call of a case")


def check_case(data: bytes) -> None:
    """A desk case is whole or refused."""
    with refusals():
        value = loads_unique(data, 16)
        if isinstance(value, dict):
            read_case(value)


def check_message(data: bytes) -> None:
    """A line between parent and child is one object in canonical form, or refused."""
    with refusals():
        value = parse_line(data)
        expect(canonical.encode(value) == data.rstrip(b"\n"), "another message")
    with refusals():
        Channel(io.BytesIO(data), io.BytesIO()).ask("start")


def check_settings(data: bytes) -> None:
    """TOML and JSON settings are complete and recordable, or refused as misuse."""
    for as_json in (False, True):
        try:
            value = parse_object(data, as_json=as_json)
        except ValueError:
            continue
        if not isinstance(value, dict):
            continue
        for model in (SftSettings, GenerationSettings):
            try:
                settings = model.from_values(value)
            except UsageError as error:
                expect(
                    error.code in {"SETTING_INVALID", "SETTING_UNKNOWN"}, f"refused as {error.code}"
                )
            else:
                effective = canonical.decode(canonical.encode(settings.effective()))
                expect(model.from_values(effective) == settings, "other settings")


def _finite(value: Any) -> bool:
    if isinstance(value, dict | list):
        return all(_finite(item) for item in (value.values() if isinstance(value, dict) else value))
    return not isinstance(value, float) or math.isfinite(value)


def _chat(**changes: Any) -> dict[str, Any]:
    turns = [{"role": "user", "content": "a?"}, {"role": "assistant", "content": "b"}]
    return {"id": "t", "messages": turns, **changes}


def _tool_turns() -> list[dict[str, Any]]:
    function = {"name": "f", "arguments": {"a": 1}}
    return [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "function": function}]},
        {"role": "tool", "tool_call_id": "1", "content": "c"},
        {"role": "assistant", "content": "d"},
    ]


def _rows() -> list[bytes]:
    rows = [_chat(), _chat(id="u", messages=_tool_turns()), _chat(split="test")]
    return [json.dumps(row).encode() + b"\n" for row in rows] + [
        MARK + json.dumps(_chat()).encode()
    ]


def _chats() -> list[bytes]:
    return [json.dumps(row["messages"]).encode() for row in (_chat(), {"messages": _tool_turns()})]


def _texts() -> list[bytes]:
    return [*_chats(), b'{"a":1e308,"b":[-0,1.5,null]}', b'{"a":1,"a":2}', b"9" * 60]


def _tensors() -> list[bytes]:
    two = {"a": TENSOR, "b": {"dtype": "U8", "shape": [], "data_offsets": [16, 17]}}
    return [safetensors({"w": TENSOR}), safetensors({"__metadata__": {"x": "y"}, **two}, bytes(17))]


def _verdicts() -> list[bytes]:
    good = b'{"checks":{"accuracy.facts":true,"tone.respectful":false}}'
    return [good, b"yes\0" + good, b"```json\n" + good + b"\n```"]


def _rubrics() -> list[bytes]:
    return [json.dumps(default_rubric(ask)).encode() for ask in ("json", "likelihood")]


def _replies() -> list[bytes]:
    return [
        b"It costs $12.50, not 3 percent.\nThe fee is 12.50 and never waived.",
        "\u0663 \u00bd \u216b\n1,000".encode(),
    ]


def _calls() -> list[bytes]:
    return [
        b'{"tool":"cancel","reason":"no longer needed"}',
        b'```json\n{"tool":"transfer"}\n```',
        b'{"tool":"refuse","arguments":{"reason":"x"}}',
    ]


def _cases() -> list[bytes]:
    cases = (desk_case(), desk_case(wanted=SWAP), desk_case(wanted=GIVE_BACK))
    return [json.dumps(case).encode() for case in cases]


def _messages() -> list[bytes]:
    fields = ({"n": 1, "ok": True, "stop": False}, {"n": 1, "event": "end", "outcome": "failed"})
    return [canonical.encode(item) + b"\n" for item in fields]


def _settings() -> list[bytes]:
    full = canonical.encode(SftSettings().effective())
    return [
        full,
        b"steps = 3\nlearning_rate = 1e-3\nlora_targets = ['q_proj']\n",
        TEMPLATE.encode(),
        MARK + b"seed = 1",
    ]


TARGETS: dict[str, Parts] = {
    "rows": (check_rows, _rows, 4, 4096),
    "chat": (check_chat, _chats, 2, 2048),
    "json-text": (check_json_text, _texts, 2, 2048),
    "tensors": (check_tensors, _tensors, 3, 2048),
    "verdict": (check_verdict, _verdicts, 2, 1024),
    "rubric": (check_rubric, _rubrics, 2, 8192),
    "text": (check_text, _replies, 2, 1024),
    "call": (check_call, _calls, 2, 1024),
    "case": (check_case, _cases, 2, 4096),
    "message": (check_message, _messages, 2, 1024),
    "settings": (check_settings, _settings, 3, 2048),
}
