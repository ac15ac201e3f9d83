"""Bundles: one form, the same bytes for the same ledger, and nothing but that form is read."""

from __future__ import annotations

import io
import os
import random
import tarfile

import bundle_world
import pytest
from bundle_world import members, packed, replaced

from ledger.blobs import BlobStore
from ledger.book import DATABASE, Ledger
from ledger.bundles import container, layout
from ledger.bundles.export import LeftOut, export_ledger
from ledger.bundles.unpack import unpack
from ledger.errors import EvidenceError, LedgerError
from ledger.store.sqlite import SqliteStore


@pytest.fixture(scope="module")
def ledger(tmp_path_factory):
    """A sealed ledger of every kind."""
    return bundle_world.sealed(tmp_path_factory.mktemp("bundles") / "ledger")


@pytest.fixture(scope="module")
def data(ledger):
    """Its bundle."""
    return bundle_world.whole(ledger)


def unpacked(data, folder, **options):
    """Unpack bytes below a folder."""
    file = folder / "x.tar"
    file.write_bytes(data)
    place = folder / "place"
    place.mkdir()
    return unpack(file, place, **options)


def refused(data, folder) -> str:
    """The code with which a bundle is refused."""
    with pytest.raises(LedgerError) as error:
        unpacked(data, folder)
    return error.value.code


def test_same_ledger_gives_the_same_bytes(ledger, data, tmp_path):
    """A bundle made twice, and one made of what a bundle became, are equal byte for byte."""
    assert bundle_world.whole(ledger) == data
    copy = unpacked(data, tmp_path).folder
    assert bundle_world.whole(copy) == data


def test_rows_and_seals_and_blobs_travel(ledger, data, tmp_path):
    """What was unpacked has the rows and seals of the ledger, and every blob but the one withheld."""
    result = unpacked(data, tmp_path)
    stores = [SqliteStore.open_reader(place / DATABASE) for place in (ledger, result.folder)]
    assert list(stores[0].rows()) == list(stores[1].rows())
    assert list(stores[0].seals()) == list(stores[1].seals())
    for store in stores:
        store.close()
    assert result.blobs.withheld == 1
    assert result.blobs.here == len([name for name, _ in members(data) if name[:6] == "blobs/"])


def test_other_programs_read_the_archive(data):
    """Python's tarfile finds plain files only, with the contents that were put in."""
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        found = [(item.name, archive.extractfile(item).read()) for item in archive.getmembers()]
        assert all(item.isreg() and item.mtime == 0 for item in archive.getmembers())
    assert found[:-1] == members(data)


def test_members_of_eight_gibibytes_and_more_have_a_header_that_reads_back():
    """A size beyond eleven octal digits is written in base 256, which tarfile reads too."""
    for size in (0, 8**11 - 1, 8**11, 1 << 39):
        block = container.header("blobs/x", size)
        assert tarfile.TarInfo.frombuf(block, "ascii", "strict").size == size
        assert container._read_header(block, 0) == ("blobs/x", size)


def test_a_flipped_bit_anywhere_is_refused(data, tmp_path):
    """Of bits flipped all over a bundle, none is overlooked."""
    rng = random.Random(1)
    for case in range(120):
        spoilt = bytearray(data)
        spoilt[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        (tmp_path / str(case)).mkdir()
        refused(bytes(spoilt), tmp_path / str(case))


def other_tar(name="bundle.json", kind=tarfile.REGTYPE, link="", **changes):
    """An archive of one member as another program makes it."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=changes.pop("format", 0)) as archive:
        item = tarfile.TarInfo(name)
        item.type, item.linkname, item.size = kind, link, 5
        for field, value in changes.items():
            setattr(item, field, value)
        archive.addfile(item, io.BytesIO(b"x" * item.size))
    return stream.getvalue()


CONTAINERS = {
    "symbolic link": lambda _: other_tar(kind=tarfile.SYMTYPE, link="/etc/passwd"),
    "hard link": lambda _: other_tar(kind=tarfile.LNKTYPE, link="/etc/passwd"),
    "folder": lambda _: other_tar(kind=tarfile.DIRTYPE),
    "device": lambda _: other_tar(kind=tarfile.CHRTYPE),
    "pipe": lambda _: other_tar(kind=tarfile.FIFOTYPE),
    "sparse": lambda _: other_tar(kind=tarfile.GNUTYPE_SPARSE),
    "pax": lambda _: other_tar(name="é" * 40, format=tarfile.PAX_FORMAT),
    "long name": lambda _: other_tar(name="a" * 300, format=tarfile.GNU_FORMAT),
    "other owner": lambda _: other_tar(uid=1000),
    "absolute path": lambda data: packed([("/etc/passwd", b""), *members(data)]),
    "escaping path": lambda data: packed([*members(data), ("../../x", b"")]),
    "twice": lambda data: packed([members(data)[0], *members(data)]),
    "another order": lambda data: packed(members(data)[::-1]),
    "one too many": lambda data: packed([*members(data), ("extra", b"x")]),
    "one too few": lambda data: packed(members(data)[:-1]),
    "nothing": lambda _: b"",
    "zeros": lambda _: bytes(10_240),
    "cut": lambda data: data[:-600],
    "cut in the end": lambda data: data[:-1],
    "longer": lambda data: data + b"\0",
    "twice over": lambda data: data + data,
    "compressed": lambda _: b"\x1f\x8b\x08" + bytes(2000),
    "huge size": lambda data: container.header("bundle.json", 1 << 39) + data[512:],
    "size beyond": lambda data: container.header("bundle.json", 1 << 87) + data[512:],
}


@pytest.mark.parametrize("name", CONTAINERS)
def test_every_other_container_is_malformed(name, data, tmp_path):
    """Links, folders, sparse files, extensions, paths, order, ends: nothing but the one form is read."""
    assert refused(CONTAINERS[name](data), tmp_path) == "BUNDLE_MALFORMED"
    assert sorted(item.name for item in tmp_path.iterdir()) == ["place", "x.tar"]


def test_a_digest_of_other_bytes_is_damage(data, tmp_path):
    """A bundle whose last member is the digest of something else is `BUNDLE_DAMAGED`."""
    at = data.rindex(b"sha256:")
    digit = b"0" if data[at + 7 : at + 8] != b"0" else b"1"
    assert refused(data[: at + 7] + digit + data[at + 8 :], tmp_path) == "BUNDLE_DAMAGED"


def manifest(data, **changes):
    """The bundle with other words about itself."""
    old = layout.read_manifest(dict(members(data))["bundle.json"])
    return replaced(data, "bundle.json", old.model_copy(update=changes).encode())


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"records": 3}, "BUNDLE_WRONG"),
        ({"blobs": 3}, "BUNDLE_WRONG"),
        ({"seals": 0}, "BUNDLE_MALFORMED"),
        ({"seals": 2}, "BUNDLE_MALFORMED"),
        ({"ledger": "example.com/other"}, "BUNDLE_WRONG"),
        ({"ledger_id": "sha256:" + "0" * 64}, "BUNDLE_WRONG"),
        ({"bundle": 2}, "FORMAT_UNKNOWN"),
        ({"bundle": 0}, "BUNDLE_MALFORMED"),
        ({"scope": "half"}, "BUNDLE_MALFORMED"),
        ({"records": -1}, "BUNDLE_MALFORMED"),
    ],
)
def test_what_a_bundle_says_of_itself_is_compared(changes, code, data, tmp_path):
    """Each word of the manifest that the rest does not bear out is refused."""
    assert refused(manifest(data, **changes), tmp_path) == code


def listed(data, change):
    """The bundle with another list of blobs."""
    lines = dict(members(data))["blobs.jsonl"].splitlines(keepends=True)
    return replaced(data, "blobs.jsonl", b"".join(change(lines)))


HERE, OUT, WITHHELD = b'"here"', b'"left_out"', b'"withheld"'
LISTS = {
    "a line less": (lambda lines: lines[1:], "BUNDLE_WRONG"),
    "a line twice": (lambda lines: [lines[0], *lines], "BUNDLE_WRONG"),
    "another order": (lambda lines: lines[::-1], "BUNDLE_WRONG"),
    "nobody withheld it": (
        lambda lines: [line.replace(HERE, WITHHELD) for line in lines],
        "BUNDLE_WRONG",
    ),
    "withheld, but here": (
        lambda lines: [line.replace(WITHHELD, HERE) for line in lines],
        "BUNDLE_WRONG",
    ),
    "another size": (
        lambda lines: [line.replace(b'"size":', b'"size":1') for line in lines],
        "BUNDLE_WRONG",
    ),
    "left out, but here": (
        lambda lines: [line.replace(HERE, OUT) for line in lines],
        "BUNDLE_MALFORMED",
    ),
    "no line feed": (lambda lines: [b"".join(lines)[:-1]], "BUNDLE_MALFORMED"),
    "a long line": (lambda _: [b"x" * 100_000 + b"\n"], "BUNDLE_MALFORMED"),
}


@pytest.mark.parametrize("name", LISTS)
def test_list_of_blobs_is_the_one_that_the_records_give(name, data, tmp_path):
    """A list with other lines than the records and the withholding demand is refused."""
    change, code = LISTS[name]
    assert refused(listed(data, change), tmp_path) == code


def test_a_blob_of_other_bytes_is_refused(data, tmp_path):
    """A blob whose bytes are not those of its name is `BLOB_WRONG`, and does not stay."""
    name, content = next(item for item in members(data) if item[0].startswith("blobs/"))
    other = bytes([content[0] ^ 1]) + content[1:]
    assert refused(replaced(data, name, other), tmp_path) == "BLOB_WRONG"
    assert not [path for path in (tmp_path / "place/blobs").rglob("*") if path.is_file()]


RECORDS = {
    "a record less": (lambda lines: lines[:5] + lines[6:], "SEQ_GAP"),
    "another order": (lambda lines: [lines[0], lines[2], lines[1], *lines[3:]], "SEQ_GAP"),
    "no signature": (lambda lines: [line[130:] for line in lines], "BUNDLE_MALFORMED"),
    "capitals": (lambda lines: [lines[0][:128].upper() + lines[0][128:]], "BUNDLE_MALFORMED"),
    "no record": (lambda lines: [lines[0][:129] + b"{}\n"], "ENVELOPE_INVALID"),
    "no entry": (lambda lines: [lines[0][:129] + b"\n"], "NOT_CANONICAL"),
    "a long line": (lambda lines: [lines[0][:129] + b"1" * 100_000 + b"\n"], "BUNDLE_MALFORMED"),
    "no end": (lambda lines: [lines[0][:-1]], "BUNDLE_MALFORMED"),
}


@pytest.mark.parametrize("name", RECORDS)
def test_lines_of_records_are_signature_and_entry_in_order(name, data, tmp_path):
    """A line of another form, or out of its place, is refused by what is wrong with it."""
    change, code = RECORDS[name]
    lines = dict(members(data))["records"].splitlines(keepends=True)
    assert refused(replaced(data, "records", b"".join(change(lines))), tmp_path) == code


def test_closures_are_no_ledgers(ledger, tmp_path):
    """Where a whole ledger is wanted, a closure is refused before anything is unpacked."""
    with pytest.raises(LedgerError) as error:
        unpacked(bundle_world.closure(ledger), tmp_path, whole=True)
    assert error.value.code == "BUNDLE_PARTIAL"
    assert not list((tmp_path / "place").iterdir())


@pytest.mark.parametrize("what", ["link", "pipe", "folder", "absent"])
def test_only_regular_files_are_opened(what, data, tmp_path):
    """A link, a pipe or a folder under a bundle's name is refused at once."""
    path = tmp_path / "x.tar"
    makers = {
        "link": lambda: path.symlink_to(tmp_path),
        "pipe": lambda: os.mkfifo(path),
        "folder": path.mkdir,
        "absent": lambda: None,
    }
    makers[what]()
    with pytest.raises(LedgerError) as error:
        unpack(path, tmp_path)
    assert error.value.code == ("INPUT_MISSING" if what == "absent" else "UNSAFE_PATH")


def test_blobs_can_be_left_out_by_name_and_sort(ledger):
    """All blobs, the files of checkpoints or single ones are left out, and marked as left out."""
    data = bundle_world.whole(ledger)
    one = next(name for name, _ in members(data) if name.startswith("blobs/"))
    digest = "sha256:" + one.removeprefix("blobs/sha256/").replace("/", "")
    for left_out in (LeftOut(every=True), LeftOut(checkpoints=True), LeftOut(digests={digest})):
        stream = io.BytesIO()
        done = export_ledger(ledger, stream, left_out)
        assert done.blobs.left_out > 0
        names = [name for name, _ in members(stream.getvalue()) if name.startswith("blobs/")]
        assert len(names) == done.blobs.here
        lines = dict(members(stream.getvalue()))["blobs.jsonl"]
        assert lines.count(b'"left_out"') == done.blobs.left_out


def test_a_blob_that_is_missing_or_changed_gives_no_bundle(tmp_path):
    """A ledger that lacks a blob, or has other bytes under its name, is not exported as if it were whole."""
    folder = bundle_world.sealed(tmp_path / "ledger")
    with Ledger.read(folder) as ledger:
        digest = ledger.of_kind("snapshot.recorded")[-1].body["state"]["digest"]
    path = BlobStore(folder / "blobs").path(digest)
    path.chmod(0o600)
    path.write_bytes(path.read_bytes() + b"x")
    with pytest.raises(EvidenceError) as changed:
        bundle_world.whole(folder)
    assert changed.value.code == "BLOB_WRONG"
    path.unlink()
    with pytest.raises(EvidenceError) as missing:
        bundle_world.whole(folder)
    assert missing.value.code == "BLOB_MISSING"
    assert digest in missing.value.hint
