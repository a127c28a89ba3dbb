"""Write sdists and wheels whose bytes depend only on their contents and one date.

Archives usually record the time, owner and permissions of each file, and the order in which a file system lists them.
Here the order is alphabetical, the time is `source_date`, and permissions are those that Git records.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import os
import shutil
import stat
import subprocess
import tarfile
import time
import zipfile
from collections.abc import Callable, Iterable, Mapping
from fnmatch import fnmatch
from pathlib import Path

OLDEST = 315_532_800
"""1980-01-01, the earliest date that a ZIP archive can hold."""
PARTS = ("core", "app", "resources")
"""Folders of a checkout that are packages inside `decodescope`."""
_NOT_SOURCES = (
    ".git", ".venv*", "*_cache", "__pycache__", "build", "dist", "*.egg-info", ".coverage*", "*.pyc", "*.mo",
    "PKG-INFO", "libraries",
)  # fmt: skip
"""Names of files and folders that are products of tools, wherever they are."""


def source_date(root: Path) -> int:
    """Return the date of all files in seconds since 1970: SOURCE_DATE_EPOCH, or that of the commit, or `OLDEST`."""
    if given := os.environ.get("SOURCE_DATE_EPOCH"):
        return max(OLDEST, int(given))
    found = _git(root, "log", "-1", "--format=%ct") if (root / ".git").exists() else None
    return max(OLDEST, int(found)) if found else OLDEST


def source_files(root: Path) -> list[Path]:
    """Return the files of the sdist, relative to `root`: what Git tracks, or everything except products of tools."""
    listed = _git(root, "ls-files", "-z") if (root / ".git").exists() else None
    if listed is not None:
        return sorted(Path(name) for name in listed.split("\0") if name and (root / name).is_file())
    return sorted(_walk(root, root))


def write_sdist(target: Path, root: Path, top: str, metadata: str, epoch: int) -> None:
    """Write the sources below the folder `top` as .tar.gz, with `metadata` as PKG-INFO."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
        _add_member(archive, f"{top}/PKG-INFO", metadata.encode(), 0o644, epoch)
        for name in source_files(root):
            path = root / name
            mode = 0o755 if path.stat().st_mode & stat.S_IXUSR else 0o644
            _add_member(archive, f"{top}/{name.as_posix()}", path.read_bytes(), mode, epoch)
    with target.open("wb") as file, gzip.GzipFile("", "wb", 9, file, mtime=epoch) as compressed:
        compressed.write(packed.getvalue())


def documentation_files(root: Path) -> dict[str, bytes]:
    """Return the documentation's pages and pictures by the names that they have in an installed program."""
    docs = root / "docs"
    pages = (path for path in docs.rglob("*") if path.suffix in (".md", ".png") and path.is_file())
    return {
        f"decodescope/resources/documentation/{page.relative_to(docs).as_posix()}": page.read_bytes() for page in pages
    }


def rewrite_wheel(
    path: Path, extra: Mapping[str, str], epoch: int, files_of_packages: Mapping[str, bytes], platform: str = ""
) -> Path:
    """Write a wheel again in a fixed form, with further files; return its path.

    `extra` maps names inside .dist-info to texts, `files_of_packages` names inside the wheel to contents. RECORD, the
    list of files with their hashes, is made again. With a `platform`, such as `win_amd64`, the result is another wheel
    with that tag.
    """
    with zipfile.ZipFile(path) as wheel:
        files = {name: wheel.read(name) for name in wheel.namelist() if not name.endswith("/")}
    record = next(name for name in files if name.endswith(".dist-info/RECORD"))
    info = record.removesuffix("/RECORD")
    files |= {f"{info}/{name}": text.encode() for name, text in extra.items()} | dict(files_of_packages)
    if platform:
        pure = files[f"{info}/WHEEL"]
        files[f"{info}/WHEEL"] = pure.replace(b"Root-Is-Purelib: true", b"Root-Is-Purelib: false").replace(
            b"Tag: py3-none-any", f"Tag: py3-none-{platform}".encode()
        )
        path = path.with_name(path.name.replace("-py3-none-any.whl", f"-py3-none-{platform}.whl"))
    del files[record]
    ordered = sorted(files, key=lambda name: (name.startswith(info), name))  # .dist-info last, as PEP 427 recommends
    lines = [_record_line(name, files[name]) for name in ordered]
    files[record] = "".join([*lines, f"{record},,\n"]).encode()
    date = time.gmtime(epoch)[:6]
    partial = path.with_suffix(".partial")
    with zipfile.ZipFile(partial, "w") as wheel:
        for name in (*ordered, record):
            member = zipfile.ZipInfo(name, date)
            member.compress_type = zipfile.ZIP_DEFLATED
            member.create_system = 3  # Unix, also on Windows
            member.external_attr = (stat.S_IFREG | 0o644) << 16
            wheel.writestr(member, files[name])
    partial.replace(path)
    return path


def arrange_package(root: Path, target: Path, place: Callable[[Path, Path], object]) -> Path:
    """Arrange the packages of a checkout as an installed program has them: `core`, `app` and `resources` inside
    `decodescope`. `place` copies or links one file or folder. Returns the package in `target`.
    """
    package = target / "decodescope"
    package.mkdir(parents=True, exist_ok=True)
    for path in (*(root / "decodescope").glob("*.py"), *(root / part for part in PARTS)):
        place(path, package / path.name)
    return package


def copy(source: Path, target: Path) -> None:
    """Copy a file, or a folder without the products of tools."""
    if source.is_dir():
        products = shutil.ignore_patterns("__pycache__", "*.pyc", "*_cache", "libraries")  # native ones of this machine
        shutil.copytree(source, target, ignore=products)
    else:
        shutil.copy(source, target)


def checksums(paths: Iterable[Path]) -> str:
    """Return the lines of a SHA256SUMS file, which `sha256sum --check` reads."""
    return "".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in sorted(paths))


def _add_member(archive: tarfile.TarFile, name: str, content: bytes, mode: int, epoch: int) -> None:
    member = tarfile.TarInfo(name)
    member.size, member.mode, member.mtime = len(content), mode, epoch
    archive.addfile(member, io.BytesIO(content))


def _record_line(name: str, content: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    quoted = f'"{name}"' if "," in name else name
    return f"{quoted},sha256={digest},{len(content)}\n"


def _walk(root: Path, folder: Path) -> Iterable[Path]:
    for path in folder.iterdir():
        if any(fnmatch(path.name, pattern) for pattern in _NOT_SOURCES):
            continue
        if path.is_dir() and not path.is_symlink():
            yield from _walk(root, path)
        elif path.is_file():
            yield path.relative_to(root)


def _git(root: Path, *arguments: str) -> str | None:
    """Return what Git prints; None without Git or outside a repository."""
    try:
        answer = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, encoding="utf-8")
    except OSError:
        return None
    return answer.stdout if answer.returncode == 0 else None
