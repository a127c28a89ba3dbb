"""Every block of Python in the documents runs, in the order of its page, and what it asserts is true.

The blocks of a page share their names. `model`, `request` and `decodescope` exist beforehand, for pages that show a few
lines only. A block after the comment `<!-- not run: reason -->` is only compiled.
"""

import re
from pathlib import Path

import pytest

pytest.importorskip("transformers")

ROOT = Path(__file__).resolve().parents[2]
_BLOCK = re.compile(r"(<!-- not run: [^>]+-->\s*)?^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks_of(page: Path) -> list[tuple[bool, str]]:
    """Return the blocks of a page: whether each is run, and its code, with the line numbers of the page."""
    text = page.read_text(encoding="utf-8")
    return [
        (match.group(1) is None, "\n" * text[: match.start(2)].count("\n") + match.group(2))
        for match in _BLOCK.finditer(text)
    ]


TUTORIALS = ROOT / "docs" / "tutorials"
PAGES = sorted(
    page.relative_to(ROOT).as_posix()
    for page in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md"))
    if blocks_of(page) and page.parent != TUTORIALS / "zh_CN"
)
"""The Chinese tutorials have the code of the English ones, which is run once."""


def test_tutorials_are_among_the_tested_pages() -> None:
    assert {"README.md", "docs/tutorials/first-run.md", "docs/tutorials/study.md"} <= set(PAGES)


def test_chinese_tutorials_have_the_same_code() -> None:
    for chinese in sorted((TUTORIALS / "zh_CN").glob("*.md")):
        texts = [[code.lstrip("\n") for _, code in blocks_of(page)] for page in (chinese, TUTORIALS / chinese.name)]
        assert texts[0] == texts[1], chinese.name


@pytest.mark.every(5)
@pytest.mark.parametrize("page", PAGES)
def test_code_blocks_of_a_page_run(page, tmp_path, monkeypatch) -> None:
    import decodescope
    from decodescope import Request

    monkeypatch.chdir(tmp_path)
    namespace = {
        "__name__": "page",
        "decodescope": decodescope,
        "model": decodescope.load("storyteller-draft"),
        "request": Request("Once upon a time", {"max_new_tokens": 14, "do_sample": True}, seed=1),
    }
    for is_run, code in blocks_of(ROOT / page):
        compiled = compile(code, page, "exec")
        if is_run:
            exec(compiled, namespace)  # an exception, also that of an assertion in the block, fails this test


def test_code_blocks_are_extracted_with_their_run_state(tmp_path) -> None:
    page = tmp_path / "page.md"
    page.write_text("Text.\n\n```python\n1 / 0\n```\n\n<!-- not run: needs a network -->\n```python\n2 / 0\n```\n")
    assert blocks_of(page) == [(True, "\n\n\n1 / 0\n"), (False, "\n\n\n\n\n\n\n\n2 / 0\n")]
