"""The documentation site: its navigation, generated pages and links; `.ci/deep site` builds all of it."""

import importlib.util
import re
import subprocess
import sys
from types import SimpleNamespace

import pytest

pytest.importorskip("decodescope.app.start.cli", exc_type=ImportError)


@pytest.fixture(scope="module")
def site_pages(request):
    path = request.config.rootpath / "packaging" / "site" / "site_pages.py"
    spec = importlib.util.spec_from_file_location("site_pages", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def leaves(navigation) -> list[str]:
    """Return all pages of a navigation, in its order."""
    if isinstance(navigation, str):
        return [navigation]
    parts = navigation.values() if isinstance(navigation, dict) else navigation
    return [leaf for part in parts for leaf in leaves(part)]


def test_navigation_contains_every_page_once(root, site_pages):
    pages = {path.relative_to(root / "docs").as_posix() for path in (root / "docs").rglob("*.md")}
    pages |= {"index.md", "guide/new-page.md", "guide/views/new-view.md", "guide/new/a.md", "guide/zh_CN/new-page.md",
              "new.md", "tutorials/new.md"}  # fmt: skip
    navigation = site_pages.navigation(pages)
    assert sorted(leaves(navigation)) == sorted(pages)
    sections = {title: leaves(part) for section in navigation for title, part in section.items()}
    assert sections["Guide"][0] == "guide/README.md"
    assert {"guide/new-page.md", "guide/views/new-view.md", "guide/new/a.md"} <= set(sections["Guide"])
    assert sections["中文指南"][0] == "guide/zh_CN/README.md"
    assert "guide/zh_CN/new-page.md" in sections["中文指南"]
    assert sections["Tutorials"][:2] == ["tutorials/README.md", "tutorials/first-run.md"]
    assert sections["Tutorials"][-1] == "tutorials/new.md"
    assert sections["More"] == ["new.md"]


def test_every_option_is_on_the_page_of_the_command_line(site_pages):
    page = site_pages.command_line_page()
    missing = [option for option in site_pages.make_parser().options if f"`{option}" not in page]
    assert missing == []
    assert "%(" not in page


def test_files_written_by_notebooks_are_removed(site_pages, tmp_path, monkeypatch):
    monkeypatch.setattr(site_pages, "DOCS", tmp_path)
    monkeypatch.setenv("PYTHONWARNINGS", "")
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "notebooks" / "first.ipynb").write_text("{}")
    site_pages.on_startup()
    (tmp_path / "notebooks" / "first.html").write_text("a result")
    site_pages.on_post_build()
    assert [path.name for path in (tmp_path / "notebooks").iterdir()] == ["first.ipynb"]


def test_every_key_is_on_the_page_of_keys(site_pages):
    page = site_pages.keys_page()
    with_keys = [shortcut for shortcut in site_pages.SHORTCUTS if shortcut.keys]
    assert [shortcut.title for shortcut in with_keys if f"{shortcut.label} |" not in page] == []
    assert len(with_keys) > 50


def test_home_page_names_the_version_and_installation(root, site_pages):
    page = SimpleNamespace(file=SimpleNamespace(src_uri="index.md"), meta={})
    readme = (root / "README.md").read_text(encoding="utf-8")
    text = site_pages.on_page_markdown(readme, page, None, [SimpleNamespace(src_uri="installation.md")])
    version = re.search(r'^version = "(.+)"', (root / "pyproject.toml").read_text(encoding="utf-8"), re.MULTILINE)[1]
    assert text.splitlines()[2] == f"Version {version} · [Install](#install)"
    assert "[Installation](installation.md)" in text


def test_page_with_the_searched_title_precedes_longer_titles(site_pages):
    def boost(name: str, title: str) -> float:
        page = SimpleNamespace(file=SimpleNamespace(src_uri=name), meta={})
        site_pages.on_page_markdown(f"# {title}\n", page, None, [])
        return page.meta["search"]["boost"]

    shown = boost("guide/strategies/sampling.md", "Sampling")
    assert shown > boost("guide/strategies/beam_sampling.md", "Beam sampling") > boost("reference/api.md", "Python API")


def test_chinese_pages_have_chinese_controls(site_pages):
    config = SimpleNamespace(theme={"language": "en"})
    nav = SimpleNamespace(items=[SimpleNamespace(title=title) for title in site_pages.CHINESE_SECTIONS])
    for name, language, first in (("guide/zh_CN/media.md", "zh", "首页"), ("guide/media.md", "en", "Home")):
        page = SimpleNamespace(file=SimpleNamespace(src_uri=name))
        site_pages.on_page_context({}, page, config, nav)
        assert config.theme["language"] == language
        assert nav.items[0].title == first


def test_every_public_name_is_on_the_page_of_the_api(site_pages):
    from decodescope import core

    named = [line.removeprefix("::: ") for line in site_pages.api_page().splitlines() if line.startswith("::: ")]
    assert len(named) == len(core.__all__)
    assert {"decodescope.core.generation.running.stream", "decodescope.core.events"} <= set(named)


def test_page_of_the_api_lists_the_names_of_lazy_packages(site_pages):
    from decodescope import core

    lines = site_pages.api_page().splitlines()
    place = lines.index("::: decodescope.core.catalog")
    assert lines[place + 1 : place + 3] == ["    options:", f"      members: [{', '.join(core.catalog.__all__)}]"]


@pytest.mark.parametrize("language", ["en", "zh_CN"])
def test_every_term_is_on_the_page_of_the_glossary(site_pages, language):
    page = site_pages.glossary_page(language)
    assert page.count("\n## ") == len(site_pages.terms())
    assert (re.search(r"[\u4e00-\u9fff]{8}", page) is not None) == (language == "zh_CN")


def test_links_out_of_the_documents_are_rewritten(site_pages):
    files = [
        SimpleNamespace(src_uri=name) for name in ("project/SECURITY.md", "stages.md", "index.md", "guide/README.md")
    ]

    def rewritten(own: str, text: str) -> str:
        page = SimpleNamespace(file=SimpleNamespace(src_uri=own), meta={})
        return site_pages.on_page_markdown(text, page, None, files)

    assert rewritten("guide/README.md", "[a](../../SECURITY.md#x)") == "[a](../project/SECURITY.md#x)"
    assert (
        rewritten("guide/README.md", "[a](../stages.md) [b](https://x.org)") == "[a](../stages.md) [b](https://x.org)"
    )
    assert rewritten("guide/README.md", "[a](../../tests/conftest.py)") == "a"
    assert rewritten("project/CHANGELOG.md", "[a](docs/stages.md)") == "[a](../stages.md)"
    assert rewritten("index.md", "[a](docs/guide/README.md)") == "[a](guide/README.md)"
    assert rewritten("index.md", "```\n[a](docs/x)\n```") == "```\n[a](docs/x)\n```"


def test_missing_pages_are_generated_or_english(root, site_pages, tmp_path, monkeypatch):
    assert site_pages.pages_without_file() == [], "every page is written and translated now"
    for name, text in {
        "guide/views/new.md": "[a](tree.md) ![b](../pictures/x.png)",
        "guide/zh_CN/README.md": "x",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.setattr(site_pages, "DOCS", tmp_path)
    missing = site_pages.pages_without_file()
    assert {"guide/zh_CN/views/new.md", "guide/caches/sink.md", "guide/zh_CN/caches/sink.md"} <= set(missing)
    assert "guide/zh_CN/README.md" not in missing
    known = [SimpleNamespace(src_uri=name) for name in ("guide/views/tree.md", "guide/pictures/x.png")]
    page = SimpleNamespace(file=SimpleNamespace(src_uri="guide/zh_CN/views/new.md"), meta={})
    text = (tmp_path / "guide" / "views" / "new.md").read_text(encoding="utf-8")
    assert site_pages.on_page_markdown(text, page, None, known) == (
        "[a](../../views/tree.md) ![b](../../pictures/x.png)"
    )


@pytest.mark.slow
def test_built_site_loads_no_external_resource(root, tmp_path):
    pytest.importorskip("material", reason="mkdocs-material is not installed")
    pytest.importorskip("mkdocstrings", reason="mkdocstrings is not installed")
    command = [sys.executable, "-m", "mkdocs", "build", "-q", "--strict", "-d", str(tmp_path)]
    answer = subprocess.run([*command, "-f", "packaging/site/mkdocs.yml"], cwd=root, capture_output=True, text=True)
    assert answer.returncode == 0, answer.stderr
    requested = re.compile(
        r'<(?:script|img|iframe)[^>]+src="https?://|<link[^>]+(?:stylesheet|preconnect)[^>]+https?://'
    )
    pages = list(tmp_path.rglob("*.html"))
    assert len(pages) > 80
    assert [page.name for page in pages if requested.search(page.read_text(encoding="utf-8"))] == []
    styles = [path for path in tmp_path.rglob("*.css") if "url(http" in path.read_text(encoding="utf-8")]
    assert styles == []
    assert (tmp_path / "search" / "search_index.js").stat().st_size > 100_000


def test_every_key_of_toml_files_is_on_their_page_and_the_example_is_read(root, tmp_path):
    from decodescope.app.features.tours.state import tour, tour_file
    from decodescope.app.features.tours.state.measures import MEASURES
    from decodescope.core.glossary import GlossaryTerm

    page = (root / "docs" / "toml-files.md").read_text(encoding="utf-8")
    kinds = (tour.Tour, tour.TourSetting, tour.TourStep)
    names = {name for kind in kinds for name in kind.__dataclass_fields__} | set(GlossaryTerm._fields) | set(MEASURES)
    assert sorted(name for name in names if f"`{name}`" not in page) == []
    in_first_column = set(re.findall(r"^\| `(\w+)` \| \*run\*|^\| `(\w+)` \| \*one\*", page, re.MULTILINE))
    assert {name for pair in in_first_column for name in pair if name} == set(MEASURES)
    example = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)[0]
    (tmp_path / "short.toml").write_text(example, encoding="utf-8")
    assert tour_file.read_tour(tmp_path / "short.toml").name == "short"


def test_films_are_small_animations_that_the_tutorials_show(root):
    """`python -m tests.guide.films --write` records them."""
    from tests.guide import films

    assert {path.stem for path in films.FOLDER.iterdir()} == set(films.FILMS)
    for path in films.FOLDER.iterdir():
        assert films.problem(path) == ""
        for language in ("", "zh_CN/"):
            pages = (root / "docs" / "tutorials" / language).glob("*.md")
            assert sum(f"films/{path.name})" in page.read_text(encoding="utf-8") for page in pages) == 1
