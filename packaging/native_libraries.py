"""Cross-compile the native libraries that come with the program, for all systems, with PyPI's package `ziglang`.

    python packaging/native_libraries.py [--output build/native_libraries] [--check] [TARGET...]
    python packaging/native_libraries.py --here

The first form writes a folder for each target, with a library for each level of its processors, the library that
reports a processor's features, and a manifest of sizes and SHA-256 sums. `--check` builds twice in different folders
and compares the bytes. `--here` writes the library for this processor into the checkout, unless it is there or a C++
compiler is: a checkout without a compiler gets its native code this way.

The compiler is the importable package `ziglang`, if it has the version below; otherwise that version is downloaded into
a temporary folder, verified by its hash, and removed afterwards.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import metadata, util
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from decodescope.core.native import library_choice  # noqa: E402  # the root has to be on the path first
from decodescope.core.native.library_choice import FEATURES_SOURCE, LEVELS, MAIN_SOURCE, MANIFEST, SHIPPED  # noqa: E402

ZIGLANG = "0.17.1"
HASHES = (
    "ea6cc5d87b033cf0aedfbc8f9549a908cae6c50ac31f1698188fa48a74524b54",  # Linux x86-64
    "b7c5f02fccd40f89b999ee16a1f5ddced56e6182370f8affe494bcf8a28cf07e",  # Linux ARM64
    "69c3dfc3aff6a297ec4017aa904782c0e450eb988982d7f675d83edce27526fb",  # Windows x86-64
    "27a8da5f8eaa0e76ebbc7c2594130ed4646c1101ada2ce0aa86fe580c74154b9",  # Windows ARM64
    "4e0b4b9c02b8d0d220e9948010f860b62ff11d96abb39762eca5fa2ef3f7bc97",  # macOS x86-64
    "09953b6af7f64168b915180a42774f520f92d86ef6331b28e33915c7e1f0bb23",  # macOS ARM64
)
"""SHA-256 of the wheels of that version."""
REQUIREMENT = f"ziglang=={ZIGLANG}"
SWITCH_VARIABLE = "DECODESCOPE_NATIVE_LIBRARIES"
"""Environment variable: 0 builds wheels and checkouts without native libraries."""
OLDEST_GLIBC = (2, 28)
_V3 = (
    "sse3", "ssse3", "sse4.1", "sse4.2", "popcnt", "cx16", "sahf", "xsave", "avx", "avx2", "bmi", "bmi2", "f16c", "fma",
    "lzcnt", "movbe",
)  # fmt: skip
_V4 = (*_V3, "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl")
COMPILER_FEATURES = {
    "v4-vnni": (*_V4, "avx512vnni"), "v4": _V4, "v3-vnni": (*_V3, "avxvnni"), "v3": _V3,
    "i8mm": ("dotprod", "i8mm"), "dotprod": ("dotprod",), "neon": (),
}  # fmt: skip
"""What the compiler may use at each level, by LLVM's names. The levels of `-mcpu` would also prefer vectors of 256
bits, which costs 5 % at v4, and compile C++'s own library again for each level.
"""
FLAGS = tuple(flag for flag in library_choice.FLAGS if flag != "-march=native")
_REMEDY = (
    f"Install it (pip install {REQUIREMENT}), or set {SWITCH_VARIABLE}=0 to do without native libraries: without them "
    "and without a C++ compiler, the program is several times slower."
)


class NativeLibraryError(Exception):
    """A library that cannot be made, with cause and remedy."""


@dataclass(frozen=True)
class BuildTarget:
    """A system and kind of processor. `triple`: zig's name for it; `tag`: that of its wheels."""

    name: str
    machine: str
    triple: str
    tag: str
    suffix: str
    levels: tuple[str, ...]


def _target(name: str, machine: str, triple: str, tag: str, suffix: str, without: str = "") -> BuildTarget:
    levels = tuple(level.name for level in LEVELS[machine] if level.name != without)
    return BuildTarget(name, machine, f"{machine}-{triple}", tag, suffix, levels)


TARGETS = {
    target.name: target
    for target in (
        _target("linux-x86_64", "x86_64", "linux-gnu.2.28", "manylinux_2_28_x86_64", ".so"),
        _target("linux-aarch64", "aarch64", "linux-gnu.2.28", "manylinux_2_28_aarch64", ".so"),
        _target("windows-x86_64", "x86_64", "windows-gnu", "win_amd64", ".dll"),
        _target("windows-arm64", "aarch64", "windows-gnu", "win_arm64", ".dll"),
        # All of Apple's own processors have DotProd.
        _target("macos-arm64", "aarch64", "macos.11.0", "macosx_11_0_arm64", ".dylib", without="neon"),
        _target("macos-x86_64", "x86_64", "macos.11.0", "macosx_11_0_x86_64", ".dylib"),
    )
}
"""musl is missing: neither PyTorch nor PySide6 has wheels for it."""


def main(arguments: list[str] | None = None) -> int:
    """Build what the arguments name and return the exit code."""
    parser = argparse.ArgumentParser(description="Cross-compile the native libraries that come with the program.")
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"default: all of {', '.join(TARGETS)}")
    parser.add_argument("--output", type=Path, default=ROOT / "build" / "native_libraries", help="folder for them")
    parser.add_argument("--check", action="store_true", help="build twice in different folders and compare the bytes")
    parser.add_argument("--here", action="store_true", help="build the library for this processor into the checkout")
    options = parser.parse_args(arguments)
    if unknown := sorted(set(options.targets) - set(TARGETS)):
        parser.error(f"unknown targets: {', '.join(unknown)}; known ones: {', '.join(TARGETS)}")
    try:
        if options.here:
            build_here()
        else:
            build_all([TARGETS[name] for name in options.targets or TARGETS], options.output, options.check)
    except NativeLibraryError as error:
        print(f"native libraries: {error}", file=sys.stderr)
        return 1
    return 0


def is_wanted() -> bool:
    """Return whether native libraries are to be built at all."""
    return os.environ.get(SWITCH_VARIABLE) != "0"


def target_of_this_machine() -> BuildTarget | None:
    """Return the target whose libraries run on this machine; None if there is none."""
    if sys.platform == "linux":
        library, version = platform.libc_ver()
        if library != "glibc" or tuple(int(part) for part in version.split(".")[:2]) < OLDEST_GLIBC:
            return None
    system = {"win32": "windows", "darwin": "macos"}.get(sys.platform, sys.platform)
    found = (target for target in TARGETS.values() if target.name.startswith(f"{system}-"))
    return next((target for target in found if target.machine == library_choice.machine()), None)


def build_all(targets: Sequence[BuildTarget], output: Path, check: bool = False) -> None:
    """Write the folders of the targets into `output` and print sizes and sums. Raises NativeLibraryError."""
    with ziglang() as zig, tempfile.TemporaryDirectory() as scratch:
        for target in targets:
            begun = time.monotonic()
            manifest = build_target(zig, target, output / target.name, Path(scratch, "cache"))
            if check:
                again = build_target(zig, target, Path(scratch, "again", target.name), Path(scratch, "cache"))
                if again != manifest:
                    raise NativeLibraryError(f"Two builds of {target.name} differ. Compare their files.")
            print(f"{target.name}: {time.monotonic() - begun:.0f} s{', twice with equal bytes' if check else ''}")
            for file in listed_files(manifest):
                print(f"{file['bytes']:10,d}  {file['sha256']}  {file['file']}", flush=True)


def build_target(
    zig: Path, target: BuildTarget, folder: Path, cache: Path, levels: Iterable[str] | None = None
) -> dict[str, Any]:
    """Write the libraries of a target, or of some of its levels, and their manifest into `folder`; return the manifest.

    `cache`: where zig keeps C++'s own library, compiled once for each target, unless ZIG_GLOBAL_CACHE_DIR is set.
    Raises NativeLibraryError.
    """
    folder = folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    names = [level for level in target.levels if levels is None or level in levels]
    files = {level: f"decodescope-{level}{target.suffix}" for level in names}
    # The first one compiles C++'s library, for which the others would wait.
    for level in names[:1]:
        _compile(zig, target, MAIN_SOURCE, folder / files[level], cache, COMPILER_FEATURES[level])
    with ThreadPoolExecutor(max(1, min(4, os.cpu_count() or 1))) as pool:
        running = [
            pool.submit(_compile, zig, target, MAIN_SOURCE, folder / files[level], cache, COMPILER_FEATURES[level])
            for level in names[1:]
        ]
        running.append(pool.submit(_compile_features, zig, target, folder, cache))
        for one in running:
            one.result()
    manifest: dict[str, Any] = {
        "source": library_choice.source_digest(),
        "machine": target.machine,
        "target": target.triple,
        "compiler": f"ziglang {ZIGLANG}",
        "features": _described(folder / _features_name(target)),
        "libraries": {level: _described(folder / file) for level, file in files.items()},
    }
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8", newline="\n")
    return manifest


def build_here() -> None:
    """Write the library for this processor into the checkout, and print what takes time; at once and in silence if a
    library fits, a C++ compiler exists, or nothing is wanted. Raises NativeLibraryError.
    """
    if not is_wanted() or library_choice.find_compiler() or library_choice.choose_library().is_shipped:
        return
    target = target_of_this_machine()
    if target is None:
        return
    print(
        "This computer has no C++ compiler: making the native code for its processor with one that is downloaded "
        "(about 100 MB), and removed afterwards. It takes some minutes, once.",
        flush=True,
    )
    begun = time.monotonic()
    with ziglang() as zig, tempfile.TemporaryDirectory() as scratch:
        cache, folder = Path(scratch, "cache"), Path(scratch, "libraries")
        folder.mkdir()
        _compile_features(zig, target, folder, cache)
        features = library_choice.features_reported_by(folder / _features_name(target))
        levels = [level.name for level in LEVELS[target.machine] if level.needs <= features][:1]
        if not levels:
            print("This processor is too old for the native code.")
            return
        build_target(zig, target, folder, cache, levels)
        install(folder)
    size = sum(path.stat().st_size for path in SHIPPED.iterdir()) / 1e6
    print(f"Native code {levels[0]}: {size:.1f} MB, made in {time.monotonic() - begun:.0f} s.", flush=True)


def install(folder: Path) -> None:
    """Move the libraries in `folder` into the checkout, the manifest last: no library without it is used."""
    (SHIPPED / MANIFEST).unlink(missing_ok=True)
    SHIPPED.mkdir(exist_ok=True)
    for path in sorted(folder.iterdir(), key=lambda path: path.name == MANIFEST):
        partial = SHIPPED / f"{path.name}.partial"
        shutil.copy(path, partial)
        partial.replace(SHIPPED / path.name)
    library_choice.forget_choices()


def listed_files(manifest: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the entries of a manifest for its files: `file`, `bytes` and `sha256`."""
    return [manifest["features"], *manifest["libraries"].values()]


def own_ziglang() -> Path | None:
    """Return zig's program in the importable package, if that has the right version."""
    try:
        spec = util.find_spec("ziglang") if metadata.version("ziglang") == ZIGLANG else None
    except metadata.PackageNotFoundError:
        return None
    folders = (spec.submodule_search_locations or ()) if spec else ()
    return next((path for folder in folders for path in [_program(Path(folder).parent)] if path.is_file()), None)


@contextmanager
def ziglang() -> Iterator[Path]:
    """Yield the path of zig's program: the importable one, or one in a temporary folder. Raises NativeLibraryError."""
    if (own := own_ziglang()) is not None:
        yield own
        return
    with tempfile.TemporaryDirectory(prefix="decodescope-ziglang-") as folder:
        requirements = Path(folder, "requirements.txt")
        requirements.write_text(" ".join([REQUIREMENT, *(f"--hash=sha256:{one}" for one in HASHES)]), encoding="utf-8")
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input"]
        command += ["--no-deps", "--no-compile", "--only-binary", ":all:", "--require-hashes"]
        answer = subprocess.run(
            [*command, "--target", str(Path(folder, "packages")), "-r", str(requirements)],
            capture_output=True, text=True, errors="replace",
        )  # fmt: skip
        program = _program(Path(folder, "packages"))
        if answer.returncode or not program.is_file():
            reason = (answer.stderr.strip().splitlines() or ["pip wrote no reason"])[-1]
            raise NativeLibraryError(f"The compiler {REQUIREMENT} cannot be had ({reason}). {_REMEDY}")
        yield program


def _program(packages: Path) -> Path:
    return packages / "ziglang" / ("zig.exe" if os.name == "nt" else "zig")


def _features_name(target: BuildTarget) -> str:
    return f"processor-features{target.suffix}"


def _compile_features(zig: Path, target: BuildTarget, folder: Path, cache: Path) -> None:
    _compile(zig, target, FEATURES_SOURCE, folder / _features_name(target), cache, ())


def _compile(zig: Path, target: BuildTarget, source: Path, path: Path, cache: Path, features: Iterable[str]) -> None:
    """Compile one library, stripped; the path of the checkout does not get into it. Raises NativeLibraryError."""
    is_c = source.suffix == ".c"
    flags = [flag for flag in FLAGS if not (is_c and flag.startswith("-std="))]
    chosen = [part for name in features for part in ("-Xclang", "-target-feature", "-Xclang", f"+{name}")]
    with tempfile.TemporaryDirectory(dir=path.parent) as scratch:
        output = Path(scratch, path.name)
        if target.suffix == ".dylib":
            flags.append(f"-Wl,-install_name,@rpath/{path.name}")
        command = [str(zig), "cc" if is_c else "c++", "-target", target.triple, "-mcpu=baseline", *chosen, *flags, "-s"]
        answer = subprocess.run(
            [*command, source.name, "-o", str(output)], cwd=source.parent, capture_output=True, text=True,
            errors="replace", env={
                "ZIG_GLOBAL_CACHE_DIR": str(cache), **os.environ, "ZIG_LOCAL_CACHE_DIR": str(Path(scratch, "zig")),
            },
        )  # fmt: skip
        if answer.returncode or not output.is_file():
            raise NativeLibraryError(f"{source.name} cannot be compiled for {target.name}.\n{answer.stderr[-3000:]}")
        output.chmod(0o644)
        output.replace(path)


def _described(path: Path) -> dict[str, Any]:
    content = path.read_bytes()
    return {"file": path.name, "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}


if __name__ == "__main__":
    sys.exit(main())
