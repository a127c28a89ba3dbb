"""Chinese texts of the core: errors with their values, reasons, notices, and stage labels."""

from __future__ import annotations

import gettext
import io
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from babel.messages.catalog import Catalog
from babel.messages.mofile import write_mo

from decodescope import core
from decodescope.core import errors
from decodescope.core.caches import CacheBackend
from decodescope.core.caches import registry as caches
from decodescope.core.caches.measurement import RunShape
from decodescope.core.events import Notice, Stage, TokenChosen
from decodescope.core.strategies import Strategy
from decodescope.core.strategies import registry as strategies
from decodescope.resources import language
from decodescope.resources.language import ENGLISH, current_language, set_language, tr, trn
from tests.core import tiny

CHINESE = re.compile(r"[\u4e00-\u9fff]")


@pytest.fixture(autouse=True)
def _chinese() -> Iterator[None]:
    before = current_language()
    set_language("zh_CN")
    yield
    set_language(before)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    tiny.make("llama").model.save_pretrained(tmp_path / "model")
    return tmp_path / "model"


def run(kind: str = "gpt2", **request: object) -> object:
    return core.run(tiny.make(kind), core.Request(**{"prompt": [5, 6, 7], **request}))  # type: ignore[arg-type]


def set_up(**config: object) -> Callable[[], object]:
    """A run with these settings."""
    return lambda: run(config={"max_new_tokens": 2, **config})


FAULTS: dict[str, tuple[Callable[[], object], tuple[str, ...]]] = {
    "folder": (lambda: core.load("/no/such/folder"), ("/no/such/folder", "storyteller")),
    "model": (lambda: core.load("never-heard-of"), ("never-heard-of", "storyteller")),
    "device": (lambda: core.load("storyteller", device="toaster"), ("toaster", "auto", "mps")),
    "dtype": (lambda: core.load("storyteller", dtype="float3"), ("float3", "float32")),
    "strategy": (lambda: run(strategy="psychic"), ("psychic", "greedy", "dola")),
    "strategy's type": (lambda: run(strategy=7), ("7",)),
    "cache": (lambda: run(cache="attic"), ("attic", "dynamic")),
    "cache's type": (lambda: run(cache=None), ("None",)),
    "option": (lambda: run(strategy="greedy", options={"mood": 1}), ("贪心", "mood")),
    "cache's option": (lambda: run(cache="sink", cache_options={"depth": 3}), ("汇点", "depth", "window_length")),
    "options": (lambda: run(options=[1]), ("options", "[1]")),
    "config": (lambda: run(config=3), ("config", "3")),
    "temperature": (set_up(do_sample=True, temperature=-1.0), ("温度", "temperature", "-1.0", "0", "100")),
    "top_k": (set_up(do_sample=True, top_k="many"), ("top_k", "many", "整数")),
    "top_n": (lambda: run(top_n=-3), ("备选", "top_n", "-3")),
    "switch": (set_up(do_sample="perhaps"), ("do_sample", "perhaps", "True", "False")),
    "choice": (lambda: run(strategy="dola", config={"dola_layers": "middle"}), ("dola_layers", "middle", "low")),
    "tokens": (set_up(suppress_tokens="abc"), ("suppress_tokens", "abc", "词元编号")),
    "vocabulary": (set_up(suppress_tokens=[5, 61]), ("suppress_tokens", "61", "60")),
    "prompt's id": (lambda: run(prompt=[5, 99]), ("99", "60")),
    "prompt's type": (lambda: run(prompt=3), ("3",)),
    "tokenizer": (lambda: run(prompt="Once"), ("Python",)),
    "too long": (lambda: run(prompt=[5] * 300), ("300", "256", "44", "45")),
    "drafts": (lambda: run(strategy="assisted"), ("辅助解码", "草稿")),
    "draft models": (lambda: run(drafters=["storyteller"]), ("storyteller", "decodescope.load")),
    "beams": (set_up(num_beams=2, num_return_sequences=3), ("2", "3")),
    "groups": (lambda: run(strategy="diverse_beam_search", config={"num_beams": 4, "num_beam_groups": 3}), ("4", "3")),
    "encoder": (lambda: run(cache="encoder_decoder"), ("编码器–解码器", "gpt2")),
    "window": (lambda: run("llama", cache="sink", cache_options={"window_length": 3}), ("3", "4", "6")),
    "record": (lambda: core.trace.read("/no/such.decodescope"), ("/no/such.decodescope",)),
    "scored": (lambda: core.score(tiny.make("gpt2"), [5] * 300), ("300", "257", "43")),
    "code": (lambda: core.as_code(core.Request("Once"), "haiku"), ("haiku", "transformers")),
}


@pytest.mark.parametrize("name", FAULTS)
def test_errors_are_chinese_and_contain_their_values(name: str) -> None:
    provoke, values = FAULTS[name]
    with pytest.raises(errors.DecodescopeError) as caught:
        provoke()
    error = caught.value
    assert_chinese(error)
    assert [value for value in values if value not in str(error)] == [], str(error)


def assert_chinese(error: errors.DecodescopeError) -> None:
    for text in (tr(error.title), error.cause, error.remedy):
        assert CHINESE.search(text), text
        assert "{" not in text, text


@pytest.mark.parametrize(
    ("changes", "values"),
    [
        ({"model_type": "flux-capacitor"}, ("flux-capacitor",)),
        ({"model_type": 3}, ("model_type", "3")),
        ({"hidden_size": "wide"}, ("hidden_size", "wide")),
        ({"num_hidden_layers": 9000}, ("num_hidden_layers", "9000")),
        ({"auto_map": {"AutoModel": "mine.Model"}, "model_type": "mine"}, ("AutoModel",)),
        ({"_attn_implementation": "flex_attention"}, ("flex_attention",)),
    ],
)
def test_errors_for_invalid_configurations_are_chinese(
    folder: Path, changes: dict[str, object], values: tuple[str, ...]
) -> None:
    file = folder / "config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **changes}))
    with pytest.raises(errors.ModelError) as caught:
        core.load(folder)
    assert_chinese(caught.value)
    assert [value for value in values if value not in str(caught.value)] == [], str(caught.value)


@pytest.mark.parametrize(
    ("damage", "values"),
    [
        (lambda folder: (folder / "config.json").unlink(), ("config.json",)),
        (lambda folder: (folder / "config.json").write_text("{"), ("JSON",)),
        (lambda folder: (folder / "model.safetensors").unlink(), ("*.safetensors",)),
        (lambda folder: (folder / "model.safetensors").write_bytes(b"\x09"), ("model.safetensors", "1")),
    ],
)
def test_errors_for_damaged_files_are_chinese(
    folder: Path, damage: Callable[[Path], object], values: tuple[str, ...]
) -> None:
    damage(folder)
    with pytest.raises(errors.ModelError) as caught:
        core.load(folder)
    assert_chinese(caught.value)
    assert [value for value in values if value not in str(caught.value)] == [], str(caught.value)


def _has_chinese_title(entry: Strategy | CacheBackend) -> bool:
    """Return whether the entry is translated; a new one may not be yet."""
    return entry.title == "DoLa" or tr(entry.title) != entry.title


def test_every_reason_of_a_refusal_is_chinese() -> None:
    for kind in ("gpt2", "t5", "mamba", "mistral"):
        model = tiny.make(kind)
        entries = [entry for entry in (*strategies.values(), *caches.values()) if _has_chinese_title(entry)]
        assert len(entries) > 20
        found = [entry.unsupported_reason(model) for entry in entries]
        assert [reason for reason in found if reason is not None and not CHINESE.search(reason)] == []


def test_events_are_the_same_in_every_language() -> None:
    """A run recorded in Chinese reads well in English."""
    request = core.Request([5, 6, 7], {"max_new_tokens": 4, "do_sample": True, "temperature": 0.7, "top_k": 5}, seed=3)
    reported = [event for event in core.stream(tiny.make("gpt2"), request) if isinstance(event, TokenChosen)]
    set_language(ENGLISH)
    again = [event for event in core.stream(tiny.make("gpt2"), request) if isinstance(event, TokenChosen)]
    assert [replace(event, seconds=0.0) for event in reported] == [replace(event, seconds=0.0) for event in again]


def test_stage_labels_follow_the_selected_language() -> None:
    heat = Stage("temperature", "T 0.8", 61, 1.0, 1.0, value=0.8, phrase="temperature 0.8")
    banned = Stage("suppress_tokens", "suppressed 3", 58, 1.0, 1.0, value=3, kind="ban", phrase="the list of …")
    unknown = Stage("later", "later 2", 61, 1.0, 1.0, phrase="a later stage")
    raw = Stage("raw", "raw", 61, 1.0, 1.0, kind="model", phrase="the model")
    reported = [(core.stage_label(stage), core.stage_phrase(stage)) for stage in (raw, heat, banned, unknown)]
    assert reported == [
        ("模型", "模型"), ("T 0.8", "温度 0.8"), ("禁用 3", "禁用词元的列表"), ("later 2", "a later stage"),
    ]  # fmt: skip
    set_language(ENGLISH)
    reported = [(core.stage_label(stage), core.stage_phrase(stage)) for stage in (raw, heat, banned, unknown)]
    assert reported == [("model", "the model"), *((stage.label, stage.phrase) for stage in (heat, banned, unknown))]


def test_a_notice_is_chinese_and_names_the_cache() -> None:
    request = core.Request([5, 6], {"max_new_tokens": 2, "cache_implementation": "static"})
    notices = [event.message for event in core.stream(tiny.make("gpt2"), request) if isinstance(event, Notice)]
    assert len(notices) == 1
    assert CHINESE.search(notices[0])
    assert "“静态”" in notices[0]
    assert "“动态”" in notices[0]


def test_memory_estimates_are_chinese() -> None:
    reported = core.estimate(tiny.make("gpt2"), core.Request([5, 6, 7], {"max_new_tokens": 20}))
    assert re.fullmatch(r"需要 .*，可用 .*：权重 .*，缓存 .*（动态，23 个词元）。", reported.figures)
    short = replace(reported, free=1000, remedies=("最多写 3 个新词元", "改用 float16"))
    assert short.advice == "内存不足。可行的办法：最多写 3 个新词元，或改用 float16。"


@pytest.mark.parametrize("kind", ["llama", "mistral", "gemma2", "t5", "mamba"])
def test_every_factor_of_a_size_is_chinese(kind: str) -> None:
    model = tiny.make(kind)
    known = filter(_has_chinese_title, caches.values())
    able = [backend for backend in known if backend.unsupported_reason(model) is None]
    for backend in able:
        spelled = core.sizes.format_names(backend.describe(model, RunShape(2, 40, 12)).size)
        assert not re.search("[a-z]{3}", spelled.replace("min(", "(")), (backend.name, spelled)


def test_script_comments_are_chinese() -> None:
    request = core.Request("Once", strategy="contrastive")
    script = core.as_code(request, model="storyteller")
    compile(script, "script", "exec")
    comments = [line for line in script.splitlines() if line.startswith("#")]
    assert comments == ["# transformers 的 generate 做不到这一点：transformers 5 不再包含对比搜索。"]


def test_chinese_cause_and_remedy_are_joined_without_a_space() -> None:
    with pytest.raises(errors.ParameterError) as caught:
        run(top_n=-3)
    assert str(caught.value) == "备选（top_n）为 -3，超出了范围。必须是 0 至 1,000,000 的整数。"


@pytest.mark.parametrize(
    ("count", "form"),
    [(0, "tokenów"), (1, "token"), (3, "tokeny"), (5, "tokenów"), (22, "tokeny"), (1.5, "tokeny"), (4.0, "tokeny")],
)
def test_a_language_may_have_more_than_two_plural_forms(
    monkeypatch: pytest.MonkeyPatch, count: float, form: str
) -> None:
    catalogue, compiled = Catalog(locale="pl", fuzzy=False), io.BytesIO()
    catalogue.add(("{n} token", "{n} tokens"), ("{n} token", "{n} tokeny", "{n} tokenów"))
    write_mo(compiled, catalogue)
    compiled.seek(0)
    monkeypatch.setattr(language, "_catalogue", gettext.GNUTranslations(compiled))
    assert trn("{n} token", "{n} tokens", count) == f"{{n}} {form}"
