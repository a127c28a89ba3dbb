"""Every sentence that is marked is translated and keeps its placeholders; what is wrong is found; all of it
compiles.
"""

import gettext
import io
import os
import subprocess
import sys

import pytest
import translations
from babel.messages.catalog import Catalog

from resources import catalogs, language


@pytest.fixture
def english():
    yield
    language.set_language(language.ENGLISH)


def test_every_sentence_is_translated():
    assert list(translations.faults()) == []


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


def test_sentences_are_found_wherever_they_stand(tmp_path):
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


def test_what_is_missing_or_has_lost_a_placeholder_is_found():
    assert faults_of("A word", catalogue(A_word="一个词")) == []
    assert "not translated" in faults_of("A word", catalogue())[0]
    assert "not translated" in faults_of("A word", catalogue(A_word=""))[0]
    stored = Catalog(locale="zh_CN", fuzzy=False)
    stored.add("{n} words", "{count} 个词")
    assert "placeholders" in faults_of("{n} words", stored)[0]


def test_a_sentence_that_two_parts_translate_otherwise_is_found(monkeypatch):
    parts = {"core": catalogue(Rank="排名", Time="用时"), "views": catalogue(Rank="名次", Time="用时")}
    monkeypatch.setattr(translations, "kept", lambda code, part: parts.get(part, catalogue()))
    found = list(translations.conflicts("zh_CN"))
    assert len(found) == 1
    assert "排名" in found[0]
    assert "名次" in found[0]


def test_an_update_keeps_what_is_translated_and_drops_what_is_gone(monkeypatch):
    monkeypatch.setattr(translations, "kept", lambda code, part: catalogue(Kept="留下", Gone="没了"))
    now = Catalog(fuzzy=False)
    now.add("Kept")
    now.add("New")
    after = translations.updated("zh_CN", "core", now)
    assert {message.id: message.string for message in after if message.id} == {"Kept": "留下", "New": None}


def test_compiled_catalogues_are_what_gettext_reads():
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


def test_what_is_missing_or_older_is_compiled(checkout):
    source, compiled = checkout / "zh_CN" / "core.po", checkout / "zh_CN" / "core.mo"
    assert catalogs.outdated_catalogs(checkout) == [source]
    assert catalogs.compile_catalogs(checkout) == [compiled]
    assert catalogs.compile_catalogs(checkout) == []
    before = compiled.read_bytes()
    os.utime(compiled, (1, 1))
    assert catalogs.compile_catalogs(checkout) == [compiled]
    assert compiled.read_bytes() == before
    assert sorted(path.name for path in source.parent.iterdir()) == ["core.mo", "core.po"]


def test_a_checkout_without_compiled_translations_compiles_them_when_they_are_used(checkout):
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


def test_an_outdated_translation_is_used_where_nothing_can_be_compiled(checkout, monkeypatch):
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


def test_the_longest_path_says_which_catalogue_a_file_is_in():
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
def test_a_system_s_language_is_the_nearest_there_is(name, code):
    assert language.closest_language(name) == code


def test_english_is_what_stands_in_the_code(english):
    assert language.tr("No such sentence") == "No such sentence"
    assert language.trn("{n} token", "{n} tokens", 1) == "{n} token"
    assert language.trn("{n} token", "{n} tokens", 0) == "{n} tokens"
    language.set_language("zh_CN")
    assert language.current_language() == "zh_CN"
    assert language.tr("No such sentence") == "No such sentence"
    with pytest.raises(KeyError):
        language.set_language("xx")
