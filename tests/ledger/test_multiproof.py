"""One proof for many leaves: complete for every choice, and good for nothing else."""

from __future__ import annotations

import itertools
import random

import pytest

from ledger import merkle, multiproof
from ledger.errors import EvidenceError, UsageError

LEAVES = [merkle.leaf_hash(b"%d" % number) for number in range(70)]


def made(chosen, size):
    """The proof of some leaves of a tree, and those leaves."""
    proof = list(multiproof.prove(LEAVES, chosen, size))
    return proof, [(index, LEAVES[index]) for index in chosen]


@pytest.mark.parametrize("size", range(1, 9))
def test_every_choice_of_a_small_tree_is_proven(size):
    """Whichever leaves are chosen, their proof leads to the root that RFC 6962 gives."""
    root = merkle.root(LEAVES[:size])
    for count in range(1, size + 1):
        for chosen in itertools.combinations(range(size), count):
            proof, leaves = made(chosen, size)
            multiproof.verify(leaves, size, proof, root)


def test_one_leaf_needs_the_hashes_of_its_audit_path():
    """For one leaf the hashes are those of the RFC's audit path, in the order of the leaves."""
    for size in (1, 2, 5, 64, 70):
        for index in (0, size // 2, size - 1):
            proof, _ = made([index], size)
            assert sorted(proof) == sorted(merkle.inclusion_proof(LEAVES, index, size))


def test_whatever_is_changed_leads_to_no_root():
    """A hash changed, taken out, added or moved, a leaf at another place, another size: each is refused."""
    rng = random.Random(1)
    root = merkle.root(LEAVES)
    chosen = [3, 4, 17, 40, 69]
    proof, leaves = made(chosen, len(LEAVES))
    multiproof.verify(leaves, len(LEAVES), proof, root)
    spoilt = []
    for place, item in enumerate(proof):
        flipped = bytes([item[0] ^ 1]) + item[1:]
        spoilt += [
            (leaves, 70, [*proof[:place], flipped, *proof[place + 1 :]]),
            (leaves, 70, proof[:place] + proof[place + 1 :]),
            (leaves, 70, [*proof[:place], rng.randbytes(32), *proof[place:]]),
            (leaves, 70, [*proof[:place], item[:31], *proof[place + 1 :]]),
        ]
    spoilt += [
        (leaves, 71, proof),
        (leaves, 69, proof),
        (leaves[::-1], 70, proof),
        ([*leaves, leaves[-1]], 70, proof),
        ([(index + 1, leaf) for index, leaf in leaves[:-1]], 70, proof),
        ([], 70, proof),
        ([(-1, LEAVES[0])], 70, proof),
        (leaves, 1 << 62, proof),
    ]
    for bad in spoilt:
        with pytest.raises(EvidenceError) as refused:
            multiproof.verify(*bad, root)
        assert refused.value.code == "PROOF_INVALID"


@pytest.mark.parametrize("chosen", [[], [70], [-1]])
def test_leaves_that_are_not_there_cannot_be_proven(chosen):
    """A proof of no leaf, or of one that the tree has not, is not made."""
    with pytest.raises(UsageError) as refused:
        list(multiproof.prove(LEAVES, chosen, 70))
    assert refused.value.code == "PROOF_OUT_OF_RANGE"
