"""Protection and proof: real hashes, files that are whole or absent, the same bytes every time."""

import base64
import hashlib
import io
import json
import zipfile
from pathlib import Path

import pytest

from trunkline_profiles.executor.handlers import artifact, decide, evidence, protect
from trunkline_profiles.executor.handlers.problems import BadWork
from trunkline_profiles.executor.handlers.store import Store

TEXT = b"a contract\n" * 1000


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def complete(store: Store, document: str = "doc-1") -> None:
    """Everything a proof consists of, with stand-ins for what services give."""
    protect.protect(store, document, io.BytesIO(TEXT))
    for name in evidence.PARTS[1:]:
        store.put(document, name, name.encode())


def test_protect_keeps_the_hash_and_a_copy(store: Store) -> None:
    record = protect.protect(store, "doc-1", io.BytesIO(TEXT))
    assert (record.sha256, record.size) == (hashlib.sha256(TEXT).hexdigest(), len(TEXT))
    assert store.get("doc-1", evidence.DOCUMENT) == TEXT
    assert protect.read_record(store, "doc-1") == record
    assert protect.confirm(store, "doc-1") == record


def test_protect_may_be_repeated_but_not_for_another_content(store: Store) -> None:
    """RC-49: a second attempt changes nothing; a protected document cannot be replaced."""
    first = protect.protect(store, "doc-1", io.BytesIO(TEXT))
    assert protect.protect(store, "doc-1", io.BytesIO(TEXT)) == first
    with pytest.raises(BadWork, match="another content"):
        protect.protect(store, "doc-1", io.BytesIO(b"other"))
    assert store.get("doc-1", evidence.DOCUMENT) == TEXT
    assert store.names("doc-1") == {evidence.DOCUMENT, evidence.RECORD}


def test_a_changed_copy_is_noticed(store: Store) -> None:
    protect.protect(store, "doc-1", io.BytesIO(TEXT))
    store.path("doc-1", evidence.DOCUMENT).write_bytes(b"forged")
    with pytest.raises(BadWork, match="was changed"):
        protect.confirm(store, "doc-1")


def test_a_document_comes_from_the_inbox_or_the_payload(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(TEXT)
    with protect.open_document(tmp_path, path="a.txt", content=None) as stream:
        assert stream.read() == TEXT
    text = base64.b64encode(TEXT).decode()
    with protect.open_document(tmp_path, path=None, content=text) as stream:
        assert stream.read() == TEXT


@pytest.mark.parametrize(
    ("path", "content", "problem"),
    [
        ("../secret", None, "leads out"),
        ("/etc/passwd", None, "leads out"),
        ("nothing", None, "no file"),
        (".", None, "no file"),
        (None, "%%%", "not base64"),
        (None, None, "either"),
        ("a", "YQ==", "either"),
    ],
)
def test_what_cannot_be_read_is_refused(
    tmp_path: Path, path: str | None, content: str | None, problem: str
) -> None:
    inbox = tmp_path / "inbox"
    inbox.mkdir()
    with pytest.raises(BadWork, match=problem):
        protect.open_document(inbox, path=path, content=content)


@pytest.mark.parametrize("name", ["", "../x", "a/b", ".hidden", "x" * 101, "a\x00b", "a b"])
def test_no_name_leads_out_of_the_store(store: Store, name: str) -> None:
    with pytest.raises(BadWork, match="is not a valid name"):
        store.put(name, evidence.RECORD, b"")
    with pytest.raises(BadWork, match="is not a valid name"):
        store.put("doc-1", name, b"")


def test_a_crash_while_writing_leaves_the_old_file(store: Store) -> None:
    """RC-49: a reader never sees half of it."""
    store.put("doc-1", evidence.RECORD, b"old")

    def crash() -> None:
        with store.writing("doc-1", evidence.RECORD) as stream:
            stream.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        crash()
    assert store.get("doc-1", evidence.RECORD) == b"old"
    assert [entry.name for entry in (store.root / "doc-1").iterdir()] == [evidence.RECORD]


def test_the_proof_is_the_same_at_every_build(store: Store, tmp_path: Path) -> None:
    complete(store)
    first = artifact.build(store, "doc-1")
    data = store.need("doc-1", evidence.BUNDLE)
    assert artifact.build(store, "doc-1") == first
    assert store.need("doc-1", evidence.BUNDLE) == data
    other = Store(tmp_path / "other")
    complete(other)
    assert artifact.build(other, "doc-1").sha256 == first.sha256 == hashlib.sha256(data).hexdigest()


def test_the_proof_lists_and_holds_all_evidence(store: Store) -> None:
    complete(store)
    bundle = artifact.build(store, "doc-1")
    parts = artifact.contents(store.need("doc-1", evidence.BUNDLE))
    assert set(parts) == {*evidence.PARTS, "manifest.json"} == set(bundle.parts)
    manifest = json.loads(parts["manifest.json"])
    assert manifest["sha256"] == hashlib.sha256(TEXT).hexdigest()


def test_a_forged_part_does_not_fit_the_manifest(store: Store) -> None:
    complete(store)
    artifact.build(store, "doc-1")
    parts = artifact.contents(store.need("doc-1", evidence.BUNDLE))
    forged = io.BytesIO()
    with zipfile.ZipFile(forged, "w") as archive:
        for name, data in parts.items():
            archive.writestr(name, b"forged" if name == evidence.STAMP else data)
    with pytest.raises(BadWork, match=evidence.STAMP):
        artifact.contents(forged.getvalue())


def test_a_proof_without_all_evidence_is_refused(store: Store) -> None:
    complete(store)
    store.path("doc-1", evidence.RESPONSE).unlink()
    with pytest.raises(BadWork, match=evidence.RESPONSE):
        artifact.build(store, "doc-1")
    assert evidence.BUNDLE not in store.names("doc-1")


def test_rc_33_decisions_follow_from_the_evidence() -> None:
    """RC-33, RC-63: what is missing is run, the proof last, and then nothing more."""
    slow = ("run_tsa", "submit_anchor_polygon", "submit_anchor_bitcoin")
    known = {evidence.RECORD}
    assert decide.next_steps(set()) == ()
    assert decide.next_steps(known) == slow
    known |= {evidence.STAMP, evidence.anchor_in("bitcoin")}
    assert decide.next_steps(known) == ("submit_anchor_polygon",)
    known |= {evidence.anchor_in("polygon")}
    assert decide.next_steps(known) == ("build_artifact",)
    assert decide.next_steps(known | {evidence.BUNDLE}) == ()
