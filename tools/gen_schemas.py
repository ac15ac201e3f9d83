"""Write schemas/records and schemas/cli from the models; `--check` fails where a file differs.

python tools/gen_schemas.py [--check]
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from generated import settle

from ledger.records import KINDS
from ledger.schemas import DIALECT, entry_schema, without_titles
from runners.cli.results import RESULTS
from runners.cli.results.base import Failure, Result, Warned

FOLDER = Path(__file__).resolve().parent.parent / "schemas"


def _model(model: type[Result]) -> dict[str, Any]:
    schema = without_titles(model.model_json_schema(by_alias=True))
    if model is not Failure:
        # a reader of today's schema must accept the fields of a later version
        _open(schema)
    assert isinstance(schema, dict)
    return schema


def _open(schema: Any) -> None:
    if isinstance(schema, dict):
        if schema.get("additionalProperties") is False:
            del schema["additionalProperties"]
        for part in schema.values():
            _open(part)
    elif isinstance(schema, list):
        for part in schema:
            _open(part)


WARNINGS = {"type": "array", "items": _model(Warned)}
"""What was not done beside what was: there only where there is something."""


def record_schemas() -> dict[Path, str]:
    """One file a kind."""
    return {FOLDER / "records" / f"{kind}.schema.json": _text(entry_schema(kind)) for kind in KINDS}


def command_schemas() -> dict[Path, str]:
    """One file a command, for the whole object on stdout, and one for a command line that fails."""
    found = {
        FOLDER / "cli" / f"{command.replace(' ', '-')}.schema.json": _text(_answer(command, model))
        for command, model in RESULTS.items()
    }
    found[FOLDER / "cli" / "error.schema.json"] = _text(_error())
    return found


def _answer(command: str, model: type[Result]) -> dict[str, Any]:
    """The object of a command that came to a result; `error` stands beside it where that is bad."""
    result, error = _model(model), _model(Failure)
    definitions = {**result.pop("$defs", {}), **error.pop("$defs", {}), "Failure": error}
    properties = {
        "ok": {"type": "boolean"},
        "command": {"const": command},
        "result": result,
        "error": {"$ref": "#/$defs/Failure"},
        "warnings": WARNINGS,
    }
    return {
        "$schema": DIALECT,
        "title": f"evidence {command} --json",
        "description": (model.__doc__ or "").split("\n")[0],
        "type": "object",
        "properties": properties,
        "required": ["ok", "command", "result"],
        "additionalProperties": False,
        "if": {"properties": {"ok": {"const": True}}},
        "then": {"not": {"required": ["error"]}},
        "else": {"required": ["error"]},
        "$defs": dict(sorted(definitions.items())),
    }


def _error() -> dict[str, Any]:
    return {
        "$schema": DIALECT,
        "title": "evidence COMMAND --json, refused",
        "description": "What any command answers when it came to no result.",
        "type": "object",
        "properties": {
            "ok": {"const": False},
            "command": {"type": "string"},
            "error": _model(Failure),
            "warnings": WARNINGS,
        },
        "required": ["ok", "command", "error"],
        "additionalProperties": False,
    }


def _text(schema: dict[str, Any]) -> str:
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    sys.exit(
        settle(
            {**record_schemas(), **command_schemas()},
            folders=[(FOLDER / "records", ".schema.json"), (FOLDER / "cli", ".schema.json")],
            command="python tools/gen_schemas.py",
        )
    )
