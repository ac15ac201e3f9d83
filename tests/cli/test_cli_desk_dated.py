"""`evidence data ingest --package desk-dated`: the synthetic book is data like any other, and says that it is made up."""

from __future__ import annotations

from ledger.book import Ledger


def test_the_dated_book_is_ingested_split_and_derived_again(made):
    """Twins stay together in a split by customer, source and rows are derived again, and the origin says synthetic."""
    ingested = made.json("data", "ingest", "--package", "desk-dated", "--seed", 5).result
    assert (ingested["accepted"], ingested["rejected"]) == (56, 0)
    split = made.json("data", "split", ingested["dataset"], "--by", "customer_id").result
    report = made.json("verify", "--level", "blobs").result
    assert report["verdict"] == "verified"
    assert report["replayed"]["split.declared"] == 1
    with Ledger.read(made.ledger) as ledger:
        (source,) = ledger.of_kind("source.ingested")
        assert "synthetic" in source.body["origin"]
        assert ledger.get(split["split"]).body["groups"] == 28
