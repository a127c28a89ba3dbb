"""Former public names: they resolve to the current objects with a DeprecationWarning, and nothing here uses them."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import core
import decodescope
from core.deprecated_names import DEPRECATED_NAMES, SUBPACKAGE_NAMES, current_name

ROOT = Path(__file__).resolve().parents[2]
FORMER = sorted(DEPRECATED_NAMES.items())


@pytest.mark.parametrize(("former", "current"), FORMER)
@pytest.mark.parametrize("module", [core, decodescope], ids=lambda module: module.__name__)
def test_a_former_name_warns_at_the_line_that_uses_it(module: object, former: str, current: str) -> None:
    name = module.__name__  # type: ignore[attr-defined]
    with pytest.warns(DeprecationWarning, match=former) as caught:
        value = getattr(module, former)
    assert value is getattr(core, current)
    assert str(caught[0].message) == f"{name}.{former} is deprecated. Use {name}.{current}."
    assert caught[0].filename == __file__
    with pytest.warns(DeprecationWarning, match=former):  # at every use, not only the first
        getattr(module, former)


@pytest.mark.parametrize(("former", "current"), FORMER)
def test_only_the_current_name_is_exported(former: str, current: str) -> None:
    assert current in core.__all__
    assert former not in core.__all__
    assert former not in dir(decodescope)
    assert current in dir(decodescope)


def test_current_names_do_not_warn() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name in DEPRECATED_NAMES.values():
            assert getattr(decodescope, name) is getattr(core, name)
        assert current_name("core", "nothing_of_the_kind") == "nothing_of_the_kind"
        with pytest.raises(AttributeError):
            core.nothing_of_the_kind  # noqa: B018


@pytest.mark.slow
def test_star_imports_do_not_warn() -> None:
    code = "from core import *; from decodescope import *; print('what_if' in globals(), 'replay_step' in globals())"
    run = [sys.executable, "-W", "always::DeprecationWarning", "-c", code]
    out = subprocess.run(run, capture_output=True, text=True, check=True, cwd=ROOT)
    assert out.stdout.split() == ["False", "True"]
    assert not [name for name in DEPRECATED_NAMES if f".{name} is deprecated" in out.stderr]


@pytest.mark.parametrize("folder", ["core", "app", "packaging", "tests"])
def test_the_program_uses_current_names_only(folder: str) -> None:
    used = []
    for path in (ROOT / folder).rglob("*.py"):
        if path.name in (Path(__file__).name, "deprecated_names.py"):
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), path.name)):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                if node.value.id in ("core", "decodescope") and node.attr in DEPRECATED_NAMES:
                    used.append(f"{path}:{node.lineno}: {node.attr}")
            elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in ("core", "decodescope"):
                used += [f"{path}:{node.lineno}: {name.name}" for name in node.names if name.name in DEPRECATED_NAMES]
    assert not used


@pytest.mark.parametrize(
    ("module", "former", "current"),
    [(module, *pair) for module, names in SUBPACKAGE_NAMES.items() for pair in sorted(names.items())],
)
def test_former_names_of_other_modules_warn_too(module: str, former: str, current: str) -> None:
    package = importlib.import_module(module)
    with pytest.warns(DeprecationWarning, match=rf"{module}\.{former} is deprecated\. Use {module}\.{current}\."):
        assert getattr(package, former) is getattr(package, current)
    assert current in package.__all__
    assert former not in package.__all__
    with pytest.raises(AttributeError, match="nothing_of_the_kind"):
        package.nothing_of_the_kind  # noqa: B018
