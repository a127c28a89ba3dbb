"""Search and download from a local fake hub with every possible fault."""

from __future__ import annotations

import errno
import json
import logging
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import huggingface_hub
import pytest

from decodescope import core
from decodescope.core import errors
from decodescope.core.catalog import DownloadProgress, download_store, file_download, hub_requests, model_search
from decodescope.core.catalog.file_download import DownloadMeter
from decodescope.core.catalog.hub_model import HubFile, is_safe, select_files
from tests import fake_hub
from tests.core import tiny
from tests.fake_hub import Hub

NAME, WEIGHTS = "someone/small-stories", "model.safetensors"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny model as it would be uploaded."""
    place = tmp_path_factory.mktemp("uploaded")
    tiny.make("llama").model.save_pretrained(place)
    return place


@pytest.fixture(scope="module")
def server() -> Iterator[Hub]:
    with fake_hub.running() as running:
        yield running


@pytest.fixture
def here(server: Hub, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Hub:
    """A hub with one model, an empty cache, and no login."""
    for name in ("refusals", "asked", "models"):
        getattr(server, name).clear()
    server.ignores_ranges = False
    server.held.set()
    server.put(NAME, folder)
    monkeypatch.setenv("HF_ENDPOINT", server.address)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.delenv("HF_TOKEN", raising=False)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(file_download, "RETRY_DELAYS", (0.0, 0.0, 0.0))
    monkeypatch.setattr(hub_requests, "DEFAULT_WAIT_SECONDS", 0.0)
    monkeypatch.setattr("decodescope.core.catalog.file_download._REPORT_INTERVAL", 0.0)
    return server


def whole(model: fake_hub.Repository) -> int:
    return sum(map(len, model.files.values()))


def test_search_describes_models_without_downloading_weights(here: Hub, folder: Path) -> None:
    vast = {**json.loads((folder / "config.json").read_text()), "hidden_size": 2**17, "intermediate_size": 2**18}
    here.put("someone/vast-stories", {"config.json": json.dumps(vast).encode(), WEIGHTS: b"x"}, downloads=9)
    here.put("someone/stories-gguf", {"config.json": (folder / "config.json").read_bytes(), "stories.gguf": b"x"})
    vast_one, small, other = core.catalog.search("stories")
    assert (small.name, small.licence, small.downloads, small.gated) == (NAME, "apache-2.0", 7, False)
    assert small.size == whole(here.models[NAME])
    assert small.architecture == "Llama · 4 layers × 32"
    assert small.parameters == core.load(folder).parameters
    assert (small.fits, small.why_not) == (True, "")
    assert not vast_one.fits
    assert vast_one.why_not.endswith("does not fit")
    assert other.why_not, "the file is no GGUF"
    assert not here.sent(WEIGHTS)


@pytest.mark.parametrize(("share", "kind"), [(0.6, "bfloat16"), (0.35, "int8"), (0.22, "int4"), (0.1, "")])
def test_search_names_the_quantization_that_fits(
    here: Hub, folder: Path, monkeypatch: pytest.MonkeyPatch, share: float, kind: str
) -> None:
    parameters = core.load(folder).parameters
    monkeypatch.setattr(model_search, "cache_bytes", lambda *_sizes: 0)
    monkeypatch.setattr("decodescope.core.models.model_entry.free_memory", lambda: int(4 * share * 1.1 * parameters))
    found = core.catalog.search("stories")[0]
    assert (found.fits, found.fits_as, bool(found.why_not)) == (False, kind, not kind)


def test_search_names_why_a_model_cannot_be_loaded(here: Hub, folder: Path) -> None:
    config = json.loads((folder / "config.json").read_text())
    own_code = {**config, "model_type": "mine", "auto_map": {"AutoModelForCausalLM": "mine.Mine"}}
    here.put("a/code", {"config.json": json.dumps(own_code).encode(), WEIGHTS: b"x", "mine.py": b"x"})
    here.put("b/pickle", {"config.json": json.dumps(config).encode(), "pytorch_model.bin": b"x"})
    here.put("c/none", {"config.json": json.dumps(config).encode()})
    reported = {model.name: model.why_not for model in core.catalog.search("/")}
    assert "its own program code" in reported["a/code"]
    assert "pickled weights" in reported["b/pickle"]
    assert "no safetensors weights" in reported["c/none"]
    with pytest.raises(errors.PickledWeightsError):
        core.catalog.download("b/pickle")
    allowed = core.catalog.look("b/pickle", allow_pickle=True)
    assert {file.path for file in allowed.files} == {"config.json", "pytorch_model.bin"}


def test_download_reports_progress_and_is_loaded_by_name(here: Hub) -> None:
    reported: list[DownloadProgress] = []
    place = core.catalog.download(NAME, reported.append)
    assert reported[-1].state == "finished"
    assert reported[-1].done == reported[-1].total == whole(here.models[NAME])
    assert [one.done for one in reported] == sorted(one.done for one in reported)
    assert {one.state for one in reported} >= {"downloading", "verifying"}
    assert core.load(NAME).path == place
    assert [entry.name for entry in core.catalog.hub_cached()] == [NAME]
    assert huggingface_hub.try_to_load_from_cache(NAME, "config.json", place.parents[2]) == str(place / "config.json")
    assert not list(place.parents[1].rglob("*.incomplete"))
    here.asked.clear()
    core.catalog.download(NAME)
    assert not here.sent("resolve"), "what is there was fetched again"


def test_download_fetches_all_shards_but_no_code_or_pickle(here: Hub, folder: Path, tmp_path: Path) -> None:
    core.load(folder).model.save_pretrained(tmp_path / "cut", max_shard_size="40KB")
    cut = here.put("someone/cut", tmp_path / "cut")
    cut.files |= {"pytorch_model.bin": b"x", "run.py": b"x", "../../evil.json": b"x", "a.onnx": b"x"}
    place = core.catalog.download("someone/cut")
    assert len(list(place.glob("*.safetensors"))) > 1
    assert {file.name for file in place.iterdir()} == {path.name for path in (tmp_path / "cut").iterdir()}
    assert core.load("someone/cut").parameters == core.load(folder).parameters
    lost = next(path for path in cut.files if path.startswith("model-00002"))
    here.put("someone/lost", {path: content for path, content in cut.files.items() if path != lost})
    with pytest.raises(errors.TransferError, match="missing"):
        core.catalog.download("someone/lost")


def test_paused_download_resumes_at_the_same_byte(here: Hub) -> None:
    stop = threading.Event()
    here.held.clear()
    small = whole(here.models[NAME]) - len(here.models[NAME].files[WEIGHTS])

    def until_weights(now: DownloadProgress) -> None:
        if now.done > small + 500:
            stop.set()
            here.held.set()

    here.models[NAME].cuts[WEIGHTS] = [30_000]
    with pytest.raises(errors.DownloadStoppedError):
        core.catalog.download(NAME, until_weights, stop=stop)
    with pytest.raises(errors.ModelNotFoundError):
        core.load(NAME)
    (left,) = core.catalog.unfinished()
    assert (left.name, left.total) == (NAME, whole(here.models[NAME]))
    assert 0 < left.done < left.total
    assert core.catalog.hub_cached() == [], "half a model is listed as one"
    core.catalog.download(NAME)
    assert core.catalog.unfinished() == ()
    assert here.sent("store") == ["", f"bytes={left.done - small}-"]
    assert core.load(NAME).parameters


def test_killed_download_resumes_in_the_next_process(here: Hub, tmp_path: Path) -> None:
    here.held.clear()
    script = f"import decodescope.core.catalog as c; c.download({NAME!r})"
    program = subprocess.Popen([sys.executable, "-c", script], env=_environment(here))
    while not (here.sent("store") and any(file.stat().st_size for file in tmp_path.rglob("*.incomplete"))):
        assert program.poll() is None
        time.sleep(0.01)
    program.kill()
    program.wait()
    here.held.set()
    assert [left.name for left in core.catalog.unfinished()] == [NAME]
    core.catalog.download(NAME)
    assert here.sent("store") == ["", "bytes=1000-"]
    assert core.catalog.verify(NAME) == ()


def _environment(here: Hub) -> dict[str, str]:
    return {**os.environ, "HF_ENDPOINT": here.address, "HF_HUB_OFFLINE": "0", "PYTHONPATH": str(Path.cwd())}


def test_cut_connections_resume_with_range_requests(here: Hub) -> None:
    here.models[NAME].cuts[WEIGHTS] = [20_000, 0, 0, 15_000, 0]
    core.catalog.download(NAME)
    assert here.sent("store") == ["", *["bytes=20000-"] * 3, *["bytes=35000-"] * 2]
    assert core.catalog.verify(NAME) == ()


def test_persistent_disconnection_raises_and_keeps_partial_data(here: Hub) -> None:
    here.models[NAME].cuts[WEIGHTS] = [20_000, *[0] * 20]
    with pytest.raises(errors.TransferError, match="20,000 of"):
        core.catalog.download(NAME)
    assert core.catalog.unfinished()[0].done > 20_000


def test_download_restarts_when_the_hub_ignores_ranges(here: Hub) -> None:
    reported: list[DownloadProgress] = []
    here.models[NAME].cuts[WEIGHTS] = [20_000]
    here.ignores_ranges = True
    core.catalog.download(NAME, reported.append)
    assert reported[-1].done == reported[-1].total
    assert core.catalog.verify(NAME) == ()


@pytest.mark.parametrize("lie", [b"changed" * 9000, b"more", b"less"])
def test_content_that_differs_from_the_listing_is_discarded(here: Hub, lie: bytes) -> None:
    content = here.models[NAME].files[WEIGHTS]
    sent = {b"more": content + b"more", b"less": content[:-40]}.get(lie, (lie * 9)[: len(content)])
    here.models[NAME].lies[WEIGHTS] = sent
    with pytest.raises(errors.TransferError) as reported:
        core.catalog.download(NAME)
    assert WEIGHTS in reported.value.cause
    assert reported.value.remedy
    with pytest.raises(errors.ModelNotFoundError):
        core.load(NAME)
    here.models[NAME].lies.clear()
    core.catalog.download(NAME)
    assert core.catalog.verify(NAME) == ()


def test_gated_model_error_explains_how_to_get_access(here: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    here.models[NAME].gated = True
    (found,) = core.catalog.search("stories")
    assert found.gated
    assert "gated" in found.why_not
    with pytest.raises(errors.AccessError, match=f"{here.address}/{NAME}.*hf auth login"):
        core.catalog.download(NAME)
    monkeypatch.setenv("HF_TOKEN", fake_hub.LOGGED_IN)
    here.models[NAME].granted = False
    with pytest.raises(errors.AccessError, match="not granted your account"):
        core.catalog.download(NAME)
    here.models[NAME].granted = True
    assert core.catalog.download(NAME)


def test_private_model_is_found_by_name_when_logged_in(here: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    here.models[NAME].private = True
    with pytest.raises(errors.AccessError, match="hf auth login"):
        core.catalog.search(NAME)
    monkeypatch.setenv("HF_TOKEN", fake_hub.LOGGED_IN)
    assert [model.private for model in core.catalog.search(NAME)] == [True]
    with pytest.raises(errors.NotOnHubError):
        core.catalog.download("someone/else")


def test_token_is_sent_to_the_hub_only(
    here: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("HF_TOKEN", fake_hub.LOGGED_IN)
    with caplog.at_level(logging.DEBUG):
        core.catalog.download(NAME)
    assert {token for path, _, token in here.asked if "/store/" not in path} == {fake_hub.LOGGED_IN}
    assert {token for path, _, token in here.asked if "/store/" in path} == {""}
    assert fake_hub.LOGGED_IN not in caplog.text
    stored = [file for file in tmp_path.rglob("*") if file.is_file() and file.suffix != ".safetensors"]
    assert stored
    assert not any(fake_hub.LOGGED_IN.encode() in file.read_bytes() for file in stored)


def test_rate_limited_request_is_retried_after_the_given_time(here: Hub) -> None:
    reported: list[DownloadProgress] = []
    busy = (429, {"Retry-After": "0"})
    here.refusals[:] = [busy, busy]
    assert core.catalog.find("stories")
    here.models[NAME].cuts[WEIGHTS] = [20_000]

    def once(now: DownloadProgress) -> None:
        reported.append(now)
        if now.done > 20_000 and not any(one.state == "waiting" for one in reported):
            here.refusals[:] = [(429, {"RateLimit": '"resolvers";r=0;t=0'})]

    core.catalog.download(NAME, once)
    assert core.catalog.verify(NAME) == ()
    here.refusals[:] = [(429, {"Retry-After": "7200"})]
    with pytest.raises(errors.TooManyRequestsError, match="7200 seconds") as late:
        core.catalog.search("stories")
    assert late.value.seconds == 7200


def test_wait_for_a_rate_limit_can_be_cancelled() -> None:
    stop, waited = threading.Event(), []

    def refuse() -> None:
        raise errors.TooManyRequestsError(300.0)

    def look(seconds: float) -> None:
        waited.append(seconds)
        stop.set()

    with pytest.raises(errors.DownloadStoppedError):
        hub_requests.retry_when_rate_limited(refuse, stop, look)
    assert waited == [300.0]


@pytest.mark.parametrize(("status", "error"), [(500, errors.HubError), (404, errors.NotOnHubError)])
def test_error_status_raises_an_error_with_a_remedy(here: Hub, status: int, error: type[errors.HubError]) -> None:
    here.refusals[:] = [(status, {})]
    with pytest.raises(error) as reported:
        core.catalog.search("stories")
    assert reported.value.remedy


def test_temporary_server_error_is_retried(here: Hub) -> None:
    here.refusals[:] = []
    tried = []

    def trouble(now: DownloadProgress) -> None:
        if now.file == WEIGHTS and not tried:
            tried.append(now)
            here.refusals[:] = [(503, {})]

    core.catalog.download(NAME, trouble)
    assert tried
    assert core.catalog.verify(NAME) == ()


def test_search_and_download_without_network_raise_at_once(here: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    for ask in (core.catalog.search, core.catalog.download):
        with pytest.raises(errors.NoNetworkError, match="cannot be reached"):
            ask(NAME)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(errors.NoNetworkError, match="HF_HUB_OFFLINE"):
        core.catalog.search("stories")
    assert core.load("storyteller-draft")


def test_full_disk_is_detected_before_and_during_a_download(here: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = type(shutil.disk_usage("/"))
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: usage(10**6, 10**6 - 5000, 5000))
    with pytest.raises(errors.DiskFullError, match=r"4\.9 KiB are free"):
        core.catalog.download(NAME)
    assert not here.sent("resolve"), "the disk was not looked at before"
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: usage(10**12, 0, 10**12))

    def full(answer: Any, write: Callable[[bytes], object], *rest: Any) -> None:
        write(next(answer.iter_bytes(1000)))
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(file_download, "_append", full)
        with pytest.raises(errors.DiskFullError):
            core.catalog.download(NAME)
    monkeypatch.setattr(file_download, "_SPACE_CHECK_BYTES", 1000)
    monkeypatch.setattr(file_download, "free_bytes", lambda _folder: 10)
    with pytest.raises(errors.DiskFullError):
        core.catalog.download(NAME)
    assert core.catalog.unfinished()


def test_unwritable_hub_cache_raises_file_not_written(
    here: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "file" / "hub"))
    with pytest.raises(errors.FileNotWrittenError, match="HF_HUB_CACHE"):
        core.catalog.download(NAME)


@pytest.mark.parametrize(
    "name", ["", "a/b/c", "../etc", "a b", "some/..", "x--y/z", "owner/name.git", "ä/ö", "a" * 200]
)
def test_invalid_model_name_is_refused_without_a_request(here: Hub, name: str) -> None:
    for ask in (core.catalog.download, core.catalog.delete, core.catalog.verify):
        with pytest.raises(errors.NotOnHubError, match="is not a valid model name"):
            ask(name)
    assert not here.asked


def test_damaged_file_is_found_and_downloaded_again(here: Hub) -> None:
    place = core.catalog.download(NAME)
    blob = (place / WEIGHTS).resolve()
    blob.write_bytes(blob.read_bytes()[:-1] + b"x")
    damaged = core.catalog.verify(NAME)
    assert damaged == (WEIGHTS,)
    here.asked.clear()
    core.catalog.download(NAME, again=damaged)
    assert core.catalog.verify(NAME) == ()
    assert not here.sent("resolve/" + here.models[NAME].commit + "/config.json")


def test_discard_and_delete_remove_downloads(here: Hub, tmp_path: Path) -> None:
    core.catalog.download(NAME)
    here.models[NAME].commit = "f" * 40
    here.models[NAME].files[WEIGHTS] = here.models[NAME].files[WEIGHTS][:-8] + b"another!"
    here.models[NAME].cuts[WEIGHTS] = [20_000, *[0] * 20]
    with pytest.raises(errors.TransferError):
        core.catalog.download(NAME)
    assert core.catalog.discard(NAME) >= 20_000
    assert core.catalog.unfinished() == ()
    assert core.catalog.verify(NAME) == ()
    assert core.catalog.delete(NAME) > 40_000
    with pytest.raises(errors.ModelNotFoundError):
        core.load(NAME)
    assert not list((tmp_path / "hub").glob("models--*"))


def test_concurrent_downloads_of_one_model_are_refused(here: Hub) -> None:
    with download_store.DownloadStore(NAME).locked(), pytest.raises(errors.HubError, match="already"):
        core.catalog.download(NAME)


def test_speed_is_a_recent_average_and_yields_the_time_left() -> None:
    now, reported = [0.0], []
    meter = DownloadMeter("m", 1000, reported.append, clock=lambda: now[0])
    meter.begin_file("f", 100)
    for _ in range(10):
        now[0] += 1.0
        meter.add(20)
    assert reported[-1].speed == pytest.approx(120 / 5)
    assert reported[-1].left == pytest.approx((1000 - 300) / 24)


def test_files_of_a_repository_are_chosen_by_name() -> None:
    def chosen(*paths: str, **more: bool) -> list[str]:
        return [file.path for file in select_files([HubFile(path, 1, "0" * 40) for path in paths], **more).selected]

    assert chosen(WEIGHTS, "model-00001-of-00002.safetensors", "consolidated.safetensors") == [WEIGHTS]
    assert chosen("pytorch_model.bin", "config.json") == ["config.json"]
    assert chosen("pytorch_model.bin", WEIGHTS, allow_pickle=True) == [WEIGHTS]
    assert set(chosen("modeling.py", "config.json", allow_code=True)) == {"config.json", "modeling.py"}
    assert set(chosen("LICENSE", "spiece.model", "a/config.json", "training_args.bin")) == {"LICENSE", "spiece.model"}
    assert not any(map(is_safe, ("../x", "a//b", "/etc/x", "x.", "a\\b", "c:d", "")))


def test_importing_the_catalog_loads_no_torch_or_huggingface_hub() -> None:
    code = (
        "import sys, core.catalog as c; c.available(); c.download; c.search\n"
        "sys.exit('torch' in sys.modules or 'huggingface_hub' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
