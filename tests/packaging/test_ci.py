"""The scripts of `.ci/run`."""

import os
import shutil
import subprocess
import sys

import pytest

BASH = shutil.which("bash")
pytestmark = pytest.mark.skipif(BASH is None or sys.platform == "win32", reason="bash is not installed")
SCRIPTS = ("run", "debian13", "hide_tools")


@pytest.mark.parametrize("name", SCRIPTS)
def test_script_is_executable_and_has_no_syntax_error(root, name):
    script = root / ".ci" / name
    assert os.access(script, os.X_OK)
    assert subprocess.run([BASH, "-O", "extglob", "-n", str(script)]).returncode == 0


def test_the_hosted_workflow_runs_the_same_checks(root):
    workflow = (root / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
    assert "run: .ci/run\n" in workflow
    assert "container: debian:" in workflow


def test_simulated_bare_machine_lacks_the_tools_and_nothing_else(root, tmp_path):
    """Of the programs in two folders only those are hidden that tests may need; the first of one name is taken."""
    first, second = tmp_path / "first", tmp_path / "second"
    for folder, names in (
        (first, ("python3", "g++", "ffmpeg")),
        (second, ("python3", "gccgo", "git", "Xvfb", "chromium")),
    ):
        folder.mkdir()
        for name in names:
            (folder / name).write_text("#!/bin/sh\n")
            (folder / name).chmod(0o755)
    (second / "notes").write_text("not executable")
    path = os.pathsep.join((str(first), str(second), os.environ["PATH"]))
    made = tmp_path / "made"
    subprocess.run([BASH, str(root / ".ci" / "hide_tools"), str(made)], check=True, env={**os.environ, "PATH": path})
    hidden = ("g++", "ffmpeg", "Xvfb", "chromium", "gccgo", "espeak-ng", "cc", "clang", "dbus-run-session", "notes")
    assert [name for name in hidden if (made / "bin" / name).exists()] == []
    assert (made / "bin" / "python3").resolve() == first / "python3"
    assert (made / "bin" / "git").resolve() == second / "git"
    assert "<dir>/usr/share/fonts/truetype/dejavu</dir>" in (made / "fonts.conf").read_text()


def test_debian_13_is_left_out_with_a_reason_where_it_cannot_be_built(root, tmp_path):
    """Here because the folder of the root is on a system without the room that is needed."""
    (tmp_path / "df").write_text("#!/bin/sh\necho x\necho x 1 1 1000 1 /\n")
    (tmp_path / "id").write_text("#!/bin/sh\necho 0\n")
    (tmp_path / "unshare").write_text(
        '#!/bin/sh\nwhile [ "${1#--}" != "$1" ] || [ "$1" = private ]; do shift; done\nexec "$@"\n'
    )
    for name in ("df", "id", "unshare"):
        (tmp_path / name).chmod(0o755)
    variables = {
        **os.environ,
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "DECODESCOPE_CI_CACHE": str(tmp_path / "cache"),
    }
    command = [BASH, str(root / ".ci" / "debian13")]
    answer = subprocess.run(command, env=variables, capture_output=True, text=True)
    assert (answer.returncode, answer.stderr) == (0, "")
    assert answer.stdout.startswith("Debian 13: skipped:")
    assert "GB are needed" in answer.stdout or "not Linux" in answer.stdout
