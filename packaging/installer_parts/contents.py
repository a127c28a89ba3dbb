"""Decide which files of the environment the installed program contains.

Everything that the program can import is packed, except what `LEFT_OUT` lists. `tests/packaging/test_installer.py`
requires that the program never uses what is on that list. On Linux, libraries of the system are left to the system,
except those that Python itself is linked against: a copy of libstdc++ or of the X libraries from the build machine
would hide newer ones that the graphics driver needs.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterable
from fnmatch import translate
from pathlib import Path, PurePosixPath

from decodescope.app.start.qt_libraries import PACKAGES, dynamic_section
from decodescope.resources.language import LANGUAGES

LEFT_OUT = {
    "torch/test/*": "tests of PyTorch's C++ code",
    "torch/bin/test_*": "the same",
    "torch/bin/*Test": "the same",
    "torch/bin/*.ptl": "the same",
    "torch/bin/upgrader_models/*": "the same",
    "torch/bin/protoc*": "the compiler of protocol buffers",
    "torch/lib/libtorchbind_test.*": "a library for tests",
    "torch/lib/libjitbackend_test.*": "a library for tests",
    "torch/lib/libbackend_with_compiler.*": "a library for tests",
    "torch/lib/libaoti_custom_ops.*": "a library for tests",
    "torch/lib/*.lib": "import libraries for C++ programs on Windows",
    "torch/include/*": "headers for C++ extensions",
    "torch/share/*": "CMake files for C++ programs",
    "torch/utils/tensorboard/*": "needs a package that is not installed",
    "triton/*": "compiles kernels for graphics cards",
    "nvidia/*": "libraries for graphics cards",
    "libcuda*": "a library for graphics cards, if the building machine has it",
    "transformers/cli/*": "commands of a terminal",
    "transformers/models/*/modular_*.py": "sources that the modeling files are generated from",
    "transformers/models/*/convert_*.py": "scripts that convert checkpoints of other programs",
    "transformers/convert_slow_tokenizers_checkpoints_to_fast.py": "a script",
    "pyqtgraph/examples/*": "examples",
    "PySide6/Qt*/lib/*Qt6Quick*": "Qt Quick",
    "PySide6/Qt*/lib/*Qt6Qml*": "Qt Quick's language",
    "PySide6/Qt*/lib/*Qt6VirtualKeyboard*": "a keyboard on the screen, written in Qt Quick",
    "PySide6/Qt*/lib/*Qt6Pdf*": "reads PDF",
    "PySide6/Qt*/lib/*Qt6EglF*": "screens without a window system",
    "PySide6/Qt*/plugins/egldeviceintegrations/*": "screens without a window system",
    "PySide6/Qt*/plugins/platforms/libqeglfs.*": "screens without a window system",
    "PySide6/Qt*/plugins/platforms/libqlinuxfb.*": "screens without a window system",
    "PySide6/Qt*/plugins/platforms/libqvkkhrdisplay.*": "screens without a window system",
    "PySide6/Qt*/plugins/platforms/libqminimalegl.*": "screens without a window system",
    "PySide6/Qt*/plugins/platforms/libqvnc.*": "screens without a window system",
    "PySide6/Qt*/plugins/generic/*": "input devices of screens without a window system",
    "libQt6EglF*": "links to these",
    "PySide6/Qt*/plugins/networkinformation/*": "whether there is a network",
    "PySide6/Qt*/plugins/imageformats/*qpdf.*": "reads PDF",
    "PySide6/Qt*/plugins/platforminputcontexts/*qtvirtualkeyboard*": "a keyboard on the screen",
    "PySide6/Qt*/plugins/sqldrivers/*": "databases",
    "PySide6/Qt*/plugins/qmltooling/*": "Qt Quick",
    "PySide6/Qt*/qml/*": "Qt Quick",
    "PySide6/Qt*/translations/*": "Qt's own texts in languages that the window does not have",
    "PySide6/translations/*": "the same, on Windows",
}  # fmt: skip
"""Patterns of files, relative to the environment's folder of packages, with the reason that nothing misses them.

`*` also matches `/`. Qt lies in PySide6/Qt on Linux and macOS, and in PySide6 itself on Windows, where its hooks of
PyInstaller collect only what the program imports.
"""
KEPT_TRANSLATIONS = "*/translations/qtbase_{}.qm"
"""Qt's own texts in a language of the window; the code is that of its folder in resources/translations."""
PLUGIN_PACKAGES = (
    "_pydecimal", "asyncio", "concurrent.futures", "cProfile", "csv", "dbm.dumb", "decimal", "difflib", "email",
    "fractions",
    "graphlib", "html.parser", "http.client", "http.server", "logging.handlers", "multiprocessing", "pdb", "pprint",
    "profile", "queue", "runpy", "sched", "shelve", "sqlite3", "statistics", "timeit", "trace", "unittest", "wave",
    "xml.dom.minidom", "xml.etree.ElementTree", "xmlrpc.client", "zipapp", "zoneinfo",
)  # fmt: skip
"""Modules of the standard library that the program may not use, but plug-ins and watched scripts do."""
EXCLUDED_MODULES = (
    "IPython", "PyInstaller", "PySide6.QtQml", "PySide6.QtQuick", "PySide6.QtTest", "PySide6.QtUiTools", "_dbm",
    "_gdbm", "_tkinter", "babel", "curses", "hypothesis", "ipykernel", "jupyter_client", "matplotlib", "mypy",
    "notebook", "nvidia", "pip", "pytest", "pytestqt", "readline", "ruff", "tensorboard", "tensorflow", "tkinter",
    "triton",
)  # fmt: skip
"""Modules that an installed library would use if it could: tools, and readline, gdbm and Berkeley DB (_dbm), whose
licences would apply to the whole package. `shelve` and `dbm` use `dbm.dumb` without these.
"""
PYTHON_LIBRARIES = (
    "libbz2", "libcrypto", "libexpat", "libffi", "liblzma", "libmpdec", "libpython", "libsqlite3", "libssl", "libuuid",
    "libz.so",
)  # fmt: skip
"""Libraries of the system that Python's own modules are linked against, without version."""
C_LIBRARY = (
    "ld-linux", "libc.so", "libdl.so", "libm.so", "libmvec.so", "libpthread.so", "libresolv.so", "librt.so",
    "libutil.so", "linux-vdso",
)  # fmt: skip
"""Beginnings of the names of glibc's libraries."""
OPTIONAL_FILES = ("platformthemes/libqgtk3.so", "printsupport/")
"""Parts of the paths of plug-ins that Qt uses only where the system has what they need."""
LOADED_BY_NAME = ("libdbus-1.so.3", "libgcc_s.so.1")
"""Libraries that no file names as needed, because they are loaded while the program runs."""

_LEFT_OUT = re.compile("|".join(translate(pattern) for pattern in LEFT_OUT))
_KEPT = re.compile("|".join(translate(KEPT_TRANSLATIONS.format(code)) for code in LANGUAGES))


def is_left_out(path: str) -> bool:
    """Return whether a file is on the list; `path` is relative to the folder of packages, with any separator."""
    path = path.replace("\\", "/")
    return _LEFT_OUT.match(path) is not None and _KEPT.match(path) is None


def is_left_out_module(name: str) -> bool:
    """Return whether a module is on the list, or lies in a package of which everything is."""
    path = name.replace(".", "/")
    return is_left_out(f"{path}.py") or is_left_out(f"{path}/__init__.py")


def is_left_to_the_system(name: str, source: str) -> bool:
    """Return whether a library must come from the system; `source` is the path that it was found at. Linux only."""
    if not source.startswith(("/lib/", "/lib64/", "/usr/lib/", "/usr/lib64/")):
        return False
    return not PurePosixPath(name).name.startswith(PYTHON_LIBRARIES) and "/lib-dynload/" not in source


def system_libraries(folder: Path) -> dict[str, str]:
    """Return the libraries that the ELF files in a folder need and that neither the folder nor glibc has, each with one
    file that needs it.
    """
    files = sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink() and is_elf(path))
    present = {path.name for path in folder.rglob("*")}
    needed = dict.fromkeys(LOADED_BY_NAME, "the program while it runs")
    for path in files:
        if not any(part in path.as_posix() for part in OPTIONAL_FILES):
            for name in dynamic_section(path)[0]:
                needed.setdefault(name, path.relative_to(folder).as_posix())
    return {name: by for name, by in needed.items() if name not in present and not name.startswith(C_LIBRARY)}


def debian_package(library: str) -> str | None:
    """Return the Debian package that contains a library: by the program's own list, or as dpkg says on this machine."""
    if library in PACKAGES:
        return PACKAGES[library][0]
    return next(filter(None, map(_package_of_file, _installed_copies(library))), None)


def system_copyrights(paths: Iterable[Path]) -> str:
    """Return the copyright files of the Debian packages that the files of the system among `paths` belong to."""
    files = {str(path) for path in paths if str(path).startswith(("/lib/", "/usr/lib/"))}
    texts = []
    for package in sorted(filter(None, set(map(_package_of_file, files)))):
        text = Path("/usr/share/doc", package, "copyright")
        if text.is_file():
            texts += ["", "-" * 80, f"{package} of Debian", "-" * 80, "", text.read_text(encoding="utf-8").strip(), ""]
    return "\n".join(texts)


def _installed_copies(library: str) -> list[str]:
    """Return the paths of a library in the loader's cache; none where there is no ldconfig."""
    ldconfig = shutil.which("ldconfig", path=f"{os.environ.get('PATH', '')}:/sbin:/usr/sbin")
    if ldconfig is None:
        return []
    printed = subprocess.run([ldconfig, "-p"], capture_output=True, text=True, check=False).stdout
    return [line.rpartition(" => ")[2] for line in printed.splitlines() if line.split(" ", 1)[0].strip() == library]


def _package_of_file(path: str) -> str | None:
    """Return the package that installed a file, or None. On Debian, /lib is a link to /usr/lib."""
    if shutil.which("dpkg-query") is None:
        return None
    for name in dict.fromkeys((path, os.path.realpath(path), path.removeprefix("/usr"), f"/usr{path}")):
        answer = subprocess.run(["dpkg-query", "--search", name], capture_output=True, text=True, check=False)
        if answer.returncode == 0 and ":" in answer.stdout:
            return answer.stdout.split(":", 1)[0]
    return None


def is_elf(path: Path) -> bool:
    """Return whether a file begins as programs and libraries of Linux do."""
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"
