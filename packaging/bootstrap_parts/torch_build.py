"""Choose the build of PyTorch: for the processor alone, or for NVIDIA cards (CUDA), which is many times larger.

PyPI has one build for each system: the CUDA build for Linux, the CPU build for Windows and macOS. The other builds are
in indexes of PyTorch's own, which its installation page names. Settings of pip that say where packages come from are
left to decide, but a CUDA build is not downloaded without a card or consent.
"""

from __future__ import annotations

import html.parser
import json
import os
import re
import shutil
import subprocess
import sys
import urllib.parse
import urllib.request
from pathlib import Path

from bootstrap_parts import pip
from bootstrap_parts.errors import SetupError
from bootstrap_parts.failures import diagnose

CHOICES = ("auto", "cpu", "cuda")
CPU_INDEX = "https://download.pytorch.org/whl/cpu"
CUDA_INDEX = "https://download.pytorch.org/whl/cu130"
DRIVER_FOLDER = "/proc/driver/nvidia"
TIMEOUT_SECONDS = 15
# Download sizes in GB of torch 2.13 with all that it needs, for where an index does not say: measured in 2026.
TYPICAL_SIZE = {("linux", "cpu"): 0.2, ("linux", "cuda"): 3.0, ("win32", "cpu"): 0.2, ("win32", "cuda"): 1.9}
OTHER_SIZE = 0.1
EXCLUSIVE = ("no-index", "index-url")
"""Options of pip that replace PyPI."""
LARGE = 1e9
"""Bytes above which there is a question before a download."""
# The rest of what the program needs, measured in 2026: GB to download, and GB on the disk together with PyTorch.
REST_SIZE = 0.2
DISK_SIZE = {"cpu": 2.0, "cuda": 8.0}
MEGABITS_PER_SECOND = 50
# Prints the file of the newest build for this Python among the links of an index page, read as JSON from stdin.
SELECT = """
import json, sys
from pip._vendor.packaging import specifiers, tags, utils, requirements
query = json.load(sys.stdin)
wanted = requirements.Requirement(query["requirement"]).specifier
supported = {tag: place for place, tag in enumerate(reversed(list(tags.sys_tags())))}
best = None
for name, link in query["links"]:
    try:
        _, version, build, own = utils.parse_wheel_filename(name)
    except (utils.InvalidWheelFilename, ValueError):
        continue
    fits = [supported[tag] for tag in own if tag in supported]
    if fits and wanted.contains(version):
        best = max(best or (version, max(fits), link), (version, max(fits), link))
print(best[2] if best else "")
"""


# Prints the newest of the versions, read as JSON from stdin, that a requirement allows.
NEWEST = """
import json, sys
from pip._vendor.packaging.requirements import Requirement
from pip._vendor.packaging.version import Version
query = json.load(sys.stdin)
allowed = Requirement(query["requirement"]).specifier
print(max(filter(allowed.contains, query["versions"]), key=Version, default=""))
"""
# Succeeds if the installed version meets the requirement.
INSTALLED = """
import sys
from importlib.metadata import version
from pip._vendor.packaging.requirements import Requirement
sys.exit(not Requirement(sys.argv[1]).specifier.contains(version("torch"), prereleases=True))
"""


def has_nvidia_driver() -> bool:
    """Return whether a driver for NVIDIA cards is installed; always False on macOS."""
    if sys.platform == "darwin":
        return False
    return os.path.exists(DRIVER_FOLDER) or shutil.which("nvidia-smi") is not None


def resolve(choice: str) -> str:
    """Return "cpu" or "cuda" for a choice.

    Raises:
        SetupError: The choice is unknown, or impossible on this system.
    """
    if choice not in CHOICES:
        raise SetupError(
            f"--torch takes {', '.join(CHOICES[:-1])} or {CHOICES[-1]}, and not {choice!r}.",
            "leave it out to get the build that fits this machine.",
        )
    if choice == "cuda" and sys.platform == "darwin":
        raise SetupError("PyTorch has no CUDA build for macOS.", "leave --torch out.")
    if choice != "auto":
        return choice
    return "cuda" if has_nvidia_driver() else "cpu"


def own_index(build: str) -> str | None:
    """Return PyTorch's index with a build; None where PyPI has that build for this system."""
    if sys.platform.startswith("linux") and build == "cpu":
        return CPU_INDEX
    if sys.platform == "win32" and build == "cuda":
        return CUDA_INDEX
    return None


def install(python: Path, requirement: str, build: str, folder: Path, agreed: bool = False) -> None:
    """Install PyTorch alone into the environment, if its build is not the one that pip would take anyway.

    What is installed here satisfies the requirement of the project, so the following installation leaves it alone. The
    CPU build is searched for in pip's own settings and in PyTorch's index. Where only a build for cards can be had, it
    is left to the following installation after consent: `agreed`, or the answer to a question.

    Raises:
        SetupError: PyTorch cannot be had, or the download is large and was not agreed to.
    """
    if is_installed(python, requirement):
        return
    source = deciding_setting(python, pip_settings(python), requirement)
    if source and install_from_settings(python, requirement, build, folder, source):
        return
    index = own_index(build)
    if not source and index is None and build == "cpu":
        print(f"PyTorch: the CPU build from PyPI, {typical_size(build)}.", flush=True)
        return
    if index is not None and not is_exclusive(source):
        if build == "cuda":
            require_consent(build, None, f"{index} has", agreed)
        if install_from_index(python, requirement, build, folder, index):
            return
        print(f"PyTorch's index {index} cannot be used from here.", flush=True)
    plan = planned(python, requirement, folder)
    where = f"pip's settings ({source}) have" if source else "PyPI has"
    print(f"PyTorch: {where} the {in_words('cuda' if plan.is_cuda else 'cpu')}, {plan.described}.", flush=True)
    if plan.is_cuda:
        require_consent(build, plan, where, agreed)


def is_exclusive(source: str | None) -> bool:
    """Return whether pip's settings replace PyPI, so that no other place may be used."""
    return source in EXCLUSIVE


def install_from_settings(python: Path, requirement: str, build: str, folder: Path, source: str) -> bool:
    """Return whether pip's own settings give the wanted build without a large download. A CPU build beside a newer CUDA
    build is installed.
    """
    try:
        plan = planned(python, requirement, folder)
    except SetupError:
        plan = Plan([], 0)  # the following installation names the cause
    if build == "cuda" and plan.is_cuda:
        return False
    if build == "cpu" and plan.is_cuda:
        pinned = newest_cpu_version(python, requirement)
        if pinned is None:
            return False
        print(f"PyTorch: the CPU build {pinned}, which pip finds by its own settings ({source}).", flush=True)
        pip.install(python, ["--no-deps", f"torch=={pinned}"], folder)
        return True
    print(f"PyTorch: the build that pip finds by its own settings ({source}).", flush=True)
    return True


def install_from_index(python: Path, requirement: str, build: str, folder: Path, index: str) -> bool:
    """Install from PyTorch's own index; return False if that cannot be used."""
    print(
        f"PyTorch: the {in_words(build)} from {index}, {described_size(python, index, requirement, build)}.", flush=True
    )
    options = ["--no-deps", "--index-url", index, "--retries", "1", "--timeout", str(TIMEOUT_SECONDS)]
    try:
        pip.install(python, [*options, requirement], folder)
    except SetupError:
        return False
    return True


def require_consent(wanted: str, plan: Plan | None, having: str, agreed: bool) -> None:
    """Ask before a large download, unless `agreed`.

    Raises:
        SetupError: The answer is no, or there is no terminal for one.
    """
    size = plan.described if plan else typical_size("cuda")
    if agreed or (plan is not None and 0 < plan.size <= LARGE):
        return
    if sys.stdin is not None and sys.stdin.isatty():
        reason = "This computer seems to have no NVIDIA card, but o" if wanted == "cpu" else "O"
        print(f"{reason}nly the CUDA build can be had: {size}. It runs on the processor too.", flush=True)
        if input("Download it? [y/N] ").strip().lower() in ("y", "yes"):
            return
    if wanted == "cpu":
        raise SetupError(
            f"the CPU build of PyTorch cannot be had: {having} only the CUDA build, {size}.",
            f"make {CPU_INDEX} reachable, or set PIP_EXTRA_INDEX_URL to an index that has the CPU build; or pass --yes "
            "to download the CUDA build, which runs on the processor too.",
        )
    raise SetupError(
        f"{having} the CUDA build of PyTorch, {size}.",
        "pass --yes to download it, or --torch cpu for the build without support for cards, about 0.2 GB.",
    )


class Plan:
    """What pip would download: PyTorch and all that it needs."""

    def __init__(self, names: list[str], size: int) -> None:
        self.names, self.size = names, size

    @property
    def is_cuda(self) -> bool:
        """Whether the build is for NVIDIA cards: it requires their libraries."""
        return any(re.match(r"nvidia-|cuda-|triton$", name) for name in self.names)

    @property
    def described(self) -> str:
        """The size in words; 0 bytes mean that the index does not say."""
        if not self.size:
            return typical_size("cuda" if self.is_cuda else "cpu")
        return f"{megabytes(self.size)} to download"


def planned(python: Path, requirement: str, folder: Path) -> Plan:
    """Return what pip would download by its settings.

    Raises:
        SetupError: pip failed, with its cause in words.
    """
    command = [str(python), "-m", "pip", "--disable-pip-version-check", "install", "--dry-run", "--quiet", "--no-input"]
    command += ["--ignore-installed", "--report", "-", requirement]
    answer = subprocess.run(command, capture_output=True)
    try:
        files = json.loads(answer.stdout.decode())["install"]
        names = [file["metadata"]["name"].lower().replace("_", "-") for file in files]
        return Plan(names, sum(size_of_link(file["download_info"]["url"]) for file in files))
    except (ValueError, KeyError, TypeError):
        raise diagnose(answer.stderr.decode(errors="replace").splitlines(), folder, answer.returncode) from None


def size_of_link(link: str) -> int:
    """Return the bytes of a file on this computer or elsewhere; 0 where that cannot be found out."""
    try:
        if link.startswith("file:"):
            return os.path.getsize(urllib.request.url2pathname(urllib.parse.urlsplit(link).path))
        request = urllib.request.Request(link, method="HEAD")
        with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as answer:
            return int(answer.headers["Content-Length"])
    except (OSError, ValueError, TypeError):
        return 0


def newest_cpu_version(python: Path, requirement: str) -> str | None:
    """Return the newest version with the label +cpu that pip finds by its settings and the requirement allows."""
    command = [str(python), "-m", "pip", "--disable-pip-version-check", "index", "versions", "torch"]
    answer = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    listed = re.search(r"^Available versions: (.*)$", answer.stdout.decode(errors="replace"), re.MULTILINE)
    versions = [one for one in (listed.group(1).split(", ") if listed else ()) if one.endswith("+cpu")]
    query = json.dumps({"requirement": requirement, "versions": versions})
    chosen = subprocess.run([str(python), "-I", "-c", NEWEST], input=query.encode(), stdout=subprocess.PIPE)
    return chosen.stdout.decode().strip() or None


def is_installed(python: Path, requirement: str) -> bool:
    """Return whether an environment already has a PyTorch that meets the requirement."""
    command = [str(python), "-c", INSTALLED, requirement]
    return subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0


def in_words(build: str | None) -> str:
    """Return a build as people call it; None is one that was not recorded."""
    return {"cpu": "CPU build", "cuda": "CUDA build"}.get(build, "usual build")


def set_up_size(build: str) -> str:
    """Return about how much a whole set-up downloads, takes on the disk, and lasts."""
    system = "linux" if sys.platform.startswith("linux") else sys.platform
    download = TYPICAL_SIZE.get((system, build), OTHER_SIZE) + REST_SIZE
    minutes = 2 + download * 8000 / MEGABITS_PER_SECOND / 60
    return (
        f"About {download:.1f} GB are downloaded and {DISK_SIZE[build]:.0f} GB of the disk are used: about "
        f"{minutes:.0f} minutes at {MEGABITS_PER_SECOND} Mbit/s"
    )


def typical_size(build: str) -> str:
    """Return about how much a build and all that it needs is to download."""
    system = "linux" if sys.platform.startswith("linux") else sys.platform
    return f"about {TYPICAL_SIZE.get((system, build), OTHER_SIZE)} GB to download"


def described_size(python: Path, index: str, requirement: str, build: str) -> str:
    """Return how much is to download from an index, as exactly as it says."""
    size = download_size(python, index, requirement)
    return typical_size(build) if size is None else f"{megabytes(size)} to download"


def megabytes(size: int) -> str:
    """Return a number of bytes in the unit that pip uses for it."""
    if size < 1e6:
        return f"{size / 1e3:.1f} kB"
    return f"{size / 1e6:.1f} MB" if size < 1e9 else f"{size / 1e9:.1f} GB"


def download_size(python: Path, index: str, requirement: str) -> int | None:
    """Return the bytes of the file that pip will take from an index; None where that cannot be found out."""
    page = f"{index.rstrip('/')}/torch/"
    try:
        with urllib.request.urlopen(page, timeout=TIMEOUT_SECONDS) as answer:
            links = Links(answer.geturl())
            links.feed(answer.read().decode("utf-8", errors="replace"))
        query = json.dumps({"requirement": requirement, "links": links.found})
        chosen = subprocess.run(
            [str(python), "-I", "-c", SELECT], input=query.encode(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        link = chosen.stdout.decode().strip()
        if not link:
            return None
        request = urllib.request.Request(link, method="HEAD")
        with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS) as answer:
            return int(answer.headers["Content-Length"])
    except (OSError, ValueError, TypeError, subprocess.SubprocessError):
        return None


class Links(html.parser.HTMLParser):
    """The files that a page of an index links to: pairs of file name and address."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.page, self.found = page, []

    def handle_starttag(self, tag: str, attributes: list) -> None:
        """Store a link."""
        address = dict(attributes).get("href") if tag == "a" else None
        if address:
            whole = urllib.parse.urldefrag(urllib.parse.urljoin(self.page, address)).url
            self.found.append((urllib.parse.unquote(whole.rsplit("/", 1)[-1]), whole))


def pip_settings(python: Path) -> dict[str, str]:
    """Return what pip's files and variables set, by the names of its options."""
    command = [str(python), "-m", "pip", "--disable-pip-version-check", "config", "list"]
    answer = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    found: dict[str, dict[str, str]] = {section: {} for section in ("global", "install", ":env:")}
    for line in answer.stdout.decode(errors="replace").splitlines():
        name, equals, value = line.partition("=")
        section, _, option = name.rpartition(".")
        if equals and section in found:
            found[section][option.replace("_", "-")] = value.strip("'\"")
    return {option: value for options in found.values() for option, value in options.items()}


def deciding_setting(python: Path, settings: dict[str, str], requirement: str) -> str | None:
    """Return the option of pip's settings that says where PyTorch comes from; None if they leave that open.

    Another index in the place of PyPI, or none, decides for all packages. Additional places decide if PyTorch is there.
    """
    for option in EXCLUSIVE:
        if settings.get(option, "").lower() not in ("", "0", "false", "no", "off"):
            return option
    places = [option for option in ("find-links", "extra-index-url") if settings.get(option)]
    if not places:
        return None
    # With one of the additional indexes in PyPI's place, or none, pip finds only what the settings add.
    more = settings.get("extra-index-url", "").replace("\\n", " ").split()
    where = ["--index-url", more[0]] if more else ["--no-index"]
    command = [str(python), "-m", "pip", "--disable-pip-version-check", "install", "--dry-run", "--no-deps", "--quiet"]
    command += ["--ignore-installed", "--no-input", "--retries", "1", *where, requirement]
    found = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0
    return " and ".join(places) if found else None
