"""The claims and commands of the README are correct."""

import re
import shlex

import pytest


@pytest.fixture
def readme(root) -> str:
    return (root / "README.md").read_text(encoding="utf-8")


def blocks(text: str) -> list[str]:
    return re.findall(r"^```\w*\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def test_two_commands_come_first(readme):
    commands = [line.split("#")[0].strip() for line in blocks(readme)[0].splitlines()]
    assert commands == ["python3 packaging/bootstrap.py run", "python3 packaging/bootstrap.py test"]
    assert readme.index(commands[0]) < 100


def test_linked_files_exist(root, readme):
    links = [link for link in re.findall(r"\]\(([^)]+)\)", readme) if "://" not in link]
    assert "docs/architecture.md" in links
    assert [link for link in links if not (root / link.split("#")[0]).exists()] == []


def test_shown_command_line_is_valid(readme):
    cli = pytest.importorskip("decodescope.app.start.cli", exc_type=ImportError)
    shown = next(block for block in blocks(readme) if block.startswith("decodescope "))
    options = cli.parse(shlex.split(shown.replace("\\\n", " "))[1:])
    assert options.model == "storyteller"
    assert options.params == (("temperature", "0.8"),)
    assert options.size == (1280, 800)
    assert options.screenshot is not None


def test_listed_keys_equal_those_of_the_program(readme):
    shortcuts = pytest.importorskip("decodescope.app.panels.commands", exc_type=ImportError)
    table = readme[readme.index("| key | does |") : readme.index("## From the command line")]
    listed = re.findall(r"^\| (.+?) \|", table, re.MULTILINE)[2:]
    assert len(listed) > 5
    assert set(listed) <= {shortcut.label for shortcut in shortcuts.SHORTCUTS}
