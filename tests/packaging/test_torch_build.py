"""The installed build of PyTorch, its source, and the message before. Indexes are served on the loopback."""

import functools
import hashlib
import http.server
import os
import sys
import threading
import zipfile

import pytest
from bootstrap_parts import torch_build
from bootstrap_parts.errors import SetupError

REQUIREMENT = "torch>=2.6,<2.14"


def add_wheel(folder, version: str, tag: str = "py3-none-any", content: str = "") -> int:
    """Build a small wheel of torch and return its size."""
    folder.mkdir(parents=True, exist_ok=True)
    path, about = folder / f"torch-{version}-{tag}.whl", f"torch-{version}.dist-info"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr("torch/__init__.py", f"__version__ = {version!r}\n{content}")
        wheel.writestr(f"{about}/METADATA", f"Metadata-Version: 2.1\nName: torch\nVersion: {version}\n")
        wheel.writestr(f"{about}/WHEEL", f"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: {tag}\n")
        wheel.writestr(f"{about}/RECORD", "")
    return path.stat().st_size


def write_page(folder) -> None:
    """Write the page of an index that links to the wheels of a folder, with their checksums."""
    sums = {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in folder.glob("*.whl")}
    links = (f'<a href="{name.replace("+", "%2B")}#sha256={total}">{name}</a><br>' for name, total in sums.items())
    (folder / "index.html").write_text(f"<!DOCTYPE html><html><body>{''.join(links)}</body></html>")


class Handler(http.server.SimpleHTTPRequestHandler):
    """Serve a folder and record what is requested."""

    def log_message(self, *_: object) -> None:
        pass

    def send_head(self):
        self.server.requested.append((self.command, self.path))
        return super().send_head()


@pytest.fixture
def served(tmp_path):
    """Two indexes: PyTorch's with CPU builds, and one in the place of PyPI."""
    folder = tmp_path / "indexes"
    for name in ("cpu", "pypi"):
        (folder / name / "torch").mkdir(parents=True)
        write_page(folder / name / "torch")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=str(folder)))
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


@pytest.mark.parametrize("state", ["nothing listens", "it has no torch", "it has none for this Python"])
def test_unusable_index_falls_back_to_pypi(machine, served, capsys, monkeypatch, state):
    if state == "nothing listens":
        monkeypatch.setattr(torch_build, "CPU_INDEX", "http://127.0.0.1:9/cpu")
    if state == "it has none for this Python":
        add_wheel(served.folder / "cpu" / "torch", "2.13.0+cpu", "cp27-cp27m-win32")
        write_page(served.folder / "cpu" / "torch")
    install(machine)
    assert installed(machine) == ""
    (reported,) = (line for line in capsys.readouterr().out.splitlines() if "cannot be used" in line)
    assert torch_build.CPU_INDEX in reported
    assert "the CUDA build from PyPI is taken, about 3.0 GB" in reported


def test_pypi_build_is_installed_with_the_other_packages(machine, served, capsys):
    install(machine, "cuda")
    assert served.requested == []
    assert "the CUDA build from PyPI, about 3.0 GB to download." in capsys.readouterr().out


@pytest.mark.every(3)
@pytest.mark.parametrize("where", ["variable", "file"])
@pytest.mark.parametrize("option", ["index-url", "no-index", "find-links", "extra-index-url"])
def test_pip_index_settings_take_precedence(machine, served, capsys, monkeypatch, option, where):
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
