"""Translations keep placeholders, line breaks and backslashes; texts without one are listed and shown in English; all
catalogues compile.
"""

import gettext
import io
import os
import subprocess
import sys
import warnings
from pathlib import Path

import chinese_wording
import pytest
import translated_pages
import translations
from babel.messages.catalog import Catalog

from decodescope.resources import catalogs, language


@pytest.fixture
def english():
    yield
    language.set_language(language.ENGLISH)


def test_catalogues_have_no_faults():
    assert list(translations.faults()) == []


@pytest.mark.filterwarnings("default:not translated:UserWarning")
def test_missing_translations_are_listed_in_the_summary():
    """They do not fail the suite: `packaging/release.py --check` refuses to make a release without them."""
    missing = list(translations.untranslated())
    if missing:
        warnings.warn("not translated into every language, shown in English:\n" + "\n".join(missing), stacklevel=1)


SENTENCES = """
plain = tr("A word")
joined = tr("One sentence "
            "in two parts")
inside = f"{where} {tr('there is no key')}"
language.tr("by attribute")
trn("{n} token", "{n} tokens", count)
trc("verb", "Run")
# Translators: the noun
# of sport
trc("noun", "Run")
tr(variable); tr(f"no {constant}"); tr(); other("no call of ours")
"""


def test_marked_sentences_are_extracted_from_all_places(tmp_path):
    """Inside f-strings too, whose contents Python 3.11 does not split into tokens."""
    (tmp_path / "it.py").write_text(SENTENCES)
    found = list(translations.messages(tmp_path / "it.py"))
    assert [message for message, _, _ in found] == [
        "A word", "One sentence in two parts", "there is no key", "by attribute", ("{n} token", "{n} tokens"), "Run",
        "Run",
    ]  # fmt: skip
    assert [(context, comments) for message, context, comments in found if message == "Run"] == [
        ("verb", []),
        ("noun", ["the noun", "of sport"]),
    ]


def catalogue(**strings: str) -> Catalog:
    made = Catalog(locale="zh_CN", fuzzy=False)
    for message, string in strings.items():
        made.add(message.replace("_", " "), string)
    return made


def faults_of(message: str, kept: Catalog) -> list[str]:
    now = Catalog(fuzzy=False)
    now.add(message, locations=[("app/x.py", None)])
    return list(translations._faults(now.get(message), kept))


def test_lost_placeholders_line_breaks_and_backslashes_are_faults():
    assert faults_of("A word", catalogue(A_word="一个词")) == []
    assert faults_of("A word", catalogue()) == faults_of("A word", catalogue(A_word="")) == []
    stored = Catalog(locale="zh_CN", fuzzy=False)
    stored.add("{n} words", "{count} 个词")
    stored.add("one\ntwo", "一\\n二")
    stored.add("\\n in a file", "文件中的 \\n")
    assert "other placeholders (app/x.py)" in faults_of("{n} words", stored)[0]
    assert [fault.partition(" (")[0] for fault in faults_of("one\ntwo", stored)] == [
        "other line breaks", "other backslashes",
    ]  # fmt: skip
    assert faults_of("\\n in a file", stored) == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("第一句，第二句：好。（真的？）", []),
        ("第一句,第二句", ["half-width punctuation"]),
        ("共 {count} 个: {names}", ["half-width punctuation"]),
        ("真的?", ["half-width punctuation"]),
        ("[词元数, 系数]", []),
        ("按回车(Enter)发送", ["half-width parentheses", "half-width parentheses"]),
        ("取 (1 − α)·p 最大的", []),
        ("图片 (*.png)", []),
        ("文件(&F)", []),
        ("导出……", []),
        ("导出…", ["an ellipsis that is not ……"]),
        ("正在读取...", ["an ellipsis that is not ……"]),
        ("x₁ … xₙ 的概率", []),
        ("打开 “文件”", ["a space between Chinese characters"]),
        ("用GPU运行", ["no space between Chinese and Latin letters", "no space between Chinese and Latin letters"]),
        ("占 4.8 %", ["a space before %"]),
        ("占 4.8%", []),
        ("见[指南](../a.md)和 `a, b`", []),
    ],
)
def test_faults_of_chinese_punctuation_are_named(text, found):
    assert [fault.partition(":")[0] for fault in chinese_wording.wording_faults(text)] == found


@pytest.mark.parametrize("term", sorted(chinese_wording.TERMS))
def test_the_right_word_of_a_chinese_term_is_no_fault(term):
    assert list(chinese_wording.wording_faults(f"这里是{term}。" if term[0] > "z" else f"这里是 {term}。")) == []


@pytest.mark.parametrize(
    ("text", "term"),
    [
        ("一次前向得到三个词元", "前向传播"),
        ("每秒 {speed} 个词元", "词元/秒"),
        ("三个草稿模型，合并", "多个草稿模型：合并"),
        ("保存录制", "运行记录"),
        ("您的模型", "你"),
    ],
)
def test_a_variant_of_a_chinese_term_is_named_with_the_term(text, term):
    assert f"instead of “{term}”" in next(chinese_wording.wording_faults(text))


def test_names_of_code_that_a_translation_lost_are_found():
    assert chinese_wording.lost_names("Use decodescope.lens or --memory 6GB", "请用 core.lens 或 --memory 6GB") == [
        "decodescope.lens"
    ]
    assert chinese_wording.lost_names("{name.title}: max_new_tokens, F5", "{name}：max_new_tokens、F5") == []


def test_wording_of_catalogues_and_pages_is_checked(monkeypatch, tmp_path):
    stored = Catalog(locale="zh_CN", fuzzy=False)
    stored.add("One, two in top_k", "一,二")
    monkeypatch.setattr(translations, "kept", lambda code, part: stored if part == "core" else catalogue())
    monkeypatch.setattr(translations, "prose_of_pages", lambda code: iter([("docs/guide/zh_CN/a.md", "重用前缀")]))
    assert [fault.partition(" (")[0] for fault in translations.wording("zh_CN")] == [
        "zh_CN/core: half-width punctuation: …一,二…",
        "zh_CN/core: lost top_k",
        "docs/guide/zh_CN/a.md: “重用” instead of “复用”: …重用前缀…",
    ]


def test_a_new_text_is_listed_and_is_not_a_fault(monkeypatch):
    new = Catalog(fuzzy=False)
    new.add("A text nobody translated", locations=[("core/new.py", None)])
    new.add(("{n} new thing", "{n} new things"), locations=[("core/new.py", None)])
    empty = {part: Catalog(fuzzy=False) for part in translations.PARTS}
    monkeypatch.setattr(translations, "extracted", lambda: empty | {"core": new})
    monkeypatch.setattr(translations, "kept", lambda code, part: catalogue())
    assert list(translations.faults()) == []
    assert list(translations.untranslated()) == [
        "zh_CN/core: not translated (core/new.py): 'A text nobody translated'",
        "zh_CN/core: not translated (core/new.py): '{n} new thing'",
    ]


def test_check_lists_missing_texts_and_fails_for_a_release_only(monkeypatch, capsys):
    monkeypatch.setattr(translations, "untranslated", lambda: iter(["zh_CN/core: not translated (x): 'A'"]))
    monkeypatch.setattr(translations, "unmarked", list)
    monkeypatch.setattr(translations, "faults", list)
    monkeypatch.setattr(sys, "argv", ["translations.py", "check"])
    assert translations.main() == 0
    assert capsys.readouterr().out.endswith("'A'\n0 faults, 1 not translated\n")
    monkeypatch.setattr(sys, "argv", ["translations.py", "check", "--complete"])
    assert translations.main() == 1


def test_check_reports_texts_that_are_not_marked(monkeypatch, capsys):
    from tests.packaging import test_translation_marks as test_marked

    found = [test_marked.Found(7, "A text that no catalogue contains.")]
    monkeypatch.setattr(test_marked, "FOUND", lambda path: found if path.name == "errors.py" else [])
    monkeypatch.setattr(translations, "faults", list)
    monkeypatch.setattr(translations, "untranslated", list)
    monkeypatch.setattr(sys, "argv", ["translations.py", "check"])
    assert translations.main() == 1
    assert "core/errors.py:7: not marked: 'A text that no catalogue contains.'" in capsys.readouterr().out


def test_conflicting_translations_are_found(monkeypatch):
    parts = {"core": catalogue(Rank="排名", Time="用时"), "views": catalogue(Rank="名次", Time="用时")}
    monkeypatch.setattr(translations, "kept", lambda code, part: parts.get(part, catalogue()))
    found = list(translations.conflicts("zh_CN"))
    assert len(found) == 1
    assert "排名" in found[0]
    assert "名次" in found[0]


def test_update_keeps_translations_and_drops_removed_texts(monkeypatch):
    monkeypatch.setattr(translations, "kept", lambda code, part: catalogue(Kept="留下", Gone="没了"))
    now = Catalog(fuzzy=False)
    now.add("Kept")
    now.add("New")
    after = translations.updated("zh_CN", "core", now)
    assert {message.id: message.string for message in after if message.id} == {"Kept": "留下", "New": None}


def test_an_update_keeps_the_translation_of_a_text_that_moves_to_another_part(monkeypatch):
    parts = {"explain": catalogue(Moved="搬走")}
    monkeypatch.setattr(translations, "kept", lambda code, part: parts.get(part, catalogue()))
    now = Catalog(fuzzy=False)
    now.add("Moved")
    after = translations.updated("zh_CN", "core", now)
    assert {message.id: message.string for message in after if message.id} == {"Moved": "搬走"}


ENGLISH_PAGE = "# Title\n\n*One line.*\n\n![A picture](../pictures/one.png)\n\n## Exactly\n\n`top_k` is 40.\n"
CHINESE_PAGE = "# 标题\n\n*一行。*\n\n![一张图](../../pictures/one.png)\n\n## 精确地说\n\n`top_k` 是 40。\n"


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ("", "", []),
        ("40", "50", ["other numbers"]),
        ("`top_k`", "`top_p`", ["other code"]),
        ("one.png", "two.png", ["other pictures"]),
        ("## 精确地说", "## 例外", ["the heading “例外” is “精确地说” in the program"]),
        ("## 精确地说\n\n", "", ["other headings"]),
    ],
)
def test_differences_of_a_translated_page_are_named(old, new, found):
    own = CHINESE_PAGE.replace(old, new) if old else CHINESE_PAGE
    translate = {"Title": "标题"}.get
    assert list(translated_pages.page_differences(ENGLISH_PAGE, own, lambda text: translate(text, text))) == found


def test_a_page_without_a_translation_is_named(tmp_path):
    for name, text in {
        "guide/a.md": ENGLISH_PAGE,
        "guide/b.md": ENGLISH_PAGE,
        "guide/zh_CN/a.md": CHINESE_PAGE,
    }.items():
        Path(tmp_path, "docs", name).parent.mkdir(parents=True, exist_ok=True)
        Path(tmp_path, "docs", name).write_text(text, encoding="utf-8")
    assert list(translated_pages.outdated_pages("zh_CN", lambda text: text, tmp_path / "docs")) == [
        "docs/guide/zh_CN/b.md: missing; the English page is shown instead"
    ]


def test_untranslated_texts_and_plurals_are_english_at_run_time(monkeypatch):
    stored = catalogue(A_word="")
    stored.add(("{n} word", "{n} words"), ("",))
    stored.add(("{n} day", "{n} days"), ("{n} 天",))
    stored.add("Run", "", context="verb")
    compiled = gettext.GNUTranslations(io.BytesIO(catalogs.as_mo(stored)))
    monkeypatch.setattr(language, "_catalogue", compiled)
    assert (language.tr("A word"), language.trc("verb", "Run")) == ("A word", "Run")
    assert [language.trn("{n} word", "{n} words", n) for n in (1, 5)] == ["{n} word", "{n} words"]
    assert [language.trn("{n} day", "{n} days", n) for n in (1, 5)] == ["{n} 天", "{n} 天"]


def test_compiled_catalogues_are_readable_by_gettext():
    made = gettext.GNUTranslations(io.BytesIO(catalogs.as_mo(catalogue(A_word="一个词"))))
    assert made.gettext("A word") == "一个词"
    assert made.gettext("Another") == "Another"


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A folder of translations as in a bare checkout: Chinese sources, and nothing compiled."""
    (tmp_path / "zh_CN").mkdir()
    (tmp_path / "zh_CN" / "core.po").write_bytes(translations.as_po(catalogue(A_word="一个词")))
    monkeypatch.setattr(catalogs, "FOLDER", tmp_path)
    _forget()
    yield tmp_path
    language.set_language(language.ENGLISH)
    _forget()


def _forget():
    language._translations.cache_clear()


def test_missing_or_outdated_catalogues_are_compiled(checkout):
    source, compiled = checkout / "zh_CN" / "core.po", checkout / "zh_CN" / "core.mo"
    assert catalogs.outdated_catalogs(checkout) == [source]
    assert catalogs.compile_catalogs(checkout) == [compiled]
    assert catalogs.compile_catalogs(checkout) == []
    before = compiled.read_bytes()
    os.utime(compiled, (1, 1))
    assert catalogs.compile_catalogs(checkout) == [compiled]
    assert compiled.read_bytes() == before
    assert sorted(path.name for path in source.parent.iterdir()) == ["core.mo", "core.po"]


def test_checkout_compiles_translations_on_first_use(checkout):
    assert language.missing_notice("zh_CN") == ""
    language.set_language("zh_CN")
    assert language.tr("A word") == "一个词"


def test_without_babel_texts_stay_in_english_with_a_notice(checkout, monkeypatch):
    monkeypatch.setitem(sys.modules, "babel.messages.pofile", None)
    notice = language.missing_notice("zh_CN")
    assert "packaging/bootstrap.py run" in notice
    assert language.missing_notice("en") == ""
    with pytest.warns(UserWarning, match="are not compiled or are damaged"):
        language.set_language("zh_CN")
    assert (language.current_language(), language.tr("A word")) == ("en", "A word")


def test_outdated_translation_is_used_without_babel(checkout, monkeypatch):
    (compiled,) = catalogs.compile_catalogs(checkout)
    os.utime(compiled, (1, 1))
    monkeypatch.setitem(sys.modules, "babel.messages.pofile", None)
    language.set_language("zh_CN")
    assert language.tr("A word") == "一个词"


@pytest.fixture(params=["empty", "another file", "cut off", "bad offsets"])
def damaged(request, checkout):
    (compiled,) = catalogs.compile_catalogs(checkout)
    whole = compiled.read_bytes()
    damage = {
        "empty": b"", "another file": b"%PDF-1.7 of somewhere else", "cut off": whole[: len(whole) // 2],
        "bad offsets": whole[:12] + b"\xff" * 8 + whole[20:],
    }  # fmt: skip
    compiled.write_bytes(damage[request.param])
    return checkout


def test_damaged_compiled_translations_are_compiled_again(damaged):
    language.set_language("zh_CN")
    assert language.tr("A word") == "一个词"


def test_damaged_translations_without_babel_are_reported(damaged, monkeypatch):
    monkeypatch.setitem(sys.modules, "babel.messages.pofile", None)
    with pytest.warns(UserWarning, match="are damaged"):
        language.set_language("zh_CN")
    assert (language.current_language(), language.tr("A word")) == ("en", "A word")


def test_compiled_translations_are_not_in_the_repository(root):
    listed = subprocess.run(["git", "ls-files", "*.mo"], cwd=root, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("not a git checkout")
    assert listed.stdout == ""


def test_bootstrap_compiles_translations(root, tmp_path):
    """The command that bootstrap.py runs works in a fresh process, also beside another package called resources."""
    import bootstrap

    (tmp_path / "resources.py").write_text("raise ImportError")
    environment = type("Ready", (), {"python": sys.executable})
    stale = root / "resources" / "translations" / "zh_CN" / "core.mo"
    os.utime(stale, (1, 1))
    bootstrap.compile_catalogs(environment)
    assert catalogs.outdated_catalogs(stale.parent) == []


def test_longest_path_prefix_selects_the_catalogue():
    assert translations.part_of("core/explain/tokens.py") == "explain"
    assert translations.part_of("core/errors.py") == "core"
    assert translations.part_of("app/views/base.py") == "views"


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("zh_CN.UTF-8", "zh_CN"),
        ("zh-Hans-SG", "zh_CN"),
        ("zh", "zh_CN"),
        ("zh_TW", "en"),
        ("zh-Hant-HK", "en"),
        ("de_AT", "en"),
        ("C", "en"),
        ("", "en"),
    ],
)
def test_closest_available_language_is_selected(name, code):
    assert language.closest_language(name) == code


def test_english_texts_are_those_of_the_code(english):
    assert language.tr("No such sentence") == "No such sentence"
    assert language.trn("{n} token", "{n} tokens", 1) == "{n} token"
    assert language.trn("{n} token", "{n} tokens", 0) == "{n} tokens"
    language.set_language("zh_CN")
    assert language.current_language() == "zh_CN"
    assert language.tr("No such sentence") == "No such sentence"
    with pytest.raises(KeyError):
        language.set_language("xx")
