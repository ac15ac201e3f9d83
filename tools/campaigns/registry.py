"""The campaigns there are: a name, the function that runs it, and what it shows."""

from __future__ import annotations

from collections.abc import Callable

from entries import Entry

from campaigns.report import Outcome, Settings

Campaign = Entry[Callable[[Settings], Outcome]]

CAMPAIGNS = {
    item.name: item
    for item in (
        Campaign(
            "leaks",
            "campaigns.leaks",
            "1,000 planted leaks are found, at least 95 in 100, with at most 1 false alarm in 100",
        ),
        Campaign(
            "groups",
            "campaigns.groups",
            "rollout groups with one fault are refused by its code, and good ones are accepted",
        ),
        Campaign(
            "tamper-memory",
            "campaigns.tamper_memory",
            "changed entries and record sequences are refused, the first bad record named",
        ),
        Campaign(
            "sft-kill",
            "campaigns.sft_kill",
            "supervised runs killed at random moments end in the bytes of the undisturbed run",
        ),
        Campaign(
            "tamper-file",
            "campaigns.tamper_file",
            "changed files of a ledger are refused or change no row, and nothing hangs or escapes raw",
        ),
        Campaign(
            "keys",
            "campaigns.keys",
            "crafted keys and signatures are judged by one strict rule, and libsodium by how much it differs",
        ),
        Campaign(
            "offices",
            "campaigns.offices",
            "whoever enrols, revokes, rotates, writes or states out of turn is refused by the right code",
        ),
        Campaign(
            "suspects",
            "campaigns.suspects",
            "what a revocation reaches back to, and what it voids, is what brute force finds",
        ),
        Campaign(
            "rollback",
            "campaigns.rollback",
            "older copies, cut tails and other histories are noticed, a restore by root goes on, no false alarm",
        ),
        Campaign(
            "writers",
            "campaigns.writers",
            "eight processes append at once, to a file and to a server that is killed: no fork, nothing acknowledged lost",
        ),
        Campaign(
            "crash-kill",
            "campaigns.crash_kill",
            "kill -9 of any of four appending processes loses nothing acknowledged and leaves nothing half there",
        ),
        Campaign(
            "crash-wal",
            "campaigns.crash_wal",
            "a write-ahead log cut or overwritten anywhere leaves a prefix, and a lost tail is told",
        ),
        Campaign(
            "crash-faults",
            "campaigns.crash_faults",
            "a system call that fails is one clean error or a warning, and loses nothing acknowledged",
        ),
        Campaign(
            "crash-readers",
            "campaigns.crash_readers",
            "readers see a whole prefix while others append, and never stop a writer",
        ),
        Campaign(
            "hostile",
            "campaigns.hostile",
            "crafted files and words end in one clear error, bounded, with nothing left behind",
        ),
        Campaign(
            "bundles",
            "campaigns.bundles",
            "changed bundles are refused or hold the same records, and a killed import leaves nothing or a whole ledger",
        ),
        Campaign(
            "fuzz",
            "campaigns.fuzz",
            "no bytes make a parser raise, hang or grow; what is read is written back the same",
        ),
    )
}
