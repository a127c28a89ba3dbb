"""Lazy imports of public packages: names are collected without importing, and imported on first access."""

from __future__ import annotations

import builtins
import subprocess
import sys
from types import ModuleType

import pytest

from decodescope import core
from decodescope.core.common.lazy_imports import LazyImport, lazy_imports

PACKAGES = ["catalog", "events", "labs", "labs.preference", "labs.scale", "labs.speed", "media", "remote"]
SOURCE = """
with lazy_imports(globals()) as NAMES:
    import decodescope.core.glossary as terms
    from decodescope.core.common.text import cut_short as shorten
    from nowhere import nothing
"""


@pytest.fixture
def package() -> ModuleType:
    module = ModuleType("sample")
    module.__dict__["lazy_imports"] = lazy_imports
    exec(SOURCE, module.__dict__)
    return module


def test_lazy_imports_collect_modules_and_names_without_importing(package: ModuleType) -> None:
    assert package.NAMES == {
        "terms": LazyImport("decodescope.core.glossary", None),
        "shorten": LazyImport("decodescope.core.common.text", "cut_short"),
        "nothing": LazyImport("nowhere", "nothing"),
    }
    assert not {"terms", "shorten", "nothing"} & set(vars(package))
    assert {"terms", "shorten", "nothing"} <= set(dir(package))


def test_first_access_imports_the_name_and_keeps_it(package: ModuleType) -> None:
    from decodescope.core import glossary
    from decodescope.core.common.text import cut_short

    assert package.terms is glossary
    assert package.shorten is cut_short
    assert vars(package)["terms"] is glossary
    with pytest.raises(ModuleNotFoundError, match="nowhere"):
        package.nothing  # noqa: B018


def test_unknown_name_raises_an_error_with_the_nearest_name(package: ModuleType) -> None:
    with pytest.raises(AttributeError, match=r"module 'sample' has no attribute 'terns'\. Did you mean 'terms'\?"):
        package.terns  # noqa: B018


def test_block_restores_the_import_function_also_after_an_error() -> None:
    original = builtins.__import__
    with lazy_imports({"__name__": "sample"}):
        assert builtins.__import__ is not original
    assert builtins.__import__ is original
    with pytest.raises(ZeroDivisionError), lazy_imports({"__name__": "sample"}):
        raise ZeroDivisionError
    assert builtins.__import__ is original


@pytest.mark.parametrize("package", ["decodescope.core", *(f"decodescope.core.{name}" for name in PACKAGES)])
def test_every_public_name_of_a_lazy_package_can_be_imported(package: str) -> None:
    module = sys.modules.get(package) or __import__(package, fromlist=["__all__"])
    assert all(hasattr(module, name) for name in module.__all__)


def test_importing_core_imports_no_module_of_a_public_name() -> None:
    code = "import sys; from decodescope import core; "
    code += "print(*{source.module for source in core.PUBLIC_NAMES.values()} & set(sys.modules))"
    out = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=core.__path__[0] + "/.."
    )
    assert not out.stdout.strip()
