"""JSON Schemas of whole entries, and rows that describe a body, all from the models and the rules table.

What a schema cannot say (canonical form, signatures, rules beyond refs) is checked by admission only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ledger.canonical import MAX_INTEGER
from ledger.records import KINDS
from ledger.records.base import DIGEST_PATTERN, MAX_REFS_PER_ROLE, Body, Envelope
from ledger.rules import ANY, RULES, Ref, Rule

if TYPE_CHECKING:
    from pydantic import BaseModel

DIALECT = "https://json-schema.org/draft/2020-12/schema"
Schema = dict[str, Any]

_RECORD_ID: Schema = {"type": "string", "pattern": DIGEST_PATTERN}
_TYPES = {
    "integer": "integer",
    "number": "number",
    "string": "text",
    "boolean": "true or false",
    "null": "null",
}
_PATTERNS = {
    DIGEST_PATTERN: "digest",
    r"^ed25519:[0-9a-f]{32}$": "key id",
    r"^[0-9a-f]{64}$": "64 hex digits",
    r"^[0-9a-f]{128}$": "128 hex digits",
}


def entry_schema(kind: str) -> Schema:
    """The JSON Schema (2020-12) of a kind's entry: envelope, refs by the rules table, body.

    Raises:
        KeyError: there is no such kind.
    """
    rule, model = RULES[kind], KINDS[kind]
    envelope = Envelope.model_json_schema(by_alias=True)
    body = model.model_json_schema(by_alias=True)
    definitions = {**envelope.pop("$defs", {}), **body.pop("$defs", {})}
    properties = {
        **envelope["properties"],
        "kind": {"const": kind},
        "schema": {"const": model.version},
        "refs": refs_schema(rule),
        "body": body,
    }
    required = ["ledger", "seq", "prev", "kind", "schema", "time", "actor", "refs", "body"]
    if rule.statement is None:
        del properties["statement"]
    else:
        properties["statement"] = {"$ref": "#/$defs/Statement"}
        required.append("statement")
    if kind == "ledger.created":
        properties |= {"seq": {"const": 0}, "prev": {"type": "null"}}
    return {
        "$schema": DIALECT,
        "title": kind,
        "description": first_sentence(model),
        "type": "object",
        "properties": {name: without_titles(item) for name, item in properties.items()},
        "required": required,
        "additionalProperties": False,
        "$defs": without_titles(_reached(properties, definitions)),
    }


def without_titles(value: Any) -> Any:
    """A schema without the titles that pydantic makes out of field names; a field `title` stays."""
    if isinstance(value, list):
        return [without_titles(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        name: without_titles(item)
        for name, item in value.items()
        if not (name == "title" and isinstance(item, str))
    }


def refs_schema(rule: Rule) -> Schema:
    """The schema of a kind's `refs`."""
    schema: Schema = {
        "type": "object",
        "properties": {role: _ref_schema(ref) for role, ref in rule.refs.items()},
        "required": [
            role
            for role, ref in rule.refs.items()
            if ref.required and not any(role in group for group in rule.one_of)
        ],
        "additionalProperties": False,
    }
    if rule.one_of:
        schema["allOf"] = [
            {"oneOf": [{"required": [role]} for role in group]} for group in rule.one_of
        ]
    return schema


def first_sentence(model: type[BaseModel]) -> str:
    """The first line of a model's docstring."""
    return (model.__doc__ or "").strip().split("\n")[0]


def body_rows(model: type[Body]) -> list[tuple[str, str, str]]:
    """One row a field: name, type in words, whether it must be there. Nested fields follow theirs."""
    schema = model.model_json_schema(by_alias=True)
    return _rows(schema, schema.get("$defs", {}), "")


def flat_properties(model: type[BaseModel]) -> list[tuple[tuple[str, ...], Schema]]:
    """Every leaf of a model as its path and its schema; models inside are opened, lists are leaves."""
    schema = model.model_json_schema(by_alias=True)
    return _leaves(schema, schema.get("$defs", {}), ())


_BOUNDS = (
    ("minimum", "at least"),
    ("exclusiveMinimum", "above"),
    ("maximum", "at most"),
    ("exclusiveMaximum", "below"),
)


def in_words(schema: Schema) -> str:
    """A field's type for a person, e.g. `list of digest` or `real or null`."""
    if "$ref" in schema:
        return str(schema["$ref"]).rsplit("/", 1)[1].lower()
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(in_words(option) for option in schema["anyOf"]))
    if "const" in schema:
        return str(schema["const"])
    if "enum" in schema:
        return ", ".join(str(item) for item in schema["enum"])
    if schema.get("type") == "array":
        return f"list of {in_words(schema.get('items', {}))}"
    if schema.get("type") == "object":
        return f"map to {_values_in_words(schema)}"
    return _scalar_in_words(schema)


def _scalar_in_words(schema: Schema) -> str:
    if schema.get("format") == "real":
        return "real"
    pattern = _PATTERNS.get(schema.get("pattern", ""))
    if pattern:
        return pattern
    name = _TYPES.get(schema.get("type", ""), "any")
    bounds = [
        f"{words} {schema[key]}"
        for key, words in _BOUNDS
        if schema.get(key, MAX_INTEGER) != MAX_INTEGER  # that bound is every integer's
    ]
    return ", ".join([name, *bounds])


def _values_in_words(schema: Schema) -> str:
    values = schema.get("additionalProperties")
    if not isinstance(values, dict):
        patterns = schema.get("patternProperties", {})
        values = next(iter(patterns.values()), {})
    return in_words(values)


def _rows(schema: Schema, definitions: Schema, prefix: str) -> list[tuple[str, str, str]]:
    rows: list[tuple[str, str, str]] = []
    required = schema.get("required", [])
    for name, item in schema.get("properties", {}).items():
        rows.append((prefix + name, in_words(item), "yes" if name in required else "no"))
        inner, many = _opened(item, definitions)
        if inner is not None:
            rows += _rows(inner, definitions, f"{prefix}{name}{'[]' if many else ''}.")
    return rows


def _leaves(
    schema: Schema, definitions: Schema, path: tuple[str, ...]
) -> list[tuple[tuple[str, ...], Schema]]:
    found: list[tuple[tuple[str, ...], Schema]] = []
    for name, item in schema.get("properties", {}).items():
        inner, many = _opened(item, definitions)
        if inner is None or many:
            found.append(((*path, name), _without_null(item)))
        else:
            found += _leaves(inner, definitions, (*path, name))
    return found


def _opened(schema: Schema, definitions: Schema) -> tuple[Schema | None, bool]:
    """The model that a field holds, itself or in a list, or None."""
    schema = _without_null(schema)
    many = schema.get("type") == "array"
    if many:
        schema = schema.get("items", {})
    if "$ref" not in schema:
        return None, many
    return definitions[schema["$ref"].rsplit("/", 1)[1]], many


def _without_null(schema: Schema) -> Schema:
    """The one type of a field that may also be null."""
    options = [option for option in schema.get("anyOf", []) if option.get("type") != "null"]
    return options[0] if len(options) == 1 else schema


def _ref_schema(ref: Ref) -> Schema:
    kinds = "any kind" if ref.kinds == ANY else " or ".join(ref.kinds)
    if not ref.many:
        return {**_RECORD_ID, "description": f"id of a record of {kinds}"}
    return {
        "type": "array",
        "items": _RECORD_ID,
        "minItems": 1,
        "maxItems": MAX_REFS_PER_ROLE,
        "uniqueItems": True,
        "description": f"ids of records of {kinds}",
    }


def _reached(value: Any, definitions: Schema) -> Schema:
    """The definitions that a schema names, directly or through others, by name."""
    found: Schema = {}
    queue = [value]
    while queue:
        item = queue.pop()
        if isinstance(item, list):
            queue += item
        elif isinstance(item, dict):
            name = str(item.get("$ref", "")).rsplit("/", 1)[-1]
            if name in definitions and name not in found:
                found[name] = definitions[name]
                queue.append(definitions[name])
            queue += [part for part in item.values() if isinstance(part, dict | list)]
    return dict(sorted(found.items()))
