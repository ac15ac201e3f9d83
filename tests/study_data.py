"""The data of a study's world: chat rows to train on, desk cases to validate and to test on, and what models answer.

Every body is made by the functions that the verifier derives it with, so a ledger that holds them is honest to the last byte.
"""

from __future__ import annotations

import hashlib
import io
import json
import struct
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import desk_world
import numpy as np
from samples import blob

from ledger.digests import FileEntry, sha256, tree_digest
from verifiers.data import leakage, secrets, splits
from verifiers.data.identity import dataset_identity, row_digest, rows_bytes
from verifiers.data.role_lists import roles_in_field
from verifiers.data.rows import PARSER, ParsedRows
from verifiers.data.sources import form_of, in_memory, parse_sources
from verifiers.learning.tensors import file_state_digest
from verifiers.replay.judgement import prompts_digest

CASES = 32
TRAIN = 8
SYLLABLES = (
    "ba",
    "do",
    "ki",
    "lu",
    "me",
    "na",
    "po",
    "ri",
    "su",
    "ta",
    "ve",
    "wo",
    "xe",
    "yi",
    "zu",
    "ga",
)


def words(name: str, count: int = 12) -> str:
    """Made-up words that no other name gives, without a digit."""
    data = hashlib.shake_256(name.encode()).digest(count * 4)
    syllables = [SYLLABLES[byte % len(SYLLABLES)] for byte in data]
    return " ".join("".join(syllables[start : start + 4]) for start in range(0, len(syllables), 4))


def case(role: str, number: int, **changes: Any) -> dict[str, Any]:
    """A desk case: of even numbers the order may be cancelled, of odd ones it may not."""
    owner = f"{role}_{words(f'{role} owner {number}', 2).replace(' ', '_')}"
    status = "pending" if number % 2 == 0 else "delivered"
    order = desk_world.order(
        order_id=f"#W{words(f'{role} order {number}', 1)}",
        owner_id=owner,
        caller_id=owner,
        status=status,
    )
    text = f"{words(f'{role} case {number}')} {status}"
    return desk_world.desk_case(
        f"case{number:02d}" if role == "test" else f"{role}{number:02d}",
        order,
        family=f"family{number // 8}",
        request=text,
        messages=[{"role": "user", "content": text}],
        metadata={"pool": role},
        **changes,
    )


def cases(role: str) -> list[dict[str, Any]]:
    """A role's 32 cases in 4 families."""
    return [case(role, number) for number in range(CASES)]


def chat(number: int) -> dict[str, Any]:
    """A row to train on."""
    return desk_world.chat_row(
        f"train{number:02d}",
        words(f"question {number}"),
        words(f"answer {number}"),
        customer_id=f"train_{words(f'customer {number}', 1)}",
        metadata={"pool": "train"},
    )


@dataclass(frozen=True)
class StudyData:
    """Rows and everything that is derived from them."""

    rows: tuple[dict[str, Any], ...]

    @classmethod
    def made(cls, extra: Sequence[dict[str, Any]] = ()) -> StudyData:
        """The usual rows, and further ones."""
        train = [chat(number) for number in range(TRAIN)]
        return cls((*train, *cases("validation"), *cases("test"), *extra))

    def source(self) -> bytes:
        """The file that was ingested."""
        return desk_world.lines(*self.rows)

    @cached_property
    def parsed(self) -> ParsedRows:
        """The rows as they are read from the file."""
        return parse_sources([in_memory("rows.jsonl", self.source())])

    def dataset(self) -> dict[str, Any]:
        """The body of its data set."""
        parsed = self.parsed
        assert not parsed.rejects, parsed.rejects[:1]
        assert not secrets.scan(parsed.rows, parsed.digests)
        return {
            "format": form_of("rows.jsonl", self.source()),
            "parser": PARSER,
            "parser_settings": {
                "forms": [form_of("rows.jsonl", self.source())],
                "secrets": secrets.SCANNER,
            },
            "rows": lines_blob(list(parsed.rows)),
            "identity": parsed.identity,
            "accepted": len(parsed.rows),
            "duplicates": parsed.duplicates,
        }

    def split(self) -> dict[str, Any]:
        """The body of its split, by the pool that each row names."""
        made = self._split
        return {
            "assignment": lines_blob(list(made.lines())),
            "roles": made.roles,
            "by": ["customer_id"],
            "groups": made.groups,
            "fractions": None,
            "seed": None,
            "method": "explicit",
            "roles_by": "metadata.pool",
        }

    def audit(self) -> dict[str, Any]:
        """The body of the split's audit."""
        parsed = self.parsed.rows
        fields = leakage.entity_fields(parsed)
        found = leakage.audit(parsed, self._split.role_of, fields)
        return {
            "method": leakage.METHOD,
            "settings": found.settings,
            "levels": found.levels,
            "entities": found.entities,
            "pairs": found.pairs,
            "findings": lines_blob([item.as_json() for item in found.findings])
            if found.findings
            else None,
            "verdict": found.verdict,
        }

    def training(self) -> list[str]:
        """Digests of the rows that are trained on."""
        parsed = self.parsed
        role_of = self._split.role_of
        return [
            digest
            for row, digest in zip(parsed.rows, parsed.digests, strict=True)
            if role_of[digest] == "train" and row.get("kind", "chat") == "chat"
        ]

    def protocol(self, role: str, name: str = "desk") -> dict[str, Any]:
        """The body of a protocol over all cases of a role."""
        chosen = self.cases(role)
        return {
            "name": name,
            "role": role,
            "cases": lines_blob(chosen),
            "identity": dataset_identity(map(row_digest, chosen)),
            "case_kinds": dict(Counter(item["kind"] for item in chosen)),
            "families": dict(Counter(item["family"] for item in chosen)),
            "judging": None,
            "passes": [],
            "rubric": None,
        }

    def cases(self, role: str) -> list[dict[str, Any]]:
        """The desk cases of a role as they were parsed."""
        parsed = self.parsed.rows
        return [
            dict(row)
            for row in parsed
            if row.get("kind") == "desk" and row["metadata"]["pool"] == role
        ]

    @cached_property
    def _split(self) -> splits.Split:
        parsed = self.parsed
        return splits.split_by_list(
            parsed.rows, ["customer_id"], roles_in_field(parsed.rows, "metadata.pool")
        )


def lines_blob(lines: list[Any]) -> dict[str, Any]:
    """A blob of JSON lines as a record names it."""
    return {
        **blob("", rows_bytes(lines)),
        "media_type": "application/jsonl",
        "count": len(lines),
    }


@dataclass(frozen=True)
class Answers:
    """What a model says: right but for some cases, in which it transfers, breaks a rule or is cut off."""

    wrong: frozenset[int] = frozenset()
    forbidden: frozenset[int] = frozenset()
    cut: frozenset[int] = frozenset()

    def arm(self, chosen: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """The fields of an arm's body that say what was answered."""
        lines = [self._line(number, item) for number, item in enumerate(chosen)]
        return {
            "transcripts": lines_blob(lines),
            "cases": len(lines),
            "prompts": prompts_digest(lines),
            "tokens": sum(len(line["token_ids"]) for line in lines),
            "truncated": sum(line["truncated"] for line in lines),
        }

    def _line(self, number: int, item: dict[str, Any]) -> dict[str, Any]:
        said = item["expected"]
        if number in self.wrong:
            said = {"tool": "transfer", "arguments": {}}
        elif number in self.forbidden:
            said = desk_world.CANCEL.as_json()
        text = json.dumps({"tool": said["tool"], **said["arguments"]})
        return {
            "case": item["id"],
            "prompt_digest": sha256(item["request"].encode()),
            "text": text,
            "token_ids": list(text.encode()),
            "truncated": number in self.cut,
        }


def failing(count: int) -> Answers:
    """So many cases wrong, the first of each family first."""
    return Answers(frozenset((index * 8 + index // 4) % CASES for index in range(count)))


def adapter_files(seed: int, base: dict[str, Any]) -> tuple[dict[str, bytes], str]:
    """A small trained adapter as a folder's files, and the digest of its tensors."""
    source = np.random.default_rng(seed)
    tensors = {
        "m.q_proj.lora_A.weight": source.normal(size=(2, 3)),
        "m.q_proj.lora_B.weight": source.normal(size=(4, 2)),
    }
    header, data = {}, b""
    for name, array in tensors.items():
        raw = array.astype("<f4").tobytes()
        header[name] = {
            "dtype": "F32",
            "shape": list(array.shape),
            "data_offsets": [len(data), len(data) + len(raw)],
        }
        data += raw
    text = json.dumps(header).encode()
    weights = struct.pack("<Q", len(text)) + text + data
    config = {"base_model_name_or_path": base["name"], "revision": base["revision"]}
    files = {
        "adapter_config.json": json.dumps(config).encode(),
        "adapter_model.safetensors": weights,
    }
    return files, state_of(weights)


def state_of(weights: bytes) -> str:
    """The digest of a file's tensors."""
    return file_state_digest(io.BytesIO(weights))


def files_body(files: dict[str, bytes]) -> tuple[list[dict[str, Any]], str]:
    """Files as a checkpoint names them, their bytes kept, and the digest of the folder."""
    entries = [
        FileEntry(path, len(data), blob("", data)["digest"]) for path, data in sorted(files.items())
    ]
    named = [{"path": item.path, "size": item.size, "digest": item.digest} for item in entries]
    return named, tree_digest(entries)
