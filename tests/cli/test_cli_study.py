"""`evidence study`: what cannot show anything is refused with numbers; tables from elsewhere satisfy nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import samples
from published import SPLITS, published
from study_world import SEEDS, StudyWorld
from world import World, key

from ledger.book import Ledger
from runners.assess.studies import StudySettings
from verifiers.judgement.imported import STANDING
from verifiers.judgement.studies import figures
from verifiers.verify import Options, verify

GOOD = {
    "seeds": [101, 202, 303, 404, 505, 606],
    "baseline_rate": 0.5,
    "cases": 64,
    "families": 4,
    "effect": 0.2,
}
PUBLISHED = {
    "seeds": [1, 2, 3, 4, 5, 6],
    "baseline_rate": 954 / 960,
    "cases": 32,
    "families": 8,
    "rollouts": 5,
    "minimum_gain": 0.001,
    "effect": 6 / 960,
}


@pytest.fixture
def planned(cli, tmp_path):
    """A ledger with a plan, a baseline and its evaluation, whose policy asks for a gain of at least 0.1 points."""
    world = World()
    for kind in ("plan.prepared", "evaluation.completed"):
        world.need(kind)
    world.add("policy.declared", minimum_gain="0.001")
    cli.ledger = tmp_path / "planned"
    world.replay(cli.ledger).close()
    key("writer").save(tmp_path / "writer.pem")
    cli.world = world
    return cli


def registers(cli, given, *words):
    """Register a study of this design."""
    named = {
        "baseline": cli.world.need("model.registered").id[7:19],
        "plan": cli.world.need("plan.prepared").id[7:19],
    }
    file = Path("study.json")
    file.write_text(json.dumps({**named, **given}), encoding="utf-8")
    return cli.json("--key", "writer.pem", "study", "register", file, *words)


def test_a_study_is_registered_and_derived_again(planned):
    """A design with room and power is recorded; a stranger derives its figures again; a plan of it must be its own."""
    found = registers(planned, GOOD).result
    assert not found["descriptive"]
    assert (found["attainable"]["attainable_gain"], found["reasons"]) == ("0.5", [])
    with Ledger.read(planned.ledger) as ledger:
        body = ledger.get(found["study"], "study.registered").body
    assert {name: body[name] for name in figures(body)} == figures(body)
    assert body["settings"].items() >= samples.body("plan.prepared")["settings"].items()
    report = verify(planned.ledger, Options(level="blobs", record=found["study"], workers=1))
    assert report.replayed["study.registered"] == 1
    assert any("spread" in said for said in report.on_faith)
    assert not [item for item in report.missing if item.code == "UNDERIVED"]


def test_the_published_study_is_refused_as_underpowered(planned):
    """Six seeds of 160 answers against 954 of 960: power 0.064 at best, and the hint says what would do."""
    called = registers(planned, PUBLISHED)
    assert (called.code, called.error["code"]) == (1, "STUDY_UNDERPOWERED")
    assert (
        "power 0.064 at best with 6 seeds of 160 answers, 0.8 demanded" in called.error["message"]
    )
    assert called.error["hint"].startswith("about 11 seeds or about 544 answers a seed would do")


def test_a_minimum_gain_of_three_points_is_unattainable(planned):
    """Against 99.4 % no candidate gains 3 points; both reasons stand in one message."""
    called = registers(planned, {**PUBLISHED, "minimum_gain": 0.03, "effect": 0.05})
    assert (called.code, called.error["code"]) == (1, "STUDY_UNATTAINABLE")
    message = called.error["message"]
    assert "a minimum gain of 3 points is unattainable: the baseline leaves 0.625" in message
    assert "power 0.064" in message


def test_it_can_be_registered_as_descriptive(planned):
    """Asked for by name, it is recorded, says that no promotion can rest on it, and why."""
    found = registers(planned, PUBLISHED, "--underpowered").result
    assert found["descriptive"]
    assert [item["code"] for item in found["reasons"]] == ["STUDY_UNDERPOWERED"]
    checked = registers(planned, GOOD, "--check").result
    assert checked["study"] is None
    plain = planned("study", "register", "study.json", "--check")
    assert "a promotion can rest on it" in plain.out


def test_the_baselines_evaluation_says_its_rate(planned):
    """The rate is that of the evaluation named; both together, or neither, is one clear error."""
    evaluation = planned.world.need("evaluation.completed")
    arm = planned.world.by_id[evaluation.ref_list("arm")[0]]
    named = {**GOOD, "evaluation": evaluation.id[7:19], "baseline": str(arm.ref("model"))}
    both = registers(planned, named)
    assert (both.error["code"], both.error["field"]) == ("SETTING_INVALID", "baseline_rate")
    del named["baseline_rate"]
    found = registers(planned, named, "--check", "--underpowered").result
    right = evaluation.body["success"] / (evaluation.body["success"] + evaluation.body["failure"])
    assert float(found["body"]["baseline_rate"]) == right
    del named["evaluation"]
    neither = registers(planned, named)
    assert (neither.error["code"], neither.error["field"]) == ("SETTING_INVALID", "baseline_rate")


@pytest.mark.parametrize(
    ("change", "code", "field"),
    [
        ({"seeds": [1, 2, 3, 4, 5, 5]}, "STUDY_SEEDS", "seeds"),
        ({"seeds": [1, 2, 3, 4, 5, 6], "streams": 2}, "STUDY_SEEDS", "seeds"),
        ({"seeds": []}, "SETTING_INVALID", "seeds"),
        ({"rollouts": 10**6}, "STATISTIC_INPUT", "rollouts"),
        ({"alpha": 0.1}, "STUDY_LAXER", "alpha"),
        ({"case": 64}, "SETTING_UNKNOWN", "case"),
        ({"protocol": "PROTOCOL"}, "SETTING_INVALID", "cases"),
        ({"plan": None}, "SETTING_INVALID", "plan"),
    ],
)
def test_a_study_that_cannot_be_is_refused_by_its_field(planned, change, code, field):
    """Each mistake in the file is one error with the field; nothing is recorded."""
    if "protocol" in change:
        change = {"protocol": planned.world.need("protocol.registered").id}
    called = registers(planned, {**GOOD, **change})
    assert (called.error["code"], called.error["field"]) == (code, field)
    with Ledger.read(planned.ledger) as ledger:
        assert ledger.of_kind("study.registered") == []


def test_a_template_is_a_study_but_for_its_ids(cli):
    """What --template prints is read as a study's file."""
    Path("study.toml").write_text(cli("study", "register", "--template").out, encoding="utf-8")
    assert StudySettings.read(Path("study.toml")).seeds[0] == 101
    assert cli.json("study", "register").error["code"] == "USAGE"
    assert cli.json("study", "register", "--template").result["study"] is None


def test_an_invented_power_is_found(tmp_path):
    """A study whose record claims more power than its design has is wrong at level blobs."""
    world = World()
    world.add("study.registered", effect="0.05")
    report = verify(world.write(tmp_path / "ledger"), Options(level="blobs", workers=1))
    (finding,) = [item for item in report.wrong if item.code == "STUDY_WRONG"]
    assert "power" in finding.message
    world = World()
    kind = {**samples.body("study.registered")["simulation"], "seed": 7}
    world.add("study.registered", simulation=kind)
    report = verify(world.write(tmp_path / "other"), Options(level="blobs", workers=1))
    assert "STUDY_WRONG" in [item.code for item in report.wrong]


def write_table(path: Path, split) -> Path:
    """The published outcomes as a CSV file."""
    lines = [
        f"{seed},{case},{cell.family},{cell.baseline},{cell.candidate},{cell.rollouts}"
        for (seed, case), cell in published(split).items()
    ]
    path.write_text("seed,case,family,baseline,candidate,rollouts\n" + "\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize("split", SPLITS, ids=["2211", "3111"])
def test_the_published_table_fails_the_gate(cli, split):
    """P = 0.125 exactly, a lower endpoint of exactly 0, gate lines failed, rivals labelled as not the gate; no ledger needed."""
    table = write_table(Path("outcomes.csv"), split)
    found = cli.json("study", "analyse", table).result
    assert (found["sign_flip_p"], found["bootstrap"]["lower"]) == (0.125, 0.0)
    assert (found["rivals"]["mcnemar_p"], found["rivals"]["seeds_only_lower"]) == (0.03125, 2 / 960)
    assert (found["standing"], found["source"]) == (STANDING, None)
    plain = cli("study", "analyse", table).out
    assert "not the gate" in plain
    assert plain.rstrip().endswith(STANDING)


def test_a_table_is_kept_as_a_source_only_when_asked(planned):
    """With --record the file is a source and nothing else; floors are those of the ledger's policy or stricter ones given."""
    table = write_table(Path("outcomes.csv"), SPLITS[0])
    lines = planned.json("study", "analyse", table).result["gates"]
    assert {"name": "gain", "value": "0.00625", "threshold": "at least 0.001"}.items() <= next(
        line for line in lines if line["name"] == "gain"
    ).items()
    words = ("study", "analyse", table, "--record", "--minimum-gain", "0.05", "--licence", "MIT")
    found = planned.json("--key", "writer.pem", *words).result
    assert "at least 0.05" in [line["threshold"] for line in found["gates"]]
    with Ledger.read(planned.ledger) as ledger:
        assert ledger.get(found["source"]).body["licence"] == "MIT"
        assert [ledger.of_kind(kind) for kind in ("study.registered", "gate.decided")] == [[], []]


@pytest.mark.parametrize(
    ("words", "code", "exit_code"),
    [
        (("nowhere.csv",), "INPUT_MISSING", 2),
        (("bad.csv",), "TABLE_MALFORMED", 1),
        (("outcomes.csv", "--alpha", "2"), "SETTING_INVALID", 2),
        (("outcomes.csv", "--comparisons", "0"), "USAGE", 2),
    ],
)
def test_a_table_that_cannot_be_read_is_one_error(cli, words, code, exit_code):
    """Missing, malformed or misused: one code, one message."""
    write_table(Path("outcomes.csv"), SPLITS[0])
    Path("bad.csv").write_text("seed,case\n1,a\n")
    called = cli.json("study", "analyse", *words)
    assert (called.code, called.error["code"]) == (exit_code, code)


def test_a_gate_is_decided_recorded_and_verified(cli, tmp_path):
    """The whole study passes by command; what root's policy then demands more of fails, exits with 1 and is recorded."""
    made = StudyWorld()
    cli.ledger = tmp_path / "whole"
    made.world.replay(cli.ledger).close()
    key("writer").save(tmp_path / "writer.pem")
    called = cli.json("--key", "writer.pem", "study", "decide", made.study.id)
    assert called.code == 0
    assert called.result["passed"]
    report = verify(cli.ledger, Options(level="blobs", record=called.result["gate"], workers=1))
    assert report.replayed["gate.decided"] == 1
    assert called.result["gate"] not in [item.id for item in report.wrong]


@pytest.mark.parametrize(
    ("grown", "code"),
    [
        (["study.registered"], "NOMINATION_MISSING"),
        (["candidate.nominated"], "REVIEW_MISSING"),
        (["test.reviewed"], "GATE_MISSING"),
    ],
)
def test_a_gate_without_its_evidence_is_refused(cli, tmp_path, grown, code):
    """Without a nomination, a review or an evaluation under it, the error says which is missing."""
    world = World()
    for kind in grown:
        world.need(kind)
    cli.ledger = tmp_path / "partial"
    world.replay(cli.ledger).close()
    key("writer").save(tmp_path / "writer.pem")
    study = world.need("study.registered").id
    called = cli.json("--key", "writer.pem", "study", "decide", study)
    assert (called.code, called.error["code"]) == (1, code)


def test_a_gate_that_fails_is_recorded_and_exits_with_1(cli, tmp_path):
    """A study with a seed too few has its gate recorded, each failed line with its code."""
    made = StudyWorld(seeds=SEEDS[1:])
    cli.ledger = tmp_path / "short"
    made.world.replay(cli.ledger).close()
    key("writer").save(tmp_path / "writer.pem")
    called = cli.json("--key", "writer.pem", "study", "decide", made.study.id)
    assert (called.code, called.error["code"]) == (1, "GATE_FAILED")
    codes = [line["code"] for line in called.result["gates"] if not line["passed"]]
    assert codes == ["SEEDS_TOO_FEW", "SEEDS_NOT_AS_PLANNED", "NOT_SIGNIFICANT"]
    with Ledger.read(cli.ledger) as ledger:
        assert not ledger.get(called.result["gate"]).body["passed"]


def nominates(cli, made, folder, comparison=None):
    """Nominate by a comparison of a study's world."""
    cli.ledger = folder / "whole"
    made.world.replay(cli.ledger).close()
    for name in ("writer", "promoter"):
        key(name).save(folder / f"{name}.pem")
    words = (made.study.id, (comparison or made.comparison).id, "--why", "best on validation")
    return cli.json("--key", "writer.pem", "nominate", *words, "--promote-key", "promoter.pem")


def test_each_seed_is_nominated_by_its_first_in_the_ranking(cli, tmp_path):
    """One checkpoint a planned seed, the best that is eligible to be promoted, under the promoter's statement."""
    made = StudyWorld(eligible=(False, True))
    found = nominates(cli, made, tmp_path).result
    wanted = {str(seed): item.id for seed, item in zip(made.seeds, made.checkpoints, strict=True)}
    assert found["checkpoints"] == wanted
    assert found["chosen"] == made.checkpoints[1].id
    assert found["not_eligible"] == [SEEDS[0], *SEEDS[2:]]
    options = Options(level="blobs", record=found["nomination"], workers=1)
    report = verify(cli.ledger, options)
    assert report.replayed["candidate.nominated"] == 1
    assert found["nomination"] not in [item.id for item in report.wrong]


@pytest.mark.parametrize(
    ("made", "code"),
    [
        (lambda: StudyWorld(seeds=SEEDS[1:]), "SEEDS_NOT_AS_PLANNED"),
        (lambda: StudyWorld(eligible=(False,)), "NOMINATION_OTHER"),
    ],
)
def test_a_nomination_drops_no_seed_and_needs_one_that_is_eligible(cli, tmp_path, made, code):
    """A planned seed without a checkpoint, or none that keeps its guards, is refused; nothing is recorded."""
    called = nominates(cli, made(), tmp_path)
    assert (called.code, called.error["code"]) == (1, code)
