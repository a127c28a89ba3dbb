"""The installed build of PyTorch, its source, and the message before. Indexes are served on the loopback."""

import contextlib
import functools
import hashlib
import http.server
import os
import sys
import threading
import zipfile
from types import SimpleNamespace

import pytest
from bootstrap_parts import torch_build
from bootstrap_parts.errors import SetupError

REQUIREMENT = "torch>=2.6,<2.14"


def add_wheel(
    folder, version: str, tag: str = "py3-none-any", content: str = "", name: str = "torch", requires: str = ""
) -> int:
    """Build a small wheel and return its size."""
    folder.mkdir(parents=True, exist_ok=True)
    path, about = folder / f"{name}-{version}-{tag}.whl", f"{name}-{version}.dist-info"
    needed = f"Requires-Dist: {requires}\n" if requires else ""
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr(f"{name}/__init__.py", f"__version__ = {version!r}\n{content}")
        wheel.writestr(f"{about}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needed}")
        wheel.writestr(f"{about}/WHEEL", f"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: {tag}\n")
        wheel.writestr(f"{about}/RECORD", "")
    return path.stat().st_size


def write_page(folder) -> None:
    """Write the page of an index that links to the wheels of a folder, with their checksums."""
    sums = {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in folder.glob("*.whl")}
    links = (f'<a href="{name.replace("+", "%2B")}#sha256={total}">{name}</a><br>' for name, total in sums.items())
    (folder / "index.html").write_text(f"<!DOCTYPE html><html><body>{''.join(links)}</body></html>")


class FolderHandler(http.server.SimpleHTTPRequestHandler):
    """Serve a folder and record what is requested."""

    def log_message(self, *_: object) -> None:
        pass

    def send_head(self):
        self.server.requested.append((self.command, self.path))
        return super().send_head()


@pytest.fixture
def served(tmp_path):
    """Serve two indexes: PyTorch's with CPU builds, and one instead of PyPI."""
    folder = tmp_path / "indexes"
    for name in ("cpu", "pypi"):
        (folder / name / "torch").mkdir(parents=True)
        write_page(folder / name / "torch")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(FolderHandler, directory=str(folder)))
    server.requested, server.folder = [], folder
    server.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def machine(served, tmp_path, monkeypatch):
    """A Linux without a card, whose pip has no settings and installs into an empty folder."""
    for name in [name for name in os.environ if name.startswith("PIP_") or name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_TARGET", str(tmp_path / "site"))
    monkeypatch.setenv("PIP_NO_CACHE_DIR", "1")
    monkeypatch.setattr(torch_build, "CPU_INDEX", f"{served.address}/cpu")
    monkeypatch.setattr(torch_build, "is_installed", lambda *_: False)
    monkeypatch.setattr(torch_build.sys, "platform", "linux")
    (tmp_path / ".venv").mkdir()
    return tmp_path


def install(machine, build: str = "cpu") -> None:
    torch_build.install(torch_build.Path(sys.executable), REQUIREMENT, build, machine / ".venv")


def installed(machine) -> str:
    """Return the version in the environment; empty where there is none."""
    file = machine / "site" / "torch" / "__init__.py"
    return file.read_text().splitlines()[0].split("'")[1] if file.exists() else ""


@pytest.mark.parametrize(
    ("platform", "choice", "driver", "build", "index"),
    [
        ("linux", "auto", False, "cpu", "cpu"),
        ("linux", "auto", True, "cuda", None),
        ("linux", "cpu", True, "cpu", "cpu"),
        ("linux", "cuda", False, "cuda", None),
        ("darwin", "auto", False, "cpu", None),
        ("win32", "auto", False, "cpu", None),
        ("win32", "auto", True, "cuda", "cu"),
        ("win32", "cuda", False, "cuda", "cu"),
    ],
)
def test_build_follows_system_driver_and_choice(monkeypatch, platform, choice, driver, build, index):
    monkeypatch.setattr(torch_build.sys, "platform", platform)
    monkeypatch.setattr(torch_build, "has_nvidia_driver", lambda: driver)
    assert torch_build.resolve(choice) == build
    found = torch_build.own_index(build)
    assert found is None if index is None else found.startswith(f"https://download.pytorch.org/whl/{index}")


@pytest.mark.parametrize("choice", ["", "gpu", "CPU"])
def test_unknown_choice_names_the_three(choice):
    with pytest.raises(SetupError, match="auto, cpu or cuda"):
        torch_build.resolve(choice)


def test_mac_has_no_cuda(monkeypatch):
    monkeypatch.setattr(torch_build.sys, "platform", "darwin")
    with pytest.raises(SetupError, match="no CUDA build"):
        torch_build.resolve("cuda")


def test_driver_is_found_by_its_folder_or_its_tool(monkeypatch, tmp_path):
    monkeypatch.setattr(torch_build.sys, "platform", "linux")
    monkeypatch.setattr(torch_build, "DRIVER_FOLDER", str(tmp_path / "nvidia"))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert not torch_build.has_nvidia_driver()
    (tmp_path / "nvidia").mkdir()
    assert torch_build.has_nvidia_driver()
    (tmp_path / "nvidia").rmdir()
    (tmp_path / "nvidia-smi").write_text("#!/bin/sh\n")
    (tmp_path / "nvidia-smi").chmod(0o755)
    assert torch_build.has_nvidia_driver()
    monkeypatch.setattr(torch_build.sys, "platform", "darwin")
    assert not torch_build.has_nvidia_driver()


def test_cpu_build_comes_from_pytorch_index_with_its_size_shown(machine, served, capsys):
    folder = served.folder / "cpu" / "torch"
    add_wheel(folder, "2.12.0+cpu")
    add_wheel(folder, "2.14.0+cpu")  # beyond the requirement
    add_wheel(folder, "2.13.1+cpu", "cp27-cp27m-win32")  # for another machine
    size = add_wheel(folder, "2.13.0+cpu", content="#" * 50_000)
    write_page(folder)
    install(machine)
    assert installed(machine) == "2.13.0+cpu"
    reported = capsys.readouterr().out  # pip's own progress goes past it
    assert f"the CPU build from {served.address}/cpu, {torch_build.megabytes(size)} to download." in reported
    requested = next(place for place, (command, _) in enumerate(served.requested) if command == "HEAD")
    fetched = served.requested.index(("GET", "/cpu/torch/torch-2.13.0%2Bcpu-py3-none-any.whl"))
    assert requested < fetched


CUDA = torch_build.Plan(["torch", "nvidia-cublas", "triton"], 2_700_000_000)


@pytest.fixture
def pypi_has(monkeypatch):
    """pypi_has(plan): what pip would download from PyPI."""
    return lambda plan: monkeypatch.setattr(torch_build, "planned", lambda *_: plan)


@pytest.mark.every(3)
@pytest.mark.parametrize("state", ["nothing listens", "it has no torch", "it has none for this Python"])
def test_unusable_index_refuses_the_cuda_build_of_pypi_without_consent(
    machine, served, capsys, monkeypatch, pypi_has, state
):
    if state == "nothing listens":
        monkeypatch.setattr(torch_build, "CPU_INDEX", "http://127.0.0.1:9/cpu")
    if state == "it has none for this Python":
        add_wheel(served.folder / "cpu" / "torch", "2.13.0+cpu", "cp27-cp27m-win32")
        write_page(served.folder / "cpu" / "torch")
    pypi_has(CUDA)
    with pytest.raises(SetupError, match=r"only the CUDA build, 2\.7 GB") as caught:
        install(machine)
    assert "--yes" in caught.value.remedy
    assert installed(machine) == ""
    reported = capsys.readouterr().out
    assert f"{torch_build.CPU_INDEX} cannot be used" in reported
    assert "PyPI has the CUDA build, 2.7 GB to download." in reported
    torch_build.install(torch_build.Path(sys.executable), REQUIREMENT, "cpu", machine / ".venv", agreed=True)


@pytest.mark.parametrize(("answer", "goes_on"), [("y", True), ("YES", True), ("n", False), ("", False)])
def test_large_download_is_a_question_in_a_terminal(monkeypatch, capsys, answer, goes_on):
    monkeypatch.setattr(torch_build.sys, "stdin", SimpleNamespace(isatty=lambda: True))
    monkeypatch.setattr("builtins.input", lambda _: answer)
    outcome = contextlib.nullcontext() if goes_on else pytest.raises(SetupError, match="PyPI has the CUDA build")
    with outcome:
        torch_build.require_consent("cuda", CUDA, "PyPI has", agreed=False)
    assert "2.7 GB" in capsys.readouterr().out


@pytest.mark.parametrize("size", [50_000_000, torch_build.LARGE])
def test_small_download_needs_no_consent(size):
    torch_build.require_consent("cuda", torch_build.Plan(["torch", "nvidia-cublas"], size), "PyPI has", agreed=False)


def test_cuda_build_of_pypi_is_installed_with_the_other_packages_after_consent(machine, served, capsys, pypi_has):
    pypi_has(CUDA)
    with pytest.raises(SetupError, match="CUDA build") as caught:
        install(machine, "cuda")
    assert "--torch cpu" in caught.value.remedy
    torch_build.install(torch_build.Path(sys.executable), REQUIREMENT, "cuda", machine / ".venv", agreed=True)
    assert served.requested == []
    assert "the CUDA build, 2.7 GB to download." in capsys.readouterr().out
    assert installed(machine) == ""


def add_cuda_wheels(folder) -> None:
    """Build a newer torch that requires a library for cards, and that library."""
    add_wheel(folder / "torch", "2.13.1", requires="nvidia-cublas")
    add_wheel(folder / "nvidia-cublas", "13.0", name="nvidia_cublas")
    for name in ("torch", "nvidia-cublas"):
        write_page(folder / name)


@pytest.mark.every(2)
@pytest.mark.parametrize("option", ["find-links", "index-url"])
def test_cpu_build_in_the_settings_of_pip_is_taken_instead_of_a_newer_cuda_build(
    machine, served, capsys, monkeypatch, option
):
    add_cuda_wheels(served.folder / "pypi")
    add_wheel(served.folder / "pypi" / "torch", "2.12.0+cpu")
    add_wheel(served.folder / "pypi" / "torch", "2.13.0+cpu")
    add_wheel(served.folder / "pypi" / "torch", "2.14.0+cpu")  # beyond the requirement
    write_page(served.folder / "pypi" / "torch")
    if option == "find-links":
        places = " ".join(str(served.folder / "pypi" / name) for name in ("torch", "nvidia-cublas"))
        monkeypatch.setenv("PIP_FIND_LINKS", places)
    monkeypatch.setenv("PIP_INDEX_URL", f"{served.address}/pypi")
    install(machine)
    assert installed(machine) == "2.13.0+cpu"
    assert "the CPU build 2.13.0+cpu, which pip finds by its own settings" in capsys.readouterr().out


def test_cuda_build_in_the_settings_of_pip_needs_consent(machine, served, capsys, monkeypatch):
    add_cuda_wheels(served.folder / "pypi")
    monkeypatch.setenv("PIP_INDEX_URL", f"{served.address}/pypi")
    plan = torch_build.planned(torch_build.Path(sys.executable), REQUIREMENT, machine / ".venv")
    wheels = [file for name in ("torch", "nvidia-cublas") for file in (served.folder / "pypi" / name).glob("*.whl")]
    assert (plan.is_cuda, plan.size) == (True, sum(file.stat().st_size for file in wheels))
    monkeypatch.setattr(torch_build, "LARGE", 100)
    with pytest.raises(SetupError, match=r"pip's settings \(index-url\) have only the CUDA build"):
        install(machine)
    assert not any(path.startswith("/cpu") for _, path in served.requested), "the settings replace all other places"


def test_pip_that_reaches_no_index_reports_its_cause(machine, monkeypatch):
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_RETRIES", "0")
    with pytest.raises(SetupError, match="index"):
        torch_build.planned(torch_build.Path(sys.executable), REQUIREMENT, machine / ".venv")


@pytest.mark.every(3)
@pytest.mark.parametrize("where", ["variable", "file"])
@pytest.mark.parametrize("option", ["index-url", "no-index", "find-links", "extra-index-url"])
def test_pip_index_settings_take_precedence(machine, served, capsys, monkeypatch, pypi_has, option, where):
    pypi_has(torch_build.Plan(["torch"], 1000))
    add_wheel(served.folder / "cpu" / "torch", "2.13.0+cpu")
    write_page(served.folder / "cpu" / "torch")
    add_wheel(served.folder / "pypi" / "torch", "2.13.0")
    write_page(served.folder / "pypi" / "torch")
    value = {
        "index-url": f"{served.address}/pypi",
        "extra-index-url": f"{served.address}/pypi",
        "no-index": "1",
        "find-links": str(served.folder / "pypi" / "torch"),
    }[option]
    if where == "variable":
        monkeypatch.setenv(f"PIP_{option.replace('-', '_').upper()}", value)
    else:
        (machine / "pip.conf").write_text(f"[global]\n{option} = {value}\n")
        monkeypatch.setenv("PIP_CONFIG_FILE", str(machine / "pip.conf"))
    install(machine)
    assert installed(machine) == "", "the installation of the rest takes it, by the same settings"
    assert not any(path.startswith("/cpu") for _, path in served.requested)
    assert f"by its own settings ({option})" in capsys.readouterr().out


@pytest.mark.every(2)
@pytest.mark.parametrize("option", ["find-links", "extra-index-url"])
def test_pip_settings_for_other_packages_are_ignored(machine, served, monkeypatch, option):
    """An additional index without PyTorch does not affect PyTorch."""
    add_wheel(served.folder / "cpu" / "torch", "2.13.0+cpu")
    write_page(served.folder / "cpu" / "torch")
    value = str(machine / ".venv") if option == "find-links" else f"{served.address}/pypi"
    monkeypatch.setenv(f"PIP_{option.replace('-', '_').upper()}", value)
    install(machine)
    assert installed(machine) == "2.13.0+cpu"


def test_installed_pytorch_is_kept(machine, served, capsys, monkeypatch):
    monkeypatch.setattr(torch_build, "is_installed", lambda *_: True)
    install(machine)
    assert (served.requested, capsys.readouterr().out) == ([], "")


@pytest.mark.parametrize(("requirement", "expected"), [("torch>=2", True), ("torch>=2,<2.1", False)])
def test_installed_version_is_read_from_the_environment(requirement, expected):
    pytest.importorskip("torch")
    assert torch_build.is_installed(torch_build.Path(sys.executable), requirement) is expected
