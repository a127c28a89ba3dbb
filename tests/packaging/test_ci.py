"""The scripts of `.ci/`: the gate, the jobs that take longer, and what they share."""

import os
import re
import shutil
import subprocess
import sys

import pytest

BASH = shutil.which("bash")
pytestmark = pytest.mark.skipif(BASH is None or sys.platform == "win32", reason="bash is not installed")
SCRIPTS = ("run", "deep", "check", "debian13", "hide_tools")
NOT_RUN = 3


@pytest.fixture
def small_system(tmp_path):
    """Variables of a system whose disk has no room for a root folder of Debian."""
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "df").write_text("#!/bin/sh\necho x\necho x 1 1 1000 1 /\n")
    (tools / "id").write_text("#!/bin/sh\necho 0\n")
    (tools / "unshare").write_text(
        '#!/bin/sh\nwhile [ "${1#--}" != "$1" ] || [ "$1" = private ]; do shift; done\nexec "$@"\n'
    )
    for tool in tools.iterdir():
        tool.chmod(0o755)
    return {
        **os.environ,
        "PATH": f"{tools}:{os.environ['PATH']}",
        "DECODESCOPE_CI_CACHE": str(tmp_path / "cache"),
    }


def listed_jobs(root):
    """Return the job names that `.ci/deep --list` prints, each with what it shows."""
    command = [BASH, str(root / ".ci" / "deep"), "--list"]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    return dict(re.fullmatch(r"(\w+) +\d+ min  (.+)", line).groups() for line in lines)


@pytest.mark.parametrize("name", SCRIPTS)
def test_script_is_executable_and_has_no_syntax_error(root, name):
    script = root / ".ci" / name
    assert os.access(script, os.X_OK)
    assert subprocess.run([BASH, "-O", "extglob", "-n", str(script)]).returncode == 0


def test_hosted_workflow_runs_the_gate_and_each_deep_job(root):
    yaml = pytest.importorskip("yaml")
    workflow = yaml.safe_load((root / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8"))["jobs"]
    commands = {name: job["steps"][-1]["run"] for name, job in workflow.items()}
    assert commands["gate"] == ".ci/run"
    assert workflow["gate"]["container"].startswith("debian:")
    assert commands["deep"] == ".ci/deep ${{ matrix.job }}"
    alone = [command.rpartition(" ")[2] for command in commands.values() if ".ci/deep " in command]
    assert sorted(workflow["deep"]["strategy"]["matrix"]["job"] + alone[1:]) == sorted(listed_jobs(root))


def test_each_deep_job_has_a_function_a_time_and_a_row_in_the_documents(root):
    script = (root / ".ci" / "deep").read_text(encoding="utf-8")
    documented = re.findall(r"^\| `\.ci/deep (\w+)` \|", (root / "CONTRIBUTING.md").read_text(encoding="utf-8"), re.M)
    assert documented == list(listed_jobs(root))
    assert sorted(re.findall(r"^job_(\w+)\(\)", script, re.M)) == sorted(documented)


def test_gate_runs_static_checks_before_tests_and_the_suite_once(root):
    script = (root / ".ci" / "run").read_text(encoding="utf-8")
    commands = re.findall(r'^(?:required_)?step ".+" (.+)$', script, re.M)
    checks = [command for command in commands if command.startswith(".ci/check")]
    assert checks == [f".ci/check {name}" for name in ("ruff", "format", "contracts", "catalogues", "types")]
    assert all(f'required_step "{name}"' in script for name in ("ruff", "format", "import contracts", "types"))
    assert commands.index("whole_suite") > commands.index(checks[-1])
    assert script.count("bootstrap.py test --durations=40") == 1


@pytest.mark.parametrize(
    ("broken", "outcomes", "code"),
    [
        ("", "passed passed passed", 0),
        ("format", "passed failed not run", 1),
        ("suite", "passed passed failed", 1),
    ],
)
def test_gate_ends_at_a_static_failure_and_closes_with_the_table_and_the_suite(root, tmp_path, broken, outcomes, code):
    """The script as it is, with three steps in place of its own."""
    script = (root / ".ci" / "run").read_text(encoding="utf-8")
    begin, end = script.index('step "system packages"'), script.index("printf '\\n'\n[ ! -e")
    suite = (
        "printf '== slowest 2 durations ==\\n2.0s call a\\n== short ==\\n'; echo '== 7 passed in 2.00s =='; echo noise"
    )
    steps = [
        'required_step "ruff" true',
        f'required_step "format" {"false" if broken == "format" else "true"}',
        'step "suite" whole_suite',
    ]
    (tmp_path / ".ci").mkdir()
    (tmp_path / ".ci" / "run").write_text(script[:begin] + "\n".join(steps) + "\n\n" + script[end:])
    shutil.copy(root / ".ci" / "common", tmp_path / ".ci")
    (tmp_path / "packaging").mkdir()
    failure = "sys.exit(1)" if broken == "suite" else ""
    (tmp_path / "packaging" / "bootstrap.py").write_text(
        f"import subprocess, sys\nsubprocess.run({suite!r}, shell=True)\n{failure}\n"
    )
    answer = subprocess.run([BASH, str(tmp_path / ".ci" / "run")], capture_output=True, text=True)
    assert answer.returncode == code, answer.stderr
    table = answer.stdout[answer.stdout.index("step   ") :]
    assert re.sub(r" +", " ", " ".join(re.findall(r"^\w+ +\d+  (\w[\w ]*)$", table, re.M))) == outcomes
    assert ("ended by: format" in table) == (broken == "format")
    if broken != "format":
        assert answer.stdout.splitlines()[-1] == "== 7 passed in 2.00s =="
        assert answer.stdout.count("slowest 2 durations") == 1
        assert answer.stdout.index("slowest 2 durations") > answer.stdout.index("== short ==")


def test_simulated_bare_machine_hides_only_the_test_tools(root, tmp_path):
    """Only programs that tests may need are hidden, and of two programs of one name the first is used."""
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


def test_debian_13_is_skipped_with_a_reason(root, small_system):
    """Here because the disk of the root folder has too little free space."""
    command = [BASH, str(root / ".ci" / "debian13")]
    answer = subprocess.run(command, env=small_system, capture_output=True, text=True)
    assert (answer.returncode, answer.stderr) == (NOT_RUN, "")
    assert answer.stdout.startswith("Debian 13: not run:")
    assert "GB are needed" in answer.stdout or "not Linux" in answer.stdout


def test_deep_job_that_cannot_run_has_its_own_exit_code_and_outcome(root, small_system):
    command = [BASH, str(root / ".ci" / "deep"), "--no-set-up", "debian13", "installers"]
    answer = subprocess.run(command, env=small_system, capture_output=True, text=True)
    assert answer.returncode == NOT_RUN, answer.stderr
    rows = [line for line in answer.stdout.splitlines() if re.match(r"(debian13|installers) ", line)]
    assert [re.split(r"  +", row)[2] for row in rows] == ["not run", "not run"]


@pytest.mark.parametrize(
    ("codes", "expected"), [((0, 0), 0), ((0, 3), 3), ((3, 0), 3), ((3, 1), 1), ((1, 3), 1), ((5, 0), 1)]
)
def test_deep_run_fails_if_a_job_failed_and_is_not_run_if_one_was_not(root, tmp_path, codes, expected):
    """The script as it is, with two of its jobs replaced."""
    script = (root / ".ci" / "deep").read_text(encoding="utf-8")
    for name, code in zip(("bare", "slow"), codes, strict=True):
        script, count = re.subn(rf"(?ms)^job_{name}\(\) \{{.*?^\}}", f"job_{name}() {{ return {code}; }}", script)
        assert count == 1
    (tmp_path / ".ci").mkdir()
    (tmp_path / ".ci" / "deep").write_text(script)
    shutil.copy(root / ".ci" / "common", tmp_path / ".ci")
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    shutil.copy(BASH, tmp_path / ".venv" / "bin" / "python")
    command = [BASH, str(tmp_path / ".ci" / "deep"), "--no-set-up", "bare", "slow"]
    answer = subprocess.run(command, capture_output=True, text=True)
    assert answer.returncode == expected, answer.stdout + answer.stderr


def test_unknown_deep_job_is_refused(root):
    answer = subprocess.run([BASH, str(root / ".ci" / "deep"), "nonsense"], capture_output=True, text=True)
    assert answer.returncode == 2
    assert "nonsense" in answer.stderr
