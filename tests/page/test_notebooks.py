"""The example notebooks: they run, and their outputs work in a browser without a network."""

from __future__ import annotations

import html
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

nbformat = pytest.importorskip("nbformat", reason="needs nbclient and ipykernel (the extra dev)")
nbclient = pytest.importorskip("nbclient", reason="needs nbclient and ipykernel (the extra dev)")
pytest.importorskip("ipykernel", reason="needs nbclient and ipykernel (the extra dev)")
pytest.importorskip("pandas", reason="the notebooks make tables")

from tests.page.browser import Browser  # noqa: E402

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
_SECONDS_PER_CELL = 300
_MAX_FRAME_BYTES = 300_000


@pytest.fixture(scope="module")
def executed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """All notebooks with their outputs, by name."""
    found = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]))
        patch.setenv("IPYTHONDIR", str(tmp_path_factory.mktemp("ipython")))
        patch.setenv("JUPYTER_PLATFORM_DIRS", "1")
        patch.setenv("PYDEVD_DISABLE_FILE_VALIDATION", "1")
        for path in NOTEBOOKS:
            book = nbformat.read(path, as_version=4)
            book.metadata.kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
            folder = tmp_path_factory.mktemp(path.stem)
            client = nbclient.NotebookClient(
                book, timeout=_SECONDS_PER_CELL, resources={"metadata": {"path": str(folder)}}
            )
            client.execute()
            found[path.stem] = book
    return found


def _outputs(book: Any) -> list[Any]:
    return [output for cell in book.cells if cell.cell_type == "code" for output in cell.outputs]


def _html_outputs(book: Any) -> list[str]:
    return [output.data["text/html"] for output in _outputs(book) if "text/html" in output.get("data", {})]


@pytest.mark.slow
def test_notebooks_run_without_error_output(executed: dict[str, Any]) -> None:
    """Every cell runs, and prints nothing to the error stream: loading shows no progress bar."""
    assert set(executed) == {"first-run", "compare-strategies", "own-processor"}
    for name, book in executed.items():
        streams = [output for output in _outputs(book) if output.output_type == "stream" and output.name == "stderr"]
        assert not [output for output in streams if "IProgress not found" not in output.text], name
        assert any("<iframe" in output for output in _html_outputs(book)), name


@pytest.mark.slow
def test_frames_are_small_and_need_no_network(executed: dict[str, Any]) -> None:
    for book in executed.values():
        for output in _html_outputs(book):
            assert len(output.encode()) <= _MAX_FRAME_BYTES
            assert "src=" not in output.replace("srcdoc=", "")


@pytest.fixture(scope="module")
def browser(needs_chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    if sys.platform == "win32":
        pytest.skip("the browser is driven through inherited pipes")
    made = Browser(needs_chromium, tmp_path_factory.mktemp("browser"))
    yield made
    made.close()


@pytest.mark.slow
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_notebook_output_follows_theme(theme: str, executed: dict[str, Any], browser: Browser, tmp_path: Path) -> None:
    """Several pages on one page: each shows its text in the notebook's theme, without errors or requests."""
    outputs = [output for book in executed.values() for output in _html_outputs(book)]
    back, ink = ("#ffffff", "#111111") if theme == "light" else ("#111111", "#eeeeee")
    page = tmp_path / f"{theme}.html"
    eager = [output.replace('loading="lazy"', "") for output in outputs]
    body = "".join(f"<div>{output}</div>" for output in eager)
    page.write_text(
        f'<!DOCTYPE html><html><meta charset="utf-8"><title>{html.escape(theme)}</title>'
        f'<body style="background:{back};color:{ink}">{body}</body></html>', encoding="utf-8",
    )  # fmt: skip
    browser.open(page)
    browser.evaluate(
        "new Promise((done) => { const check = () => Array.from(document.querySelectorAll('iframe')).every((frame) =>"
        "!frame.contentDocument.getElementById('columns').hidden) ? done(0) : requestAnimationFrame(check); check(); })"
    )  # the data of a frame is unpacked after it was loaded
    shown = browser.evaluate(
        "JSON.stringify(Array.from(document.querySelectorAll('iframe'), frame => ["
        "frame.contentDocument.documentElement.dataset.theme,"
        "frame.contentDocument.getElementById('tokens').textContent"
        " || frame.contentDocument.getElementById('tree-canvas').textContent]))"
    )
    frames = json.loads(shown)
    count = sum(output.count("<iframe") for output in outputs)
    assert len(frames) == count >= 4
    assert {found for found, _ in frames} == {theme}
    assert all(text for _, text in frames)
    assert [address for address in browser.requests if address != "about:srcdoc"] == [page.as_uri()]
    assert browser.errors == []
