"""A skipped test is a failure if every tool is required."""

import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.required_tools import NEEDS_CARD, OPTION, SWITCH, keep_files_needing_tools

SKIPPED_TEST = "import pytest\n\ndef test_it():\n    pytest.skip({reason!r})\n"
SKIPPED_MARK = "import pytest\n\n@pytest.mark.skipif(True, reason={reason!r})\ndef test_it():\n    pass\n"
SKIPPED_FIXTURE = """
import pytest

@pytest.fixture
def tool():
    pytest.skip({reason!r})

def test_it(tool):
    pass
"""
SKIPPED_FILE = "import pytest\n\npytest.skip({reason!r}, allow_module_level=True)\n"
EXPECTED_FAILURE = "import pytest\n\n@pytest.mark.xfail(reason={reason!r})\ndef test_it():\n    assert False\n"
SKIPS = {"test": SKIPPED_TEST, "mark": SKIPPED_MARK, "fixture": SKIPPED_FIXTURE, "file": SKIPPED_FILE}


def run(root, folder, text: str, reason: str, required: bool) -> subprocess.CompletedProcess:
    """Run pytest on one file, with or without the switch."""
    (folder / "test_it.py").write_text(text.format(reason=reason))
    variables = {**os.environ, "PYTHONPATH": str(root), SWITCH: "1" if required else ""}
    command = [sys.executable, "-m", "pytest", "-q", "-rs", "-c", os.devnull, "--rootdir", str(folder)]
    command += ["-p", "tests.required_tools", "-p", "no:cacheprovider", "-p", "no:xdist", str(folder)]
    return subprocess.run(command, env=variables, cwd=folder, capture_output=True, text=True)


@pytest.mark.every(4)
@pytest.mark.parametrize("how", SKIPS)
def test_missing_tool_fails_only_if_required(root, tmp_path, how):
    reason = "there is no Chromium"
    strict, usual = (run(root, tmp_path, SKIPS[how], reason, required) for required in (True, False))
    assert strict.returncode != 0
    assert "1 skipped" not in strict.stdout
    assert reason in strict.stdout
    assert usual.returncode in (0, 5)
    assert "1 skipped" in usual.stdout


def test_missing_card_is_always_accepted(root, tmp_path):
    assert "1 skipped" in run(root, tmp_path, SKIPPED_MARK, f"{NEEDS_CARD}: CUDA", True).stdout


def test_expected_failure_is_not_a_skip(root, tmp_path):
    answer = run(root, tmp_path, EXPECTED_FAILURE, "not yet", True)
    assert answer.returncode == 0
    assert "1 xfailed" in answer.stdout


@pytest.mark.parametrize("is_chosen", [True, False])
def test_files_needing_tools_are_kept_whole_and_others_deselected(is_chosen):
    def item(file, *fixtures):
        return SimpleNamespace(path=Path(file), fixturenames=list(fixtures))

    native = [item("test_native.py", "tmp_path", "needs_compiler"), item("test_native.py")]
    other, deselected = item("test_other.py", "tmp_path"), []
    hook = SimpleNamespace(pytest_deselected=lambda items: deselected.extend(items))
    config = SimpleNamespace(getoption={OPTION: is_chosen}.get, hook=hook)
    items = [native[0], other, native[1]]
    keep_files_needing_tools(config, items)
    assert items == (native if is_chosen else [native[0], other, native[1]])
    assert deselected == ([other] if is_chosen else [])


def test_tests_skip_for_a_missing_tool_by_a_fixture_only(root):
    """A skip elsewhere would leave its file out of `--files-needing-tools`."""
    skip = re.compile(r"skipif\(|pytest\.skip\(")
    tool = re.compile(
        r"which\((?!\"git)|find_compiler\(|find_library\(|\.found\(\)|chromium\(\)|webm_unsupported_reason\("
    )
    outside = []
    for path in sorted((root / "tests").rglob("*.py")):
        for block in re.split(r"\n(?=def |@|class |\w+ = )", path.read_text(encoding="utf-8")):
            if skip.search(block) and tool.search(block) and not block.startswith("def needs_"):
                outside.append(f"{path.name}: {block.splitlines()[0]}")
    assert outside == []


def test_every_marker_makes_all_but_each_nth_case_slow(request):
    """`@pytest.mark.every(n)` of tests/conftest.py."""
    (plugin,) = (found for found in request.config.pluginmanager.get_plugins() if hasattr(found, "_thin_out"))

    def item(name, *marks):
        held = {mark.name: mark for mark in marks}
        return SimpleNamespace(nodeid=name, get_closest_marker=held.get, add_marker=added.append)

    added = []
    every = pytest.mark.every(3).mark
    items = [item(f"t.py::test_a[{number}]", every) for number in range(7)]
    others = [item("t.py::test_b"), item("t.py::test_c", every, pytest.mark.slow.mark), item("t.py::test_d[0]", every)]
    plugin._thin_out([*items, *others])
    assert added == [pytest.mark.slow] * 4
