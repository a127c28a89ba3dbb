"""Words that users type into the command palette: the intended command is among the first three rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from decodescope.app.features.palette.controller.entry import PaletteEntry
from decodescope.app.features.palette.controller.search import rank_entries, table
from decodescope.app.window.main_window import MainWindow
from decodescope.resources import language
from tests.ui.windows import open_window, whole

ENGLISH = """
export: action.save_picture; bigger: action.enlarge_text; font: action.enlarge_text; download: action.get_model
image: action.save_picture; creative: setting.temperature; number type: action.open_settings
help: action.open_help; undo: action.previous_run; redo: action.next_run; csv: action.save_picture
save: action.save_run; open: action.open_run; stop: action.escape; dark: theme.dark; light: theme.light
language: action.speak_english; theme: theme.dark; color: theme.dark; night mode: theme.dark
zoom: action.enlarge_text; smaller: action.reduce_text; preferences: action.open_settings
options: action.open_settings; config: action.open_settings; gpu: action.open_settings
threads: action.open_settings; quit: action.quit; exit: action.quit; close: action.quit; new: action.new_text
clear: action.new_text; print: action.save_picture; screenshot: action.save_picture; png: action.save_picture
svg: action.save_picture; pdf: action.save_picture; json: setting.grammar; regex: setting.grammar
copy: action.copy; paste: action.paste; cut: action.cut; select all: action.select_all; code: action.copy_code
python: action.copy_code; script: action.copy_code; search: action.find_run; find: action.find_run
history: action.toggle_history; fullscreen: action.full_screen; full screen: action.full_screen
presentation: action.present; slideshow: action.present; sidebar: action.toggle_setup
inspector: action.toggle_inspector; timeline: action.toggle_timeline; generate: action.run; start: action.run
run: action.run; cancel: action.escape; abort: action.escape; again: action.run_again; retry: action.run_again
regenerate: action.run_again; seed: setting.seed; random: setting.temperature; model: action.choose_model
strategy: action.choose_strategy; cache: action.choose_cache; hugging face: action.get_model
server: action.connect_engine; ollama: action.find_engines; api: action.connect_engine
compare: action.compare; diff: action.compare; quiz: action.guess_first; game: action.guess_first
train: action.open_preference_lab; rlhf: action.open_preference_lab; faster: action.open_speed
benchmark: action.open_speed; multi gpu: action.open_scale; video: action.record_demo; gif: action.record_demo
tutorial: action.choose_tour; learn: action.choose_tour; manual: action.open_help
documentation: action.open_help; shortcuts: action.open_shortcuts; keyboard: action.open_shortcuts
hotkeys: action.open_shortcuts; glossary: action.open_glossary; dictionary: action.open_glossary
bug: action.copy_diagnostics; version: action.about; license: action.about; length: setting.max_new_tokens
max tokens: setting.max_new_tokens; longer: setting.max_new_tokens; repeat: setting.repetition_penalty
temperature: setting.temperature; topk: setting.top_k; top p: setting.top_p; nucleus: setting.top_p
ban: setting.bad_words_ids; perplexity: action.score_text; beam: strategy.beam_search
speculative: strategy.assisted; memory: view.memory; chat: view.chat; quantize: cache.quantized
draft model: strategy.assisted; fork: action.branch; spreadsheet: action.save_picture
share: action.save_picture; back: action.previous_run; import: action.open_run; preset: action.save_preset
chinese: action.speak_chinese; welcome: action.show_welcome; tempeature: setting.temperature
setings: action.open_settings; stop sequence: setting.stop_strings
feedback: action.copy_diagnostics; crash: action.copy_diagnostics; update: action.about; bookmark: action.save_preset
layout: action.split_views; lora: action.open_preference_lab; heatmap: view.tokens; randomize: setting.temperature
chatbot: view.chat; stopwords: setting.stop_strings
"""
CHINESE = """
导出: action.save_picture; 放大: action.enlarge_text; 字体: action.enlarge_text; 字号: action.enlarge_text
下载: action.get_model; 图片: action.save_picture; 创意: setting.temperature; 数值类型: action.open_settings
帮助: action.open_help; 撤销: action.previous_run; 重做: action.next_run; 表格: action.save_picture
保存: action.save_run; 打开: action.open_run; 停止: action.escape; 深色: theme.dark; 浅色: theme.light
夜间模式: theme.dark; 语言: action.speak_chinese; 英文: action.speak_english; 中文: action.speak_chinese
主题: theme.dark; 设置: action.open_settings; 偏好: action.open_settings; 显卡: action.open_settings
线程: action.open_settings; 退出: action.quit; 新对话: action.new_text; 清空: action.new_text
截图: action.save_picture; 复制: action.copy; 粘贴: action.paste; 剪切: action.cut; 全选: action.select_all
代码: action.copy_code; 搜索: action.find_run; 查找: action.find_run; 历史: action.toggle_history
全屏: action.full_screen; 演示: action.present; 运行: action.run; 生成: action.run; 取消: action.escape
重试: action.run_again; 种子: setting.seed; 随机: setting.temperature; 模型: action.choose_model
策略: action.choose_strategy; 缓存: action.choose_cache; 服务器: action.connect_engine; 对比: action.compare
游戏: action.guess_first; 训练: action.open_preference_lab; 加速: action.open_speed; 视频: action.record_demo
教程: action.choose_tour; 手册: action.open_help; 快捷键: action.open_shortcuts; 术语: action.open_glossary
版本: action.about; 长度: setting.max_new_tokens; 重复: setting.repetition_penalty; 温度: setting.temperature
停止词: setting.stop_strings; 禁词: setting.bad_words_ids; 困惑度: action.score_text; 量化: cache.quantized
束搜索: strategy.beam_search; 反馈: action.copy_diagnostics; 崩溃: action.copy_diagnostics; 更新: action.about
书签: action.save_preset; 布局: action.split_views; 热力图: view.tokens; 聊天机器人: view.chat
"""
ALSO = {
    "加速": {"action.open_speed", "strategy.assisted", "strategy.prompt_lookup"},
    "save": {"action.save_run", "action.save_preset", "action.save_picture"},
    "language": {"action.speak_as_system", "action.speak_chinese"},
    "语言": {"action.speak_as_system", "action.speak_english"},
    "copy": {"action.copy_text"},
    "复制": {"action.copy_text"},
    "random": {"setting.temperature", "setting.seed", "strategy.sampling"},
    "随机": {"setting.temperature", "setting.seed", "strategy.sampling"},
    "close": {"action.quit", "action.escape"},
    "repeat": {"setting.repetition_penalty", "action.run_again"},
    "重复": {"setting.repetition_penalty", "action.run_again", "setting.no_repeat_ngram_size"},
    "json": {"setting.grammar", "action.open_preset", "action.save_picture"},
    "faster": {"action.open_speed", "strategy.assisted", "strategy.early_exit"},
}
"""Words that mean several things, any of which will do."""
SYNONYM_KINDS = ("action", "theme", "size", "view", "setting", "strategy", "cache")


def pairs(listed: str) -> list[tuple[str, str]]:
    parts = (part.strip() for line in listed.splitlines() for part in line.split(";"))
    return [(word, key.strip()) for word, _colon, key in (part.partition(":") for part in parts if part)]


@pytest.fixture(scope="module")
def entries(qapp: QApplication, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[PaletteEntry]]:
    from decodescope.app import build_window
    from tests.ui.fake_engine import ScriptedEngine

    window = build_window(tmp_path_factory.mktemp("palette"), ScriptedEngine())
    yield window.parts.palette.gather()
    window.close()
    window.deleteLater()


def first_three(entries: list[PaletteEntry], word: str) -> list[str]:
    return [item.entry.key for item in rank_entries(entries, word, ())[:3]]


def misses(entries: list[PaletteEntry], listed: str) -> list[str]:
    return [
        f"{word}: {', '.join(first)} instead of {key}"
        for word, key in pairs(listed)
        if not {key, *ALSO.get(word, set())} & set(first := first_three(entries, word))
    ]


def test_word_lists_are_long_enough() -> None:
    assert len(pairs(ENGLISH)) >= 100
    assert len(pairs(CHINESE)) >= 50


@pytest.mark.slow
def test_english_words_find_intended_entry(entries: list[PaletteEntry]) -> None:
    assert misses(entries, ENGLISH) == []


def test_chinese_words_find_intended_entry_in_english_interface(entries: list[PaletteEntry]) -> None:
    assert misses(entries, CHINESE) == []


@pytest.mark.slow
def test_words_find_intended_entry_in_chinese_interface(qtbot: QtBot, config_dir: Path) -> None:
    window: MainWindow = open_window(qtbot, config_dir)
    window.parts.services.language_switch.choose("zh_CN")
    qtbot.waitUntil(lambda: language.current_language() == "zh_CN")
    entries = whole(window).parts.palette.gather()
    missed = misses(entries, ENGLISH), misses(entries, CHINESE)
    window.parts.services.language_switch.choose("en")
    qtbot.waitUntil(lambda: language.current_language() == "en")
    assert missed == ([], [])


def test_every_entry_has_synonyms_in_both_languages(entries: list[PaletteEntry]) -> None:
    """Models, examples, presets, runs, tours, terms and buttons have names of their own in both languages."""
    left_out = {"action.open_palette", "action.open_menu"}
    wanted = {entry.key for entry in entries if entry.key.partition(".")[0] in SYNONYM_KINDS} - left_out
    words = table()
    assert {key for key in wanted if not (words.get(key, {}).get("en") and words.get(key, {}).get("zh_CN"))} == set()


def test_every_synonym_has_existing_entry(entries: list[PaletteEntry]) -> None:
    assert set(table()) - {entry.key for entry in entries} == set()


def test_scattered_letters_match_no_entry(entries: list[PaletteEntry]) -> None:
    """`csv` found "Contrastive search" once."""
    titles = [item.entry.title for item in rank_entries(entries, "csv", ())]
    assert titles
    assert not any(title.lower().startswith("contrastive") for title in titles)
    assert rank_entries(entries, "qzx", ()) == []
