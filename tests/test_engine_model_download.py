"""Downloads of models: from a toy hub on this machine, whole and broken in every way a hub or a network breaks."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from toy_hub import (
    INDEX,
    ToyHub,
    codec_files,
    content,
    published,
    serving,
    sha256,
    speaker_files,
    toy_entry,
)

from studio.engine.model_catalogue import MOSS_NANO, KnownFile, ModelEntry
from studio.engine.model_download import download_model
from studio.engine.model_errors import (
    DiskTooFull,
    DownloadStopped,
    FileRefused,
    HubRefused,
    HubUnreachable,
    ModelInUse,
)
from studio.engine.model_manifest import Manifest
from studio.engine.model_store import ModelStore
from studio.engine.model_transport import Patience
from studio.errors import SettingError, StorageError
from studio.settings import Settings

WEIGHTS = "model.safetensors"
SPEAKER = ("config.json", "tokenizer.model", WEIGHTS)
SIZE = 300_000
PATIENCE = Patience(attempts=3, first_wait=0.01, longest_wait=0.02)


@pytest.fixture
def hub() -> Iterator[ToyHub]:
    with serving(ToyHub()) as hub:
        yield hub


@pytest.fixture
def store(tmp_path: Path) -> ModelStore:
    return ModelStore(tmp_path / "models")


def get(entry: ModelEntry, store: ModelStore, hub: ToyHub, **options: object) -> tuple[Manifest, ...]:
    return download_model(entry, store, hub.url, patience=PATIENCE, **options)  # pyright: ignore[reportArgumentType]


def partial(store: ModelStore, entry: ModelEntry) -> Path:
    return store.record(entry.language_model, entry.language_model.revision) / f"{WEIGHTS}.partial"


def test_only_what_is_wanted_comes_and_the_manifest_says_what_it_was_held_against(hub, store) -> None:
    entry = published(hub)
    speaker, codec = get(entry, store, hub)
    folders = store.folders(entry, hub.url)
    assert {
        path.name: path.read_bytes() for path in folders.language_model.iterdir() if path.name != "manifest.json"
    } == {name: speaker_files()[name] for name in ("config.json", "tokenizer.model", WEIGHTS)}
    assert {file.name: file.check for file in speaker.files} == {
        "config.json": "hub-git-sha1",
        "tokenizer.model": "hub-git-sha1",
        WEIGHTS: "hub-sha256",
    }
    assert {file.name for file in codec.files} == set(codec_files())
    assert (speaker.revision, codec.revision) == (entry.language_model.revision, entry.codec.revision)
    assert all(file.sha256 == sha256(speaker_files()[file.name]) for file in speaker.files)


def test_what_is_there_is_not_asked_for_again(hub, store) -> None:
    entry = published(hub)
    first = get(entry, store, hub)
    asked = len(hub.requests)
    assert get(entry, store, hub) == first
    assert len(hub.requests) == asked


def test_progress_reaches_every_byte_of_every_file_and_never_goes_back(hub, store) -> None:
    told: dict[str, list[tuple[int, int]]] = {}
    get(published(hub), store, hub, progress=lambda file, done, total: told.setdefault(file, []).append((done, total)))
    sizes = {f"Toys/Codec/{name}": len(data) for name, data in codec_files().items()}
    sizes |= {
        f"Toys/Speaker/{name}": len(speaker_files()[name]) for name in ("config.json", "tokenizer.model", WEIGHTS)
    }
    assert {file: steps[-1] for file, steps in told.items()} == {file: (size, size) for file, size in sizes.items()}
    weights = [done for done, _ in told[f"Toys/Speaker/{WEIGHTS}"]]
    assert weights == sorted(weights)
    assert len(weights) > 4


def test_a_broken_transfer_goes_on_at_the_byte_where_it_broke(hub, store) -> None:
    hub.breaks[WEIGHTS] = [100_000, 50_000]
    speaker, _ = get(published(hub), store, hub)
    bodies = hub.bodies(WEIGHTS)
    assert [(body.start, body.sent) for body in bodies] == [(0, 100_000), (100_000, 50_000), (150_000, 150_000)]
    assert {file.name: file.sha256 for file in speaker.files}[WEIGHTS] == sha256(content("speaker", SIZE))


def test_a_hub_that_keeps_breaking_before_any_byte_is_given_up_and_what_came_stays(hub, store) -> None:
    hub.breaks[WEIGHTS] = [100_000, 0, 0, 0, 0]
    entry = published(hub)
    with pytest.raises(HubUnreachable, match="what has arrived is kept"):
        get(entry, store, hub)
    assert len(hub.breaks[WEIGHTS]) == 2, "three breaks in a row are enough"
    assert partial(store, entry).stat().st_size == 100_000
    hub.breaks.clear()
    hub.requests.clear()
    get(entry, store, hub)
    assert [(body.start, body.sent) for body in hub.bodies(WEIGHTS)] == [(100_000, 200_000)]


def test_a_hub_without_ranges_sends_the_file_again_from_its_beginning(hub, store) -> None:
    hub.breaks[WEIGHTS] = [100_000]
    hub.without_ranges = True
    entry = published(hub)
    get(entry, store, hub)
    assert [(body.start, body.sent) for body in hub.bodies(WEIGHTS)] == [(0, 100_000), (100_000, SIZE)]
    assert store.check(entry, hub.url)[2].fault is None


def test_a_busy_hub_is_asked_again_and_a_refusal_is_not(hub, store) -> None:
    entry = published(hub)
    hub.statuses = [503, 429]
    get(entry, store, hub)
    store.remove(entry)
    hub.requests.clear()
    hub.statuses = [403]
    with pytest.raises(HubRefused, match="does not let everybody have /api/models/Toys/Speaker"):
        get(entry, store, hub)
    assert len(hub.requests) == 1


def test_a_hub_may_ask_for_a_longer_wait(hub, store) -> None:
    entry = published(hub)
    hub.statuses, hub.retry_after = [429], "1"
    started = time.monotonic()
    get(entry, store, hub)
    assert time.monotonic() - started >= 1


def test_a_proxy_is_for_the_world_outside_and_one_that_cannot_be_used_is_said(hub, store, monkeypatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "gopher://127.0.0.1:9")
    get(published(hub), store, hub)
    with pytest.raises(HubUnreachable, match="the proxy set on this machine cannot be used"):
        download_model(
            toy_entry("main", "0" * 40), ModelStore(store.record(MOSS_NANO.codec, "x")), "https://hub.invalid"
        )


def test_wrong_bytes_are_refused_and_removed(hub, store) -> None:
    entry = published(hub)
    hub.corrupt = {WEIGHTS}
    with pytest.raises(
        FileRefused, match=r"Toys/Speaker/model\.safetensors is not the file that was promised"
    ) as refusal:
        get(entry, store, hub)
    assert sha256(content("speaker", SIZE)) in str(refusal.value)
    names = {path.name for path in partial(store, entry).parent.iterdir()}
    assert names == {"config.json", "tokenizer.model"}
    hub.corrupt.clear()
    hub.requests.clear()
    get(entry, store, hub)
    assert hub.bodies(WEIGHTS)[0].start == 0
    assert not hub.bodies("tokenizer.model"), "what was right is kept"


def test_a_small_file_is_held_against_gits_name_for_it(hub, store) -> None:
    entry = published(hub)
    hub.corrupt = {"config.json"}
    with pytest.raises(FileRefused, match="git SHA-1"):
        get(entry, store, hub)


def test_the_catalogue_counts_more_than_the_hub(hub, store) -> None:
    entry = published(hub)
    right = KnownFile(name=WEIGHTS, num_bytes=SIZE, sha256=sha256(content("speaker", SIZE)))
    for wrong, said in (
        (replace(right, sha256="0" * 64), "instead of 0000"),
        (replace(right, num_bytes=7), "the hub has 300,000 bytes, the catalogue 7"),
    ):
        with pytest.raises(FileRefused, match=said):
            get(replace(entry, language_model=replace(entry.language_model, known=(wrong,))), store, hub)
    speaker, _ = get(replace(entry, language_model=replace(entry.language_model, known=(right,))), store, hub)
    assert {file.name: file.check for file in speaker.files}[WEIGHTS] == "catalogue"


def test_a_mirror_that_lists_names_alone_is_asked_for_the_rest(hub, store) -> None:
    hub.without_digests = True
    speaker, _ = get(published(hub), store, hub)
    assert {file.name: file.check for file in speaker.files} == {
        "config.json": "hub-git-sha1",
        "tokenizer.model": "hub-git-sha1",
        WEIGHTS: "hub-sha256",
    }


def test_main_is_looked_up_once_and_the_commit_is_what_is_stored(hub, store) -> None:
    pinned = published(hub)
    entry = toy_entry("main", "main")
    speaker, _ = get(entry, store, hub)
    assert speaker.revision == pinned.language_model.revision
    hub.publish("Toys/Speaker", speaker_files() | {"config.json": b"{}"})
    assert get(entry, store, hub)[0] == speaker, "what is complete needs no hub"
    assert store.folders(entry, hub.url).language_model.name == speaker.revision


def test_what_is_left_of_another_commit_goes_once_one_is_complete(hub, store) -> None:
    published(hub)
    hub.breaks[WEIGHTS] = [100_000, 0, 0, 0]
    entry = toy_entry("main", "main")
    with pytest.raises(HubUnreachable):
        get(entry, store, hub)
    new = hub.publish("Toys/Speaker", speaker_files() | {"config.json": b"{}"})
    get(entry, store, hub)
    assert [path.name for path in store.record(entry.language_model, new).parent.iterdir()] == [new]


def test_a_repository_that_was_renamed_is_found(hub, store) -> None:
    entry = published(hub)
    hub.renamed["Toys/Speaker"] = "Toys/Speaker-100M"
    hub.repositories["Toys/Speaker-100M"] = hub.repositories.pop("Toys/Speaker")
    assert get(entry, store, hub)[0].repository == "Toys/Speaker"


@pytest.mark.parametrize("stalled", [0, 100_000])
def test_stop_takes_less_than_a_second_while_nothing_arrives_and_the_next_get_goes_on(hub, store, stalled: int) -> None:
    entry = published(hub)
    hub.stall[WEIGHTS] = stalled
    cancel, stopped = threading.Event(), []

    def work() -> None:
        with pytest.raises(DownloadStopped, match="the next download goes on there"):
            get(entry, store, hub, cancel=cancel)
        stopped.append(time.monotonic())

    thread = threading.Thread(target=work)
    thread.start()
    wait_for(lambda: partial(store, entry).exists() and partial(store, entry).stat().st_size == stalled)
    time.sleep(0.1)
    asked = time.monotonic()
    cancel.set()
    thread.join(5)
    assert stopped
    assert stopped[0] - asked < 1
    assert partial(store, entry).stat().st_size == stalled
    hub.stall.clear()
    get(entry, store, hub)
    assert (hub.bodies(WEIGHTS)[-1].start, hub.bodies(WEIGHTS)[-1].sent) == (stalled, SIZE - stalled)


def test_a_download_that_was_stopped_before_it_began_asks_for_no_file(hub, store) -> None:
    entry = published(hub)
    cancel = threading.Event()
    cancel.set()
    hub.pace = 1
    with pytest.raises(DownloadStopped):
        get(entry, store, hub, cancel=cancel)
    assert not hub.bodies(WEIGHTS)


def test_too_little_room_is_said_before_anything_is_written(hub, store, tmp_path: Path) -> None:
    entry = published(hub)
    hub.listed_size[WEIGHTS] = 10**18
    with pytest.raises(DiskTooFull, match=r"needs 1000000000\.0 GB in .* are free there"):
        get(entry, store, hub)
    assert not store.record(entry.language_model, entry.language_model.revision).exists()


def test_a_disk_that_takes_no_more_is_a_sentence_and_what_came_stays(hub, tmp_path: Path) -> None:
    """A process that may write files of 96 KiB at most, in place of a disk that is full."""
    entry = published(hub)
    code = (
        "import resource, signal, sys\n"
        "from pathlib import Path\n"
        "from toy_hub import toy_entry\n"
        "from studio.engine.model_download import download_model\n"
        "from studio.engine.model_store import ModelStore\n"
        "from studio.errors import StorageError\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (98304, 98304))\n"
        "try: download_model(toy_entry(*sys.argv[1:3]), ModelStore(Path(sys.argv[3])), sys.argv[4])\n"
        "except StorageError as error: print(error)\n"
    )
    store = ModelStore(tmp_path / "models")
    revisions = entry.language_model.revision, entry.codec.revision
    said = run_python(code, *revisions, str(tmp_path / "models"), hub.url).communicate(timeout=60)[0]
    assert "cannot be used (File too large). Free space" in said
    assert partial(store, entry).stat().st_size == 98_304
    get(entry, store, hub)
    assert hub.bodies(WEIGHTS)[-1].start == 98_304


def test_a_folder_that_cannot_be_written_is_a_sentence(hub, tmp_path: Path) -> None:
    (tmp_path / "models").write_text("a file where the folder should be")
    with pytest.raises(StorageError, match="cannot be used"):
        get(published(hub), ModelStore(tmp_path / "models"), hub)


def test_a_killed_process_leaves_what_came_and_the_next_get_goes_on(hub, tmp_path: Path) -> None:
    entry, process = nano(hub), None
    hub.pace = 0.02
    store = ModelStore(tmp_path / "data" / "models")
    try:
        process = get_nano(hub)
        wait_for(lambda: partial(store, entry).exists() and partial(store, entry).stat().st_size > 50_000)
        process.kill()
    finally:
        if process is not None:
            process.communicate()
    came = partial(store, entry).stat().st_size
    assert 50_000 < came < SIZE
    assert store.find(entry.language_model) is None
    hub.pace = 0
    get(entry, store, hub)
    assert (hub.bodies(WEIGHTS)[-1].start, hub.bodies(WEIGHTS)[-1].sent) == (came, SIZE - came)


def test_ctrl_c_ends_at_once_and_keeps_what_came(hub, tmp_path: Path) -> None:
    entry = nano(hub)
    hub.stall[WEIGHTS] = 100_000
    store = ModelStore(tmp_path / "data" / "models")
    process = get_nano(hub)
    wait_for(lambda: partial(store, entry).exists() and partial(store, entry).stat().st_size == 100_000)
    asked = time.monotonic()
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=30)
    assert time.monotonic() - asked < 2
    assert process.returncode == 130, said
    assert partial(store, entry).stat().st_size == 100_000


def test_of_two_processes_one_downloads_and_the_other_finds_it_done(hub, tmp_path: Path) -> None:
    nano(hub)
    hub.pace = 0.01
    processes = [get_nano(hub), get_nano(hub)]
    answers = [process.communicate(timeout=60) for process in processes]
    assert [process.returncode for process in processes] == [0, 0], answers
    assert answers[0][0] == answers[1][0]
    assert [body.sent for body in hub.bodies(WEIGHTS)] == [SIZE]


def test_waiting_for_another_download_can_be_stopped_and_removing_under_it_is_refused(hub, store, caplog) -> None:
    entry = published(hub)
    cancel = threading.Event()
    with store.locked(entry.language_model, threading.Event()):
        timer = threading.Timer(0.3, cancel.set)
        timer.start()
        with pytest.raises(DownloadStopped):
            get(entry, store, hub, cancel=cancel)
        with pytest.raises(ModelInUse, match="Toys/Speaker is being downloaded"):
            store.remove(entry)
        timer.join()
    assert not hub.requests
    assert [record.getMessage() for record in caplog.records] == [
        "Another process is busy with Toys/Speaker; waiting for it."
    ]


def test_no_hub_in_reach_is_a_sentence_with_the_cure(store) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: nothing answers there
        address = f"http://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(HubUnreachable, match="cannot be reached") as refusal:
            download_model(toy_entry("main", "main"), store, address, patience=PATIENCE)
    assert address in str(refusal.value)
    assert all(cure in str(refusal.value) for cure in ("--mirror", "STUDIO_HUB", "--from"))


@pytest.mark.parametrize(
    "path", ["../evil.safetensors", "/etc/passwd", "a/../../b", "C:evil.json", "..", "a\\b.json", "a//b", "nul\0.json"]
)
def test_a_listing_with_a_path_that_could_leave_its_folder_is_refused_whole(hub, store, tmp_path, path: str) -> None:
    entry = published(hub)
    hub.hostile_paths = [path]
    with pytest.raises(HubRefused, match="could leave its folder"):
        get(entry, store, hub)
    assert not list(tmp_path.rglob("*.json"))


def test_an_index_that_names_a_file_the_hub_does_not_have_is_refused(hub, store) -> None:
    entry = published(hub)
    for index in (
        b'{"weight_map": {"a": "../../x.safetensors"}}',
        b'{"weight_map": {"a": 7}}',
        b"\xff",
        b"[" * 100_000,
    ):
        codec = hub.publish("Toys/Codec", codec_files() | {INDEX: index})
        with pytest.raises(HubRefused, match="its index of the weights"):
            get(toy_entry(entry.language_model.revision, codec), store, hub)
        assert store.find(replace(entry.codec, revision=codec)) is None


def test_a_repository_without_weights_or_without_the_revision_is_refused(hub, store) -> None:
    entry = published(hub)
    with pytest.raises(HubRefused, match="it has no /api/models/Toys/Speaker/revision/000"):
        get(toy_entry("0" * 40, entry.codec.revision), store, hub)
    bare = {name: data for name, data in speaker_files().items() if name != WEIGHTS}
    with pytest.raises(HubRefused, match=r"should hold config\.json, tokenizer\.model, model\.safetensors or"):
        get(toy_entry(hub.publish("Toys/Speaker", bare), entry.codec.revision), store, hub)


@pytest.mark.parametrize("address", ["http://example.invalid/x", "ftp://127.0.0.1/x", "file:///etc/passwd"])
def test_a_redirect_to_what_is_not_https_is_refused(hub, store, address: str) -> None:
    entry = published(hub)
    hub.sends_on_to = address
    with pytest.raises(HubRefused, match="which is not https"):
        get(entry, store, hub)


def test_a_redirect_that_never_ends_is_refused(hub, store) -> None:
    entry = published(hub)
    hub.renamed["Toys/Speaker"] = "Toys/Speaker"
    with pytest.raises(HubRefused, match="it answers 307"):
        get(entry, store, hub)
    assert len(hub.requests) == 6


def test_more_bytes_than_promised_are_not_taken(hub, store) -> None:
    entry = published(hub)
    hub.listed_size[WEIGHTS] = 1_000
    with pytest.raises(FileRefused, match="more than 1,000 bytes"):
        get(entry, store, hub)
    assert not partial(store, entry).exists()


@pytest.mark.parametrize(
    "listing",
    [
        b"<html>",
        b"[]",
        b'{"siblings": []}',
        b'{"sha": "main", "siblings": []}',
        b'{"sha": "%s", "siblings": []}' % (b"0" * 40),
        b'{"sha": "%s", "siblings": [{"rfilename": 7}]}' % (b"0" * 40),
        b'{"sha": "%s", "siblings": [{"rfilename": []}]}' % (b"0" * 40),
        b"[" * 100_000,
        b" " * 17_000_000,
    ],
    ids=range(9),
)
def test_an_answer_that_is_no_listing_of_the_commit_is_refused(hub, store, listing: bytes) -> None:
    entry = published(hub)
    hub.listing = listing
    with pytest.raises(HubRefused):
        get(entry, store, hub)


@pytest.mark.parametrize(
    "address",
    [
        "http://example.org",
        "ftp://example.org",
        "example.org",
        "https://user:secret@example.org",
        "https://example.org?a=b",
        "https://",
        "https://[",
        "https://example.org:x",
    ],
)
def test_a_hub_that_others_could_read_or_change_is_no_setting(tmp_path: Path, address: str) -> None:
    with pytest.raises(SettingError, match="give an https:// address"):
        Settings(data_dir=tmp_path, hub=address)


def test_the_hub_comes_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("STUDIO_HUB", raising=False)
    assert Settings.from_environment().hub == "https://huggingface.co"
    for address in ("https://mirror.example/hf", "http://127.0.0.1:8000", "http://[::1]:8000", "http://localhost"):
        monkeypatch.setenv("STUDIO_HUB", f"{address}/")
        assert Settings.from_environment().hub == address


def nano(hub: ToyHub) -> ModelEntry:
    """The real catalogue's Nano, whose commits the toy hub claims to have."""
    files = speaker_files() | {WEIGHTS: content("speaker", SIZE)}
    hub.publish(MOSS_NANO.language_model.name, files, commit=MOSS_NANO.language_model.revision)
    hub.publish(MOSS_NANO.codec.name, codec_files(), commit=MOSS_NANO.codec.revision)
    return MOSS_NANO


def get_nano(hub: ToyHub) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "studio", "models", "get", "moss-nano", "--mirror", hub.url],
        cwd=Path(__file__).parent.parent,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run_python(code: str, *arguments: str) -> "subprocess.Popen[str]":
    folder = Path(__file__).parent
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        env=os.environ | {"PYTHONPATH": f"{folder.parent}{os.pathsep}{folder}"},
        stdout=subprocess.PIPE,
        text=True,
    )


def wait_for(condition: Callable[[], bool], seconds: float = 30) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come to that"
        time.sleep(0.01)
