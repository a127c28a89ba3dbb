"""No control of the application is a Qt class that the mouse wheel changes."""

from __future__ import annotations

import ast
from pathlib import Path

from decodescope import app

FORBIDDEN = {
    "QComboBox", "QFontComboBox", "QSpinBox", "QDoubleSpinBox", "QSlider", "QDial", "QTabBar", "QTabWidget",
    "QDateEdit", "QTimeEdit", "QDateTimeEdit",
}  # fmt: skip
HERE = Path(app.__file__).parent


def uses(path: Path) -> list[str]:
    """Return where a file creates or subclasses one of these classes."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names: list[ast.expr] = []
        if isinstance(node, ast.Call):
            names = [node.func]
        elif isinstance(node, ast.ClassDef):
            names = node.bases
        for name in names:
            reported = name.attr if isinstance(name, ast.Attribute) else name.id if isinstance(name, ast.Name) else ""
            if reported in FORBIDDEN:
                found.append(f"{path.relative_to(HERE)}:{name.lineno} {reported}")
    return found


def test_source_uses_only_inputs_that_ignore_wheel() -> None:
    files = [path for path in HERE.rglob("*.py") if path != HERE / "widgets" / "inputs.py"]
    assert len(files) > 300
    assert [use for path in files for use in uses(path)] == [], "use app.widgets.inputs"


def test_check_finds_wheel_sensitive_classes() -> None:
    assert len(uses(HERE / "widgets" / "inputs.py")) == 5
