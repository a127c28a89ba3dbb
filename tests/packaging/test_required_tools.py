"""Where every tool is required, a skipped test is a failure."""

import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from tests.required_tools import NEEDS_CARD, SWITCH

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
def test_missing_tool_fails_only_where_it_is_required(root, tmp_path, how):
    reason = "there is no Chromium"
    strict, usual = (run(root, tmp_path, SKIPS[how], reason, required) for required in (True, False))
    assert strict.returncode != 0
    assert "1 skipped" not in strict.stdout
    assert reason in strict.stdout
    assert usual.returncode in (0, 5)
    assert "1 skipped" in usual.stdout


def test_missing_card_is_always_accepted(root, tmp_path):
    assert "1 skipped" in run(root, tmp_path, SKIPPED_MARK, f"{NEEDS_CARD}: CUDA", True).stdout


def test_expected_failure_is_no_skip(root, tmp_path):
    answer = run(root, tmp_path, EXPECTED_FAILURE, "not yet", True)
    assert answer.returncode == 0
    assert "1 xfailed" in answer.stdout


def test_of_cases_marked_every_all_but_each_nth_are_slow(request):
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
