"""Runs and checkpoints with bodies that their kinds do not have: one error that names the record, and nothing written."""

from __future__ import annotations

import pytest
from samples import digest
from test_cli_audit_hostile import spoiled, written
from world import World

from ledger.blobs import BlobStore
from ledger.book import BLOBS
from ledger.digests import FileEntry, sha256, tree_digest
from runners.train import recovery

BAD = ({}, {"files": 7}, {"from_update": "x"}, {"completeness": 7})
COMMANDS = (
    ("run.launched", ("run", "list")),
    ("run.launched", ("run", "status", "RUN")),
    ("run.launched", ("run", "wait", "RUN")),
    ("run.launched", ("run", "logs", "RUN")),
    ("plan.prepared", ("run", "list")),
    ("plan.prepared", ("run", "wait", "RUN")),
    ("run.resumed", ("run", "list")),
    ("run.resumed", ("run", "status", "RUN")),
    ("run.resumed", ("run", "wait", "RUN")),
    ("run.ended", ("run", "status", "RUN")),
    ("update.acknowledged", ("run", "status", "RUN")),
    ("checkpoint.published", ("run", "status", "RUN")),
    ("checkpoint.published", ("checkpoint", "list")),
    ("checkpoint.published", ("checkpoint", "recover", "CHECKPOINT", "back")),
)


@pytest.fixture(scope="module")
def story() -> World:
    """A run that published, broke off and ended again."""
    world = World()
    world.need("checkpoint.published")
    world.add("run.resumed")
    world.add("run.ended")
    return world


@pytest.mark.parametrize(("kind", "words"), COMMANDS)
def test_the_record_is_named_that_is_not_as_its_kind_must_be(cli, tmp_path, story, kind, words):
    """Whatever the body holds instead, a command that reads it gives one error with the record's id."""
    for place, body in enumerate(BAD):
        made = spoiled(story, kind, body)
        cli.ledger = written(tmp_path / str(place), made)
        newest = {item.kind: item.id for item in made}
        names = {"RUN": newest["run.launched"], "CHECKPOINT": newest["checkpoint.published"]}
        called = cli.json(*(names.get(word, word) for word in words))
        assert (called.code, called.error["code"]) == (1, "BODY_INVALID")
        assert called.error["record"] in {item.id for item in made if item.kind == kind}


@pytest.mark.parametrize("body", BAD)
def test_what_only_shows_records_shows_these_too(cli, tmp_path, story, body):
    """Log, show and lineage read no field of a body and answer whatever it holds."""
    made = spoiled(story, "checkpoint.published", body)
    cli.ledger = written(tmp_path / "strange", made)
    bad = next(item.id for item in made if item.kind == "checkpoint.published")
    for words in (("log", "--kind", "checkpoint.published"), ("show", bad), ("lineage", bad)):
        assert cli(*words).code == 0


DATA = b"pwned"
FILE = {"path": "a", "size": len(DATA), "digest": sha256(DATA)}
PATHS = (
    ([{**FILE, "path": "../escaped"}], "BODY_INVALID"),
    ([{**FILE, "path": "/ABSOLUTE"}], "BODY_INVALID"),
    ([{**FILE, "digest": "../../etc/passwd"}], "BODY_INVALID"),
    ([FILE, FILE], "BODY_INVALID"),
    ([FILE, {**FILE, "path": "a/b"}], "BODY_INVALID"),
    ([{**FILE, "path": "a/b/c"}, {**FILE, "path": "a/b"}], "BODY_INVALID"),
    ([{**FILE, "size": 999_999}], "BLOB_WRONG"),
    ([{**FILE, "path": "a" * 300}], "OS_REFUSED"),
    ([FILE, {**FILE, "path": "b", "digest": digest("nowhere")}], "BLOB_MISSING"),
)


def with_files(cli, folder, story, files):
    """A stranger's ledger whose checkpoint names these files, and that checkpoint's id."""
    entries = [FileEntry(item["path"], item["size"], item["digest"]) for item in files]
    newest = story.newest("checkpoint.published")
    body = {**newest.body, "files": files, "tree": tree_digest(entries)}
    made = spoiled(story, "checkpoint.published", body)
    cli.ledger = written(folder, made)
    BlobStore(folder / BLOBS).put(DATA, "application/octet-stream")
    return next(item.id for item in made if item.kind == "checkpoint.published")


@pytest.mark.parametrize(("files", "code"), PATHS)
def test_a_checkpoint_comes_back_into_its_folder_or_not_at_all(cli, tmp_path, story, files, code):
    """A path that leaves the folder or stands twice, or a size that is not the blob's, leaves nothing anywhere."""
    absolute = str(tmp_path / "absolute")
    files = [{**item, "path": item["path"].replace("/ABSOLUTE", absolute)} for item in files]
    found = with_files(cli, tmp_path / "ledger", story, files)
    place = tmp_path / "place"
    place.mkdir()
    called = cli.json("checkpoint", "recover", found, place / "back")
    assert (called.code != 0, called.error["code"]) == (True, code)
    assert list(place.iterdir()) == []
    assert not (tmp_path / "absolute").exists()


def test_what_lies_beside_the_folder_stays(cli, tmp_path, story):
    """A folder of somebody's own called DIR.partial is left alone, and nothing else is left beside DIR."""
    found = with_files(
        cli, tmp_path / "ledger", story, [{**FILE, "path": "in/a"}, {**FILE, "path": "b"}]
    )
    place = tmp_path / "place"
    (place / "back.partial").mkdir(parents=True)
    (place / "back.partial" / "precious").write_text("mine")
    assert cli("checkpoint", "recover", found, place / "back").code == 0
    assert sorted(item.name for item in place.iterdir()) == ["back", "back.partial"]
    assert (place / "back.partial" / "precious").read_text() == "mine"
    assert (place / "back" / "in" / "a").read_bytes() == DATA
    assert (place / "back").stat().st_mode == (place / "back" / "in").stat().st_mode


def test_a_failure_of_any_kind_leaves_nothing(cli, tmp_path, story, monkeypatch):
    """Interrupted while it copies, a recovery takes its folder away with it."""

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    found = with_files(cli, tmp_path / "ledger", story, [FILE])
    monkeypatch.setattr(recovery, "_copy", interrupted)
    place = tmp_path / "place"
    place.mkdir()
    assert cli("checkpoint", "recover", found, place / "back").code != 0
    assert list(place.iterdir()) == []
