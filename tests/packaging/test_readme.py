"""The claims and commands of the README are correct."""

import re
import shlex

import pytest


@pytest.fixture
def readme(root) -> str:
    return (root / "README.md").read_text(encoding="utf-8")


def blocks(text: str) -> list[str]:
    return re.findall(r"^```\w*\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def test_readme_begins_with_two_sentences_and_a_picture(readme):
    heading, introduction, picture, install, *_ = readme.split("\n\n")
    assert heading == "# Decodescope"
    assert introduction.count(".") == 2
    assert picture.startswith("![")
    assert install == "## Install"


def test_first_commands_run_and_test_the_program(readme):
    commands = [line.split("#")[0].strip() for line in blocks(readme)[0].splitlines()]
    assert commands == ["python3 packaging/bootstrap.py run", "python3 packaging/bootstrap.py test"]


def test_five_pictures_show_what_the_program_shows(readme):
    shown = readme[readme.index("## What it shows") : readme.index("## From Python")]
    assert len(re.findall(r"^!\[", shown, re.MULTILINE)) == 5


def test_linked_files_exist(root, readme):
    links = [link for link in re.findall(r"\]\(([^)]+)\)", readme) if "://" not in link]
    assert "docs/architecture.md" in links
    assert [link for link in links if not (root / link.split("#")[0]).exists()] == []


@pytest.mark.parametrize("page", ["docs/guide/command-line.md", "docs/guide/zh_CN/command-line.md"])
def test_shown_command_line_is_valid(root, page):
    cli = pytest.importorskip("decodescope.app.start.cli", exc_type=ImportError)
    text = (root / page).read_text(encoding="utf-8")
    shown = next(block for block in blocks(text) if block.startswith("decodescope "))
    options = cli.parse(shlex.split(shown.replace("\\\n", " "))[1:])
    assert options.model == "storyteller"
    assert options.params == (("temperature", "0.8"),)
    assert options.size == (1280, 800)
    assert options.screenshot is not None
