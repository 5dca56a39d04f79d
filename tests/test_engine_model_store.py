"""The folder of models: what counts as complete, what a check finds, what a removal frees; folders used in place."""

import json
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from toy_hub import INDEX, ToyHub, codec_files, published, serving, sha256, speaker_files, write_folder

from studio.engine.model_catalogue import (
    MODELS,
    MOSS_LOCAL,
    MOSS_NANO,
    KnownFile,
    MemoryNeed,
    ModelEntry,
    find_model,
)
from studio.engine.model_download import download_model
from studio.engine.model_errors import FolderUnfit, MemoryTooSmall, ModelAbsent, size
from studio.engine.model_files import Digests, is_hostile_path, is_plain_name
from studio.engine.model_folder import adopt_folder
from studio.engine.model_manifest import LOCAL, MANIFEST, StoredFile, read_manifest
from studio.engine.model_memory import _available_on_linux, _left_in_group, check_memory, free_memory, need_of
from studio.engine.model_store import ModelStore
from studio.errors import SettingError, UnknownModel

WEIGHTS = "model.safetensors"
HUB = "https://hub.example"


@pytest.fixture
def hub() -> Iterator[ToyHub]:
    with serving(ToyHub()) as hub:
        yield hub


@pytest.fixture
def entry(hub: ToyHub) -> ModelEntry:
    return published(hub)


@pytest.fixture
def store(tmp_path: Path) -> ModelStore:
    return ModelStore(tmp_path / "models")


@pytest.fixture
def filled(store: ModelStore, hub: ToyHub, entry: ModelEntry) -> ModelStore:
    download_model(entry, store, hub.url)
    return store


def speaker_folder(store: ModelStore, entry: ModelEntry) -> Path:
    return store.record(entry.language_model, entry.language_model.revision)


def own_folder(tmp_path: Path, speaker: dict[str, bytes] | None = None) -> Path:
    write_folder(tmp_path / "mine" / "Speaker", speaker or speaker_files())
    write_folder(tmp_path / "mine" / "Codec", codec_files())
    return tmp_path / "mine"


def test_nothing_is_made_by_looking(store: ModelStore, entry: ModelEntry, tmp_path: Path) -> None:
    with pytest.raises(ModelAbsent, match=r"`models get toy` downloads about 400\.0 kB from https://hub\.example"):
        store.folders(entry, HUB)
    assert [holding.num_bytes for holding in store.holdings(entry)] == [0, 0]
    assert not (tmp_path / "models").exists()


def test_a_model_without_its_manifest_or_with_a_short_file_is_not_complete(filled, entry) -> None:
    folder = speaker_folder(filled, entry)
    weights = (folder / WEIGHTS).read_bytes()
    (folder / WEIGHTS).write_bytes(weights[:-1])
    assert filled.find(entry.language_model) is None
    (folder / WEIGHTS).write_bytes(weights)
    assert filled.find(entry.language_model) is not None
    (folder / MANIFEST).unlink()
    with pytest.raises(ModelAbsent):
        filled.folders(entry, HUB)


def test_get_makes_whole_what_was_lost(filled, entry, hub) -> None:
    folder = speaker_folder(filled, entry)
    (folder / WEIGHTS).unlink()
    hub.requests.clear()
    download_model(entry, filled, hub.url)
    assert {request.path.rsplit("/", 1)[1] for request in hub.requests if request.start or request.sent > 10_000} == {
        WEIGHTS
    }
    assert (folder / WEIGHTS).read_bytes() == speaker_files()[WEIGHTS]


def test_check_finds_one_flipped_bit_and_a_file_that_is_gone(filled, entry) -> None:
    assert {finding.fault for finding in filled.check(entry, HUB)} == {None}
    weights = speaker_folder(filled, entry) / WEIGHTS
    content = bytearray(weights.read_bytes())
    content[150_000] ^= 1
    weights.write_bytes(content)
    (speaker_folder(filled, entry) / "config.json").unlink()
    (speaker_folder(filled, entry) / "tokenizer.model").write_bytes(b"short")
    told = []
    findings = filled.check(entry, HUB, progress=lambda file, done, total: told.append((file, done, total)))
    assert {finding.file: finding.fault for finding in findings if finding.fault} == {
        f"Toys/Speaker/{WEIGHTS}": "its SHA-256 is another",
        "Toys/Speaker/config.json": "it cannot be read (No such file or directory)",
        "Toys/Speaker/tokenizer.model": "it has 5 bytes and should have 2,000",
    }
    assert (f"Toys/Speaker/{WEIGHTS}", 300_000, 300_000) in told


def test_check_of_a_model_that_was_never_complete_says_where_to_get_it(store, entry) -> None:
    with pytest.raises(ModelAbsent):
        store.check(entry, HUB)


def test_a_file_that_goes_while_it_is_looked_at_counts_nothing(filled, entry, monkeypatch) -> None:
    before = sum(holding.num_bytes for holding in filled.holdings(entry))
    gone, is_dir = speaker_folder(filled, entry) / WEIGHTS, Path.is_dir

    def removed_meanwhile(path: Path) -> bool:
        if path == gone:
            path.unlink(missing_ok=True)
            return False
        return is_dir(path)

    monkeypatch.setattr(Path, "is_dir", removed_meanwhile)
    assert sum(holding.num_bytes for holding in filled.holdings(entry)) == before - 300_000


def test_remove_frees_what_it_says_unfinished_files_too(filled, entry, tmp_path) -> None:
    (speaker_folder(filled, entry) / "left.partial").write_bytes(bytes(1_234))
    old = filled.record(entry.codec, "0" * 40)
    old.mkdir()
    (old / "model.safetensors.partial").write_bytes(bytes(777))
    before = disk(tmp_path / "models")
    assert sum(holding.num_bytes for holding in filled.holdings(entry)) == before
    assert filled.remove(entry) == before - disk(tmp_path / "models")
    assert before > 400_000
    assert [path for path in (tmp_path / "models").rglob("*") if path.is_file() and path.suffix != ".lock"] == []
    assert filled.remove(entry) == 0


def test_remove_follows_no_link_out_of_the_store(filled, entry, tmp_path) -> None:
    outside = write_folder(tmp_path / "outside", {"precious": b"1"})
    (filled.record(entry.codec, "linked")).symlink_to(outside)
    filled.remove(entry)
    assert (outside / "precious").exists()


@pytest.mark.parametrize(
    "change",
    [
        {"format": 2},
        {"revision": "../../etc"},
        {"revision": "f" * 40},
        {"repository": "Others/Speaker"},
        {"files": []},
        {"files": [{"name": "../x", "num_bytes": 1, "sha256": "0" * 64, "check": "none"}]},
        {"files": [{"name": "x", "num_bytes": -1, "sha256": "0" * 64, "check": "none"}]},
        {"files": [{"name": "x", "num_bytes": 1, "sha256": "0" * 63, "check": "none"}]},
        {"files": 7},
        {"more": 1},
    ],
    ids=str,
)
def test_a_manifest_that_was_changed_counts_as_none(filled, entry, change: dict[str, object]) -> None:
    path = speaker_folder(filled, entry) / MANIFEST
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    assert filled.find(entry.language_model) is None


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff", b"[" * 100_000, b"null"], ids=range(6))
def test_a_damaged_manifest_counts_as_none_and_the_log_says_so(filled, entry, content: bytes, caplog) -> None:
    record = speaker_folder(filled, entry)
    (record / MANIFEST).write_bytes(content)
    assert read_manifest(record) is None
    assert "is damaged and does not count" in caplog.text


def test_the_name_of_the_weights_is_that_of_their_bytes(filled, entry, tmp_path, hub) -> None:
    downloaded = filled.folders(entry, HUB).revision
    own = ModelStore(tmp_path / "other")
    adopt_folder(own, entry, own_folder(tmp_path))
    assert own.folders(entry, HUB).revision == downloaded
    (tmp_path / "mine/Speaker/config.json").write_bytes(b"{}")
    adopt_folder(own, entry, tmp_path / "mine")
    assert own.folders(entry, HUB).revision != downloaded


def test_a_folder_of_ones_own_is_used_in_place_and_never_removed(store, entry, tmp_path) -> None:
    mine = own_folder(tmp_path)
    manifests = adopt_folder(store, entry, mine)
    assert {file.name for file in manifests[0].files} == {"config.json", "tokenizer.model", WEIGHTS}
    assert {file.check for file in manifests[0].files} == {"none"}
    folders = store.folders(entry, HUB)
    assert (folders.language_model, folders.codec) == (mine / "Speaker", mine / "Codec")
    assert disk(tmp_path / "models") < 5_000
    assert {finding.fault for finding in store.check(entry, HUB)} == {None}
    store.remove(entry)
    assert store.find(entry.codec) is None
    assert (mine / "Speaker" / WEIGHTS).read_bytes() == speaker_files()[WEIGHTS]


def test_a_file_the_catalogue_knows_is_recognised_in_a_folder(store, entry, tmp_path) -> None:
    known = KnownFile(name=WEIGHTS, num_bytes=300_000, sha256=sha256(speaker_files()[WEIGHTS]))
    wiser = replace(entry, language_model=replace(entry.language_model, known=(known,)))
    speaker, _ = adopt_folder(store, wiser, own_folder(tmp_path))
    assert {file.name: file.check for file in speaker.files}[WEIGHTS] == "catalogue"


@pytest.mark.parametrize(
    ("speaker", "codec"),
    [
        ("Toys/Speaker", "Toys/Codec"),
        ("Toys--Speaker", "Toys--Codec"),
        (f"Toys--Speaker/{'a' * 40}", f"Toys--Codec/{'b' * 40}"),
        ("models--Toys--Speaker/snapshots/abc", "models--Toys--Codec/snapshots/def"),
        ("Speaker-100M", "Codec"),
        ("models--Toys--Speaker-100M/snapshots/abc", "Toys/Codec"),
    ],
)
def test_a_folder_may_be_laid_out_as_people_have_them(store, entry, tmp_path, speaker: str, codec: str) -> None:
    entry = replace(entry, language_model=replace(entry.language_model, other_names=("Toys/Speaker-100M",)))
    write_folder(tmp_path / "mine" / speaker, speaker_files())
    write_folder(tmp_path / "mine" / codec, codec_files())
    adopt_folder(store, entry, tmp_path / "mine")
    assert store.folders(entry, HUB).language_model == tmp_path / "mine" / speaker


def test_the_hubs_own_cache_of_links_can_be_used(store, entry, tmp_path) -> None:
    blobs = write_folder(tmp_path / "blobs", speaker_files())
    snapshot = tmp_path / "cache/models--Toys--Speaker/snapshots/abc"
    snapshot.mkdir(parents=True)
    for name in ("config.json", "tokenizer.model", WEIGHTS):
        (snapshot / name).symlink_to(blobs / name)
    write_folder(tmp_path / "cache/Codec", codec_files())
    adopt_folder(store, entry, tmp_path / "cache")
    assert {finding.fault for finding in store.check(entry, HUB)} == {None}


def test_a_folder_that_does_not_hold_the_model_is_refused_and_nothing_changes(filled, entry, tmp_path) -> None:
    with pytest.raises(FolderUnfit, match="there is no such folder"):
        adopt_folder(filled, entry, tmp_path / "nowhere")
    mine = own_folder(tmp_path)
    (mine / "Codec" / "model-00002-of-00002.safetensors").unlink()
    with pytest.raises(FolderUnfit, match=r"names 'model-00002-of-00002\.safetensors', which is not there"):
        adopt_folder(filled, entry, mine)
    (mine / "Codec" / INDEX).write_bytes(b"{")
    with pytest.raises(FolderUnfit, match="its index is damaged"):
        adopt_folder(filled, entry, mine)
    (mine / "Codec" / "config.json").unlink()
    with pytest.raises(FolderUnfit, match=r"a folder 'Codec' in it should hold config\.json, model\.safetensors or"):
        adopt_folder(filled, entry, mine)
    assert filled.folders(entry, HUB).codec == filled.record(entry.codec, entry.codec.revision)


def test_of_two_revisions_in_a_folder_none_is_guessed(store, entry, tmp_path) -> None:
    for revision in "ab":
        write_folder(tmp_path / "mine/Toys--Speaker" / revision, speaker_files())
    write_folder(tmp_path / "mine/Codec", codec_files())
    with pytest.raises(FolderUnfit, match="more than one revision"):
        adopt_folder(store, entry, tmp_path / "mine")


def test_a_folder_that_changed_is_said_and_no_other_copy_taken_until_one_is_asked_for(
    filled, entry, hub, tmp_path
) -> None:
    mine = own_folder(tmp_path)
    adopt_folder(filled, entry, mine)
    (mine / "Speaker" / WEIGHTS).rename(tmp_path / "elsewhere")
    with pytest.raises(FolderUnfit, match=r"model\.safetensors is gone or has another size"):
        filled.folders(entry, HUB)
    download_model(entry, filled, hub.url)
    assert filled.folders(entry, HUB).language_model == speaker_folder(filled, entry)
    assert filled.folders(entry, HUB).codec == mine / "Codec"
    assert not filled.record(entry.language_model, LOCAL).exists()


def test_two_who_change_one_repository_take_turns(store, entry) -> None:
    held, order = threading.Event(), []

    def second() -> None:
        held.wait()
        with store.locked(entry.codec, threading.Event()):
            order.append("second")

    thread = threading.Thread(target=second)
    thread.start()
    with store.locked(entry.codec, threading.Event()):
        held.set()
        thread.join(0.5)
        order.append("first")
    thread.join()
    assert order == ["first", "second"]


@pytest.mark.parametrize(
    "name",
    [
        *("", ".", "..", ".hidden", "a/b", "a\\b", "a:b", "a\0", "a\n", "trailing.", "é", "-x", "x" * 129),
        *("CON", "nul.json", "Com1.bin"),
    ],
)
def test_a_name_that_is_no_plain_file_everywhere_is_refused(name: str) -> None:
    assert not is_plain_name(name)
    with pytest.raises(ValueError, match="no file name"):
        StoredFile(name=name, num_bytes=1, sha256="0" * 64, check="none")


def test_plain_names_and_harmless_paths_pass() -> None:
    assert all(
        map(is_plain_name, ("config.json", "model-00001-of-00003.safetensors", "tokenizer.model", "constant.json"))
    )
    assert not is_hostile_path("onnx/model.safetensors")


def test_digests_are_those_of_sha256sum_and_git() -> None:
    digests = Digests(6)
    digests.update(b"hel")
    digests.update(b"lo\n")
    assert digests.sha256 == "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03"
    assert digests.git_sha1 == "ce013625030ba8dba906f756967f9e9ca394464a"


def test_the_catalogue_says_all_of_every_model() -> None:
    for entry in MODELS:
        assert find_model(entry.name) is entry
        for repository in entry.repositories:
            assert repository.name.startswith("OpenMOSS-Team/MOSS-")
            assert repository.revision == "main" or len(repository.revision) == 40
            assert sum(file.num_bytes for file in repository.known) <= repository.about_bytes
            assert all(is_plain_name(file.name) and len(file.sha256) == 64 for file in repository.known)
    assert (MOSS_NANO.runs_on_cpu, MOSS_LOCAL.runs_on_cpu) == (True, False)
    assert sum(file.num_bytes for file in MOSS_LOCAL.codec.known) == 2_123_701_248 * 4 + 253_864  # float32, and headers
    with pytest.raises(UnknownModel, match="Choose one of: moss-nano, moss-local"):
        find_model("moss")


def test_of_the_layouts_of_weights_one_is_taken_and_never_code_or_another_pickle() -> None:
    speaker = MOSS_NANO.language_model
    beside = ["config.json", "tokenizer.model"]
    noise = ["modeling.py", "training_args.bin", "optimizer.pt", "model.safetensors.partial", "README.md"]
    shards = ["model-00002-of-00002.safetensors", "model-00001-of-00002.safetensors"]
    for weights, taken in (
        (["pytorch_model.bin"], ["pytorch_model.bin"]),
        (["pytorch_model.bin", WEIGHTS], [WEIGHTS]),
        ([INDEX, *shards], [INDEX, *sorted(shards)]),
        ([*shards, "pytorch_model.bin"], ["pytorch_model.bin"]),
        ([INDEX, WEIGHTS], [WEIGHTS]),
    ):
        assert speaker.choose([*noise, *weights, *beside]) == (*beside, *taken)
    assert speaker.choose([*beside, *noise]) is None
    assert speaker.choose([WEIGHTS, "config.json"]) is None
    assert MOSS_LOCAL.language_model.choose(["config.json", "tokenizer.json", "pytorch_model.bin"]) is None


def test_what_a_model_needs_is_arithmetic_and_what_is_too_little_is_said_before_loading() -> None:
    assert need_of(MOSS_NANO, "cpu", "float32").num_bytes < 10**9
    assert 17.5e9 < need_of(MOSS_LOCAL, "cuda:1", "bfloat16").num_bytes < 19e9
    fits = replace(MOSS_NANO, memory=(MemoryNeed(device="cpu", dtype="float32", num_bytes=1),))
    check_memory(fits, "cpu", "float32")
    huge = replace(MOSS_NANO, memory=(MemoryNeed(device="cpu", dtype="float32", num_bytes=10**18),))
    with pytest.raises(MemoryTooSmall, match=r"needs about 1000000000\.0 GB of memory on cpu in float32, and .* free"):
        check_memory(huge, "cpu", "float32")
    with pytest.raises(SettingError, match=r"mps with bfloat16.*MOSS-TTS Nano runs on cpu with float32"):
        check_memory(MOSS_NANO, "mps", "bfloat16")


@pytest.mark.skipif(sys.platform != "linux", reason="reads what Linux says of its memory")
def test_free_memory_is_what_linux_says_within_the_limit_of_a_container(tmp_path: Path) -> None:
    assert 10**7 < free_memory("cpu") < 10**14
    meminfo = tmp_path / "meminfo"
    meminfo.write_text("MemTotal:       32 kB\nMemFree:        1 kB\nMemAvailable:       20 kB\nHugePages_Total:   0\n")
    assert _available_on_linux(meminfo) == 20 * 1024
    assert _left_in_group(tmp_path) == sys.maxsize
    (tmp_path / "memory.current").write_text("30\n")
    for limit, left in (("100\n", 70), ("max\n", sys.maxsize), ("20\n", 0)):
        (tmp_path / "memory.max").write_text(limit)
        assert _left_in_group(tmp_path) == left


def test_sizes_are_said_as_disks_are_sold() -> None:
    assert [size(value) for value in (7, 1_500, 2_000_000, 9_100_000_000)] == ["7 bytes", "1.5 kB", "2.0 MB", "9.1 GB"]


def disk(folder: Path) -> int:
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file())
