"""The RFC 6962 tree: roots, compact ranges and proofs."""

from __future__ import annotations

import base64
import json
import tracemalloc
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger import merkle
from ledger.errors import EvidenceError, UsageError
from ledger.merkle import CompactRange

PUBLIC = Path(__file__).resolve().parents[3] / "shared/vectors/public"
needs_public = pytest.mark.skipif(
    not PUBLIC.is_dir(), reason="../shared/vectors/public is not there"
)

LEAVES = [merkle.leaf_hash(b"entry %d" % number) for number in range(70)]


def mth(leaves):
    """MTH of RFC 6962 section 2.1, as written there."""
    if not leaves:
        return sha256(b"").digest()
    if len(leaves) == 1:
        return leaves[0]
    k = split(len(leaves))
    return sha256(b"\x01" + mth(leaves[:k]) + mth(leaves[k:])).digest()


def path(m, leaves):
    """PATH of RFC 6962 section 2.1.1, as written there."""
    if len(leaves) == 1:
        return []
    k = split(len(leaves))
    if m < k:
        return [*path(m, leaves[:k]), mth(leaves[k:])]
    return [*path(m - k, leaves[k:]), mth(leaves[:k])]


def subproof(m, leaves, complete):
    """SUBPROOF of RFC 6962 section 2.1.2, as written there."""
    if m == len(leaves):
        return [] if complete else [mth(leaves)]
    k = split(len(leaves))
    if m <= k:
        return [*subproof(m, leaves[:k], complete), mth(leaves[k:])]
    return [*subproof(m - k, leaves[k:], False), mth(leaves[:k])]


def split(size):
    """The largest power of two below a size."""
    k = 1
    while k * 2 < size:
        k *= 2
    return k


def refused(check, *arguments):
    """Whether a check raises the one error it may raise."""
    code = None
    try:
        check(*arguments)
    except EvidenceError as error:
        code = error.code
    assert code in {None, "PROOF_INVALID"}
    return code is not None


def test_hashes_are_those_of_rfc_6962():
    """Leaf and node hashes carry their prefix byte, and the empty root is the hash of nothing."""
    assert merkle.leaf_hash(b"") == sha256(b"\x00").digest()
    assert merkle.node_hash(LEAVES[0], LEAVES[1]) == mth(LEAVES[:2])
    assert merkle.EMPTY_ROOT.hex().startswith("e3b0c44298fc1c14")


@pytest.mark.parametrize("size", range(len(LEAVES) + 1))
def test_root_is_that_of_the_recursive_definition(size):
    """The incremental root of every size equals the definition in RFC 6962."""
    assert merkle.root(LEAVES[:size]) == mth(LEAVES[:size])


@given(size=st.integers(0, 70), split_at=st.integers(0, 70))
def test_restored_range_goes_on_where_it_stopped(size, split_at):
    """A range restored from its hashes and appended to gives the root of all leaves."""
    split_at = min(size, split_at)
    first = CompactRange()
    for leaf in LEAVES[:split_at]:
        first.append(leaf)
    restored = CompactRange.from_hashes(first.size, first.to_hashes())
    for leaf in LEAVES[split_at:size]:
        restored.append(leaf)
    assert (restored.size, restored.root()) == (size, mth(LEAVES[:size]))
    assert (first.size, first.root()) == (split_at, mth(LEAVES[:split_at]))


def test_copy_is_independent():
    """Appending to a copy leaves the original as it was."""
    original = CompactRange()
    original.append(LEAVES[0])
    copied = original.copy()
    copied.append(LEAVES[1])
    assert (original.size, original.root()) == (1, LEAVES[0])
    assert (copied.size, copied.root()) == (2, mth(LEAVES[:2]))


@pytest.mark.parametrize(
    ("size", "hashes"),
    [
        pytest.param(-1, [], id="negative size"),
        pytest.param(0, [LEAVES[0]], id="a hash for no leaves"),
        pytest.param(3, [LEAVES[0]], id="one hash too few"),
        pytest.param(4, [LEAVES[0], LEAVES[1]], id="one hash too many"),
        pytest.param(1, [b""], id="empty hash"),
        pytest.param(1, [LEAVES[0][:31]], id="short hash"),
        pytest.param(1, [LEAVES[0] + b"\0"], id="long hash"),
    ],
)
def test_impossible_compact_range_is_refused(size, hashes):
    """A range needs one 32-byte hash for each bit set in its size."""
    assert refused(CompactRange.from_hashes, size, hashes)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 7, 8, 13, 16, 31, 33])
def test_inclusion_proofs_are_those_of_rfc_6962_and_verify(size):
    """For every leaf the streamed proof is the RFC's audit path and leads to the root."""
    root = mth(LEAVES[:size])
    for index in range(size):
        proof = merkle.inclusion_proof(iter(LEAVES), index, size)
        assert proof == path(index, LEAVES[:size])
        merkle.verify_inclusion(LEAVES[index], index, size, proof, root)


@pytest.mark.parametrize("new_size", [1, 2, 3, 4, 6, 7, 8, 9, 16, 21, 33])
def test_consistency_proofs_are_those_of_rfc_6962_and_verify(new_size):
    """For every earlier size the streamed proof is the RFC's and connects both roots."""
    new_root = mth(LEAVES[:new_size])
    for old_size in range(new_size + 1):
        proof = merkle.consistency_proof(iter(LEAVES), old_size, new_size)
        assert proof == (subproof(old_size, LEAVES[:new_size], True) if old_size else [])
        old_root = mth(LEAVES[:old_size])
        merkle.verify_consistency(old_size, new_size, old_root, new_root, proof)


@given(st.data())
def test_changed_inclusion_proof_is_refused(data):
    """A flipped bit, another index, a dropped or an added hash breaks an inclusion proof."""
    size = data.draw(st.integers(1, 70))
    index = data.draw(st.integers(0, size - 1))
    proof = merkle.inclusion_proof(LEAVES, index, size)
    root = mth(LEAVES[:size])
    other = data.draw(st.integers(-1, 80).filter(lambda number: number != index))
    assert refused(merkle.verify_inclusion, LEAVES[index], other, size, proof, root)
    assert refused(merkle.verify_inclusion, flip(data, LEAVES[index]), index, size, proof, root)
    assert refused(merkle.verify_inclusion, LEAVES[index], index, size, proof, flip(data, root))
    changed = change(data, proof)
    assert refused(merkle.verify_inclusion, LEAVES[index], index, size, changed, root)


@given(st.data())
def test_changed_consistency_proof_is_refused(data):
    """A flipped bit in a root or a hash, a dropped or an added hash breaks a consistency proof."""
    new_size = data.draw(st.integers(2, 70))
    old_size = data.draw(st.integers(1, new_size - 1))
    proof = merkle.consistency_proof(LEAVES, old_size, new_size)
    old_root, new_root = mth(LEAVES[:old_size]), mth(LEAVES[:new_size])
    check = merkle.verify_consistency
    assert refused(check, old_size, new_size, flip(data, old_root), new_root, proof)
    assert refused(check, old_size, new_size, old_root, flip(data, new_root), proof)
    assert refused(check, old_size, new_size, old_root, new_root, change(data, proof))
    assert refused(check, new_size, old_size, new_root, old_root, proof)


def flip(data, item):
    """Bytes with one drawn bit flipped."""
    bit = data.draw(st.integers(0, len(item) * 8 - 1))
    changed = bytearray(item)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def change(data, proof):
    """The proof with one hash flipped, dropped, cut or added, at a drawn place."""
    place = data.draw(st.integers(0, max(len(proof) - 1, 0)))
    added = data.draw(st.sampled_from([LEAVES[0], b"", bytes(32)]))
    longer = [[added, *proof], [*proof, added]]
    if not proof:
        return data.draw(st.sampled_from(longer))
    shorter = [*proof[:place], *proof[place + 1 :]]
    cut = [*proof[:place], proof[place][:-1], *proof[place + 1 :]]
    flipped = [*proof[:place], flip(data, proof[place]), *proof[place + 1 :]]
    return data.draw(st.sampled_from([*longer, shorter, cut, flipped]))


@pytest.mark.parametrize(
    ("old_size", "new_size", "old_root", "new_root", "proof"),
    [
        pytest.param(0, 3, merkle.EMPTY_ROOT, mth(LEAVES[:3]), [LEAVES[0]], id="empty, with proof"),
        pytest.param(0, 3, LEAVES[0], mth(LEAVES[:3]), [], id="empty, with another root"),
        pytest.param(0, 0, LEAVES[0], LEAVES[0], [], id="both empty, with another root"),
        pytest.param(1, 1, LEAVES[0], LEAVES[1], [], id="same size, two roots"),
        pytest.param(1, 1, LEAVES[0], LEAVES[0], [LEAVES[0]], id="same tree, with proof"),
        pytest.param(1, 2, LEAVES[0], mth(LEAVES[:2]), [], id="larger, without proof"),
        pytest.param(-1, 2, LEAVES[0], mth(LEAVES[:2]), [LEAVES[1]], id="negative size"),
        pytest.param(2, 1, LEAVES[0], LEAVES[0], [], id="shrinking"),
    ],
)
def test_consistency_at_the_edges_is_refused(old_size, new_size, old_root, new_root, proof):
    """Empty, equal and shrinking trees have exactly one acceptable proof, or none."""
    assert refused(merkle.verify_consistency, old_size, new_size, old_root, new_root, proof)


def test_overlong_proof_is_refused_under_roots_made_to_fit_it():
    """A size bounds its proof: one hash more is refused even where the claimed roots contain it."""
    a, b, c, d, more = LEAVES[:5]
    node = merkle.node_hash
    assert refused(merkle.verify_inclusion, a, 0, 1, [more], node(more, a))
    left, right = node(a, b), node(c, d)
    roots = (node(more, node(left, c)), node(more, node(left, right)))
    assert refused(merkle.verify_consistency, 3, 4, *roots, [c, d, left, more])


def test_anything_extends_the_empty_tree():
    """From the empty tree the empty proof is the right one."""
    merkle.verify_consistency(0, 3, merkle.EMPTY_ROOT, mth(LEAVES[:3]), [])
    merkle.verify_consistency(0, 0, merkle.EMPTY_ROOT, merkle.EMPTY_ROOT, [])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        pytest.param(lambda: merkle.inclusion_proof(LEAVES, 3, 3), "no leaf 3", id="beyond"),
        pytest.param(lambda: merkle.inclusion_proof(LEAVES, -1, 3), "no leaf -1", id="negative"),
        pytest.param(lambda: merkle.inclusion_proof([], 0, 0), "no leaf 0", id="empty tree"),
        pytest.param(lambda: merkle.inclusion_proof(LEAVES[:4], 0, 5), "end at 4", id="cut stream"),
        pytest.param(lambda: merkle.consistency_proof(LEAVES, 4, 3), "extend", id="shrinking"),
        pytest.param(lambda: merkle.consistency_proof(LEAVES[:4], 3, 5), "end at 4", id="cut"),
    ],
)
def test_proof_that_cannot_be_made_is_the_caller_s_mistake(make, message):
    """Asking for a leaf or a size that is not there says so; no short proof comes back."""
    with pytest.raises(UsageError, match=message) as caught:
        make()
    assert caught.value.code == "PROOF_OUT_OF_RANGE"


def test_streamed_proof_keeps_a_handful_of_hashes():
    """A proof over 100,000 leaves from a stream needs a few kilobytes, not the leaves."""
    size = 100_000
    stream = (merkle.leaf_hash(b"%d" % number) for number in range(size))
    tracemalloc.start()
    try:
        proof = merkle.inclusion_proof(stream, 33_333, size)
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(proof) == 17
    assert peak_bytes < 32_000


@needs_public
def test_public_inclusion_cases():
    """All 98 inclusion cases of transparency-dev/merkle get the answer they name."""
    assert disagreements("inclusion", ("leafHash", "leafIdx", "treeSize", "proof", "root")) == (
        98,
        [],
    )


@needs_public
def test_public_consistency_cases():
    """All 98 consistency cases get the answer they name, but one whose roots are 12-byte placeholders."""
    fields = ("size1", "size2", "root1", "root2", "proof")
    assert disagreements("consistency", fields) == (
        98,
        ["additional/sizes-are-equal-one-and-proof-is-empty.json"],
    )


def disagreements(kind, fields):
    """How many public cases there are, and which of them get another answer than they name."""
    check = {"inclusion": merkle.verify_inclusion, "consistency": merkle.verify_consistency}[kind]
    files = sorted((PUBLIC / "merkle" / kind).rglob("*.json"))
    wrong = []
    for file in files:
        case = json.loads(file.read_bytes())
        arguments = [unpack(case[field]) for field in fields]
        if refused(check, *arguments) != case["wantErr"]:
            wrong.append(str(file.relative_to(PUBLIC / "merkle" / kind)))
    return len(files), wrong


def unpack(value):
    """A field of a public case: base64, a list of it, null or a number."""
    if isinstance(value, str):
        return base64.b64decode(value)
    if isinstance(value, int):
        return value
    return [base64.b64decode(item) for item in value or []]


@needs_public
@pytest.mark.parametrize("size", range(1, 16))
def test_public_log_s_tiles_hold_our_leaf_hashes(size):
    """The level-0 tile of tessera's test log at every width is our leaf hashes of its entries."""
    words = "one two three four five six seven eit nain ten ileven twelf threeten fourten fivten"
    leaves = [merkle.leaf_hash(word.encode()) for word in words.split()]
    tile = PUBLIC / "tessera/log/tile/0/000.p" / str(size)
    assert tile.read_bytes() == b"".join(leaves[:size])
