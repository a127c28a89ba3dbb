"""Read the TOML file of a study: prompts × models × caches × settings × seeds. Imports no torch."""

from __future__ import annotations

import csv
import hashlib
import io
import itertools
import json
import math
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from decodescope.core import caches, strategies
from decodescope.core.checks.name_suggestions import did_you_mean
from decodescope.core.common.hf_generation import KNOWN_FIELDS
from decodescope.core.errors import DecodescopeError, StudyError
from decodescope.core.parameter import Parameter, check_values, short_repr
from decodescope.core.remote import is_address
from decodescope.core.studies.text_measures import StudyMeasure, default_measures, make_measure
from decodescope.core.system.system_errors import system_error_reason
from decodescope.resources.language import join_names, tr

MAX_RUNS = 1_000_000
_MAX_FILE_BYTES = 200_000_000
KEYS = (
    "title", "prompts", "settings", "grid", "cells", "seeds", "models", "caches", "engines", "in_flight", "drafts",
    "measures", "baseline", "answers", "best_of", "precision", "recordings", "top_n",
)  # fmt: skip
_PROMPT_KEYS = ("texts", "items", "file", "template", "templates", "answer", "id", "chat", "system", "limit")
_MODEL_KEYS = ("name", "model", "engines", "in_flight", "device", "weights", "adapters", "drafts")
_CACHE_KEYS = ("name", "cache", "settings")
_ANSWER_KEYS = ("pattern", "ignore_case")
_VARIABLE = re.compile(r"\{\{|\}\}|\{([^{}]*)\}")


@dataclass(frozen=True, slots=True)
class StudyPrompt:
    """A prompt of a study: the unit of its statistics."""

    id: str
    variables: Mapping[str, str]
    """Values for the template; `prompt` is the text of a prompt without one."""
    answers: tuple[str, ...] = ()
    """Right answers; any of them counts."""


@dataclass(frozen=True, slots=True)
class StudyModel:
    """A model of a study: a local one, or one that several engines serve."""

    name: str
    """The name in tables."""
    source: str = ""
    """Bundled name, folder, file or Hub id of a local model."""
    engines: tuple[str, ...] = ()
    """Addresses of engines that serve it."""
    in_flight: int = 4
    """Number of requests that each engine answers at a time."""
    device: str = "auto"
    weights: str = "auto"
    adapters: tuple[str, ...] = ()
    drafts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StudyCache:
    """A cache with its settings."""

    label: str
    name: str = "dynamic"
    settings: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StudyCell:
    """A combination of model, cache, template and settings."""

    factors: Mapping[str, object]
    """What differs between the cells, by name: model, cache, template, settings. The first cell has the same names."""
    model: StudyModel
    cache: StudyCache
    template: str
    """The text with `{variables}`."""
    settings: Mapping[str, object]
    strategy: str | None = None

    @property
    def label(self) -> str:
        """The factors as text; “all” for the only cell of a study."""
        return label_of(self.factors)


def label_of(factors: Mapping[str, object]) -> str:
    """Return factors as text."""
    return ", ".join(f"{name} {format_value(value)}" for name, value in factors.items()) or tr("all")


def format_value(value: object) -> str:
    """Return a value of a setting as text."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:g}" if isinstance(value, float) else value if isinstance(value, str) else json.dumps(value)


@dataclass(frozen=True, slots=True)
class StudyPlan:
    """A study as its file describes it."""

    title: str = ""
    text: str = ""
    """The file."""
    prompts: tuple[StudyPrompt, ...] = ()
    cells: tuple[StudyCell, ...] = ()
    seeds: tuple[int, ...] = (0,)
    measures: tuple[StudyMeasure, ...] = ()
    baseline: int | None = None
    """Position of the baseline cell; None without one."""
    answer_pattern: str = ""
    """Regular expression whose last match in a text is the answer (its first group, if it has one)."""
    ignore_case: bool = False
    best_of: str = ""
    """Name of the measure by which the best of k texts is chosen."""
    precision: Mapping[str, float] = field(default_factory=dict)
    """Half-widths wanted, by measure; a pilot run estimates the number of prompts for them."""
    is_chat: bool = False
    system: str = ""
    records: bool = True
    top_n: int = 10

    def prompt_of(self, cell: StudyCell, prompt: StudyPrompt) -> str | list[dict[str, str]]:
        """Return the prompt as a request contains it."""
        text = fill_template(cell.template, prompt.variables) if cell.template else prompt.variables["prompt"]
        if not self.is_chat:
            return text
        system = [{"role": "system", "content": self.system}] if self.system else []
        return [*system, {"role": "user", "content": text}]

    @property
    def run_count(self) -> int:
        """Number of runs if every cell is random."""
        return len(self.prompts) * len(self.cells) * len(self.seeds)


@dataclass(frozen=True, slots=True)
class StudyJob:
    """One run of a study."""

    cell: StudyCell
    prompt: StudyPrompt
    seed: int
    content: str | list[dict[str, str]]
    top_n: int = 10

    @property
    def group(self) -> str:
        """Digest of everything that determines the run but the seed."""
        model = self.cell.model
        parts = [
            model.source or model.name, model.weights, model.adapters, model.drafts, self.cell.cache.name,
            self.cell.cache.settings, self.cell.strategy, self.cell.settings, self.prompt.id, self.content, self.top_n,
        ]  # fmt: skip
        content = json.dumps(parts, sort_keys=True, ensure_ascii=False, default=str)
        return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()[:20]

    @property
    def key(self) -> str:
        """Digest by which a finished run is recognized."""
        return f"{self.group}-{self.seed}"


def plan_jobs(plan: StudyPlan) -> list[StudyJob]:
    """Return all runs of a study, model by model; the first seed of every prompt and cell comes first."""
    order = {name: place for place, name in enumerate(dict.fromkeys(cell.model.name for cell in plan.cells))}
    cells = sorted(plan.cells, key=lambda cell: order[cell.model.name])
    found = []
    for _name, group in itertools.groupby(cells, key=lambda cell: cell.model.name):
        own = list(group)
        found += [
            StudyJob(cell, prompt, seed, plan.prompt_of(cell, prompt), plan.top_n)
            for seed in plan.seeds
            for prompt in plan.prompts
            for cell in own
        ]
    return found


def read_study(path: str | Path) -> StudyPlan:
    """Read a study's file. Raises StudyError with line, key, cause and remedy."""
    path = Path(path)
    return parse_study(_read_text(path), path.parent, path.name)


def parse_study(text: str, folder: Path | None = None, name: str = "study.toml") -> StudyPlan:
    """Read a study from its text; files of prompts are relative to `folder`. Raises StudyError."""
    try:
        table = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError, ValueError) as error:
        found = re.search(r"\(at line (\d+)", str(error))
        line = int(found[1]) if found else 0
        raise _located(
            tr("{file} is not valid TOML: {reason}.").format(file=name, reason=re.sub(r" \(at .*\)$", "", str(error))),
            tr("Correct the line; docs/guide/studies.md has an example."), name, line,
        ) from None  # fmt: skip
    return _StudyReader(text, table, folder or Path(), name).read()


def fill_template(template: str, variables: Mapping[str, str]) -> str:
    """Return a template with the values of its `{variables}`; `{{` and `}}` are braces. Raises KeyError."""
    return _VARIABLE.sub(lambda found: found[0][0] if found[1] is None else variables[found[1].strip()], template)


def _read_text(path: Path) -> str:
    try:
        if path.exists() and not path.is_file():  # reading a pipe or device may never end
            raise StudyError(
                tr("{file} is not a regular file").format(file=path) + ".",
                tr("Check the path. Paths in a study are relative to its file."),
            )
        if path.stat().st_size > _MAX_FILE_BYTES:
            raise StudyError(
                tr("{file} is larger than {size} MB.").format(file=path, size=_MAX_FILE_BYTES // 1_000_000),
                tr("Divide it into several studies."),
            )
        return path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise StudyError(
            tr("{file} cannot be read: {reason}.").format(file=path, reason=system_error_reason(error)),
            tr("Check the path. Paths in a study are relative to its file."),
        ) from None
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise _located(
            tr("{file} is not UTF-8 text.").format(file=path), tr("Save it in UTF-8."), str(path), line
        ) from None


def _located(cause: str, remedy: str, name: str, line: int, key: str = "") -> StudyError:
    place = tr("{file}, line {line}").format(file=name, line=line) if line else name
    where = f"{place}, {key}" if key else place
    return StudyError(f"{where}: {cause}", remedy, line, key)


class _StudyReader:
    """Checks the tables of a file; every error names the line and the key."""

    def __init__(self, text: str, table: Mapping[str, Any], folder: Path, name: str) -> None:
        self._text, self._table, self._folder, self._name = text, table, folder, name

    def fail(self, key: str, cause: str, remedy: str, index: int = 0) -> StudyError:
        """Return the error of a key such as `grid.temperature`; `index` is that of a table in a list."""
        return _located(cause, remedy, self._name, find_line(self._text, key, index), key)

    def read(self) -> StudyPlan:
        self._check_names(self._table, KEYS, "")
        prompts, templates = self._read_prompts()
        settings = self._settings("settings", self._typed("settings", dict, {}))
        models, cache_list = self._read_models(), self._read_caches()
        cells = self._make_cells(models, cache_list, templates, settings)
        seeds = self._read_seeds()
        if (count := len(prompts) * len(cells) * len(seeds)) > MAX_RUNS:
            raise self.fail(
                "seeds", tr("The study has {count:,} runs, more than {most:,}.").format(count=count, most=MAX_RUNS),
                tr("Use fewer seeds, prompts or values, or several studies."),
            )  # fmt: skip
        answers = self._typed("answers", dict, {})
        self._check_names(answers, _ANSWER_KEYS, "answers")
        pattern = self._typed("answers.pattern", str, "", answers.get("pattern"))
        self._check_pattern("answers.pattern", pattern)
        measures = self._read_measures(any(prompt.answers for prompt in prompts))
        return StudyPlan(
            title=self._typed("title", str, "") or Path(self._name).stem, text=self._text, prompts=tuple(prompts),
            cells=tuple(cells), seeds=seeds, measures=measures, baseline=self._find_baseline(cells),
            answer_pattern=pattern,
            ignore_case=self._typed("answers.ignore_case", bool, False, answers.get("ignore_case")),
            best_of=self._read_best_of(measures), precision=self._read_precision(measures),
            is_chat=self._typed("prompts.chat", bool, False, self._table["prompts"].get("chat")),
            system=self._typed("prompts.system", str, "", self._table["prompts"].get("system")),
            records=self._typed("recordings", bool, True), top_n=self._typed("top_n", int, 10),
        )  # fmt: skip

    def _typed(self, key: str, kind: type, default: Any, value: Any = None) -> Any:
        """Return a value of the right type; `value` is looked up by a plain key."""
        value = self._table.get(key) if value is None and "." not in key else value
        if value is None:
            return default
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            names = {
                dict: tr("a table"), str: tr("a text"), bool: tr("true or false"), int: tr("a whole number"),
                list: tr("a list"),
            }  # fmt: skip
            raise self.fail(
                key, tr("The value is {value}, not {kind}.").format(value=short_repr(value), kind=names[kind]),
                tr("Write {kind}.").format(kind=names[kind]),
            )  # fmt: skip
        return value

    def _check_names(self, table: Mapping[str, Any], known: Sequence[str], within: str, index: int = 0) -> None:
        for name in table:
            if name not in known:
                key = f"{within}.{name}" if within else name
                cause = tr("The key “{name}” is unknown.").format(name=name) + did_you_mean(name, known)
                raise self.fail(key, cause, tr("Available: {names}.").format(names=join_names(known)), index)

    def _texts(self, key: str, value: object) -> tuple[str, ...]:
        if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
            raise self.fail(
                key, tr("The value is {value}, not a list of texts.").format(value=short_repr(value)),
                tr("Write a list: [\"…\", \"…\"]."),
            )  # fmt: skip
        return tuple(value)

    # --- prompts

    def _read_prompts(self) -> tuple[list[StudyPrompt], dict[str, str]]:
        table = self._typed("prompts", dict, None)
        if table is None:
            raise self.fail(
                "", tr("The study has no prompts."), tr("Add a table: [prompts] with texts, items or file.")
            )
        self._check_names(table, _PROMPT_KEYS, "prompts")
        sources = [name for name in ("texts", "items", "file") if name in table]
        if len(sources) != 1:
            raise self.fail(
                "prompts", tr("The prompts come from {count} places.").format(count=len(sources)),
                tr("Give one of texts (a list), items (a list of tables) and file (.txt, .csv or .jsonl)."),
            )  # fmt: skip
        source = sources[0]
        key = f"prompts.{source}"
        if source == "texts":
            rows: list[tuple[str, dict[str, Any]]] = [
                ("", {"prompt": text}) for text in self._texts(key, table["texts"])
            ]
        elif source == "items":
            items = table["items"]
            if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
                raise self.fail(
                    key, tr("The value is {value}, not a list of tables.").format(value=short_repr(items)),
                    tr("Write a list: [{{question = \"…\"}}, …].").format(),
                )  # fmt: skip
            rows = [("", item) for item in items]
        else:
            rows = list(_read_prompt_file(self._folder / self._typed(key, str, "", table["file"])))
        limit = self._typed("prompts.limit", int, None, table.get("limit"))
        rows = rows[:limit] if limit is not None and limit > 0 else rows
        if not rows:
            raise self.fail(key, tr("There are no prompts."), tr("Add at least one."))
        templates = self._read_templates(table)
        prompts = self._make_prompts(table, rows, key)
        self._check_variables(templates, rows, prompts, key)
        return prompts, templates

    def _make_prompts(
        self, table: Mapping[str, Any], rows: Sequence[tuple[str, dict[str, Any]]], key: str
    ) -> list[StudyPrompt]:
        answer = self._typed("prompts.answer", str, "answer", table.get("answer"))
        id_name = self._typed("prompts.id", str, "id", table.get("id"))
        found: list[StudyPrompt] = []
        for number, (place, row) in enumerate(rows, 1):
            given = row.get(answer)
            answers = tuple(map(_as_text, given if isinstance(given, list) else [given] if given is not None else []))
            variables = {name: _as_text(value) for name, value in row.items()}
            found.append(
                StudyPrompt(_as_text(row.get(id_name, number)), variables, tuple(a for a in answers if a != ""))
            )
            if "answer" in table and answer not in row:
                raise self._row_error(place, number, key, answer)
        ids = [prompt.id for prompt in found]
        if len(set(ids)) < len(ids):
            twice = next(one for one in ids if ids.count(one) > 1)
            raise self.fail(
                key, tr("Two prompts have the id “{id}”.").format(id=twice), tr("Give each prompt an id of its own.")
            )
        return found

    def _row_error(self, place: str, number: int, key: str, name: str) -> StudyError:
        cause = tr("it has no value “{name}”.").format(name=name)
        remedy = tr("Add it, or correct the name in the study.")
        if place:
            return StudyError(f"{place}: {cause}", remedy, int(place.rpartition(" ")[2]), name)
        return self.fail(key, tr("Prompt {number}: {problem}").format(number=number, problem=cause), remedy)

    def _read_templates(self, table: Mapping[str, Any]) -> dict[str, str]:
        if "template" in table and "templates" in table:
            raise self.fail(
                "prompts.templates", tr("There are both a template and templates."), tr("Keep one of them.")
            )
        if "templates" in table:
            templates = self._typed("prompts.templates", dict, {}, table["templates"])
            for name, text in templates.items():
                self._typed(f"prompts.templates.{name}", str, "", text)
            if templates:
                return dict(templates)
        return {"": self._typed("prompts.template", str, "", table.get("template"))}

    def _check_variables(
        self, templates: Mapping[str, str], rows: Sequence[tuple[str, dict[str, Any]]], prompts: Sequence[StudyPrompt],
        key: str,
    ) -> None:  # fmt: skip
        for name, template in templates.items():
            wanted = [one[1].strip() for one in _VARIABLE.finditer(template) if one[1] is not None]
            for number, ((place, _row), prompt) in enumerate(zip(rows, prompts, strict=True), 1):
                for variable in wanted if template else ["prompt"]:
                    if variable in prompt.variables:
                        continue
                    if any(variable in other.variables for other in prompts):
                        raise self._row_error(place, number, key, variable)
                    if not template:
                        raise self.fail(
                            key, tr("The prompts have no column “prompt”."),
                            tr("Add prompts.template with variables: {names}.").format(
                                names=join_names(f"{{{column}}}" for column in prompt.variables) or "–"
                            ),
                        )  # fmt: skip
                    where = f"prompts.templates.{name}" if name else "prompts.template"
                    raise self.fail(
                        where,
                        tr("The prompts have no variable “{name}”.").format(name=variable)
                        + did_you_mean(variable, prompt.variables),
                        tr("Available: {names}. Write {{{{ and }}}} for braces.").format(
                            names=join_names(prompt.variables)
                        ),
                    )

    # --- cells

    def _read_seeds(self) -> tuple[int, ...]:
        seeds = self._table.get("seeds", [0])
        if isinstance(seeds, int) and not isinstance(seeds, bool) and seeds > 0:
            return tuple(range(1, seeds + 1))
        if (
            not isinstance(seeds, list)
            or not seeds
            or not all(isinstance(one, int) and not isinstance(one, bool) and one >= 0 for one in seeds)
        ):
            raise self.fail(
                "seeds", tr("The value is {value}.").format(value=short_repr(seeds)),
                tr("Write the number of seeds, or a list of whole numbers."),
            )  # fmt: skip
        return tuple(dict.fromkeys(seeds))

    def _read_models(self) -> list[StudyModel]:
        given = self._table.get("models", [] if "engines" in self._table else ["storyteller"])
        if not isinstance(given, list):
            raise self.fail("models", tr("The models are no list."), tr('Write a list: ["storyteller"].'))
        drafts = self._texts("drafts", self._table.get("drafts", []))
        found: list[StudyModel] = []
        if "engines" in self._table:
            given = [{"engines": self._table["engines"]}, *given]
        for index, one in enumerate(given):
            found.append(self._read_model(one, index, drafts))
        if not found:
            raise self.fail("models", tr("There are no models."), tr("Add one."))
        names = [model.name for model in found]
        if twice := next((name for name in names if names.count(name) > 1), ""):
            raise self.fail(
                "models", tr("Two models are called “{name}”.").format(name=twice), tr("Give each one a name.")
            )
        return found

    def _read_model(self, one: object, index: int, drafts: tuple[str, ...]) -> StudyModel:
        table = {"model": one} if isinstance(one, str) else one
        if not isinstance(table, dict):
            raise self.fail(
                "models", tr("A model is {value}.").format(value=short_repr(one)),
                tr("Write its name, or a table with name and engines."),
            )  # fmt: skip
        self._check_names(table, _MODEL_KEYS, "models", index)
        for name in ("name", "model", "device", "weights"):
            self._typed(f"models.{name}", str, "", table.get(name))
        source = table.get("model", "")
        engines = self._texts("models.engines", table.get("engines", []))
        if source and is_address(source):
            engines, source = (*engines, source), ""
        if bool(source) == bool(engines):
            raise self.fail(
                "models.engines" if engines else "models", tr("A model has no source, or two."),
                tr("Give model (a name or folder) or engines (a list of addresses)."), index,
            )  # fmt: skip
        for address in engines:
            if not is_address(address):
                raise self.fail(
                    "models.engines" if "models" in self._table else "engines",
                    tr("{value} is not an address of an engine.").format(value=short_repr(address)),
                    tr("Write it as http://host:port/v1."),
                )  # fmt: skip
        in_flight = table.get("in_flight", self._table.get("in_flight", 4))
        if not isinstance(in_flight, int) or isinstance(in_flight, bool) or not 1 <= in_flight <= 256:
            raise self.fail(
                "in_flight", tr("The value is {value}.").format(value=short_repr(in_flight)),
                tr("Write a whole number from 1 to 256."),
            )  # fmt: skip
        return StudyModel(
            str(table.get("name") or source or engines[0]), source, engines, in_flight, table.get("device", "auto"),
            table.get("weights", "auto"), self._texts("models.adapters", table.get("adapters", [])),
            self._texts("models.drafts", table["drafts"]) if "drafts" in table else drafts,
        )  # fmt: skip

    def _read_caches(self) -> list[StudyCache]:
        given = self._table.get("caches", ["dynamic"])
        if not isinstance(given, list) or not given:
            raise self.fail("caches", tr("The caches are no list."), tr('Write a list: ["dynamic"].'))
        found = []
        for index, one in enumerate(given):
            table = {"cache": one} if isinstance(one, str) else one
            if not isinstance(table, dict) or not isinstance(table.get("cache"), str):
                raise self.fail(
                    "caches", tr("A cache is {value}.").format(value=short_repr(one)),
                    tr("Write its name, or a table with cache and settings."),
                )  # fmt: skip
            self._check_names(table, _CACHE_KEYS, "caches", index)
            name = table["cache"]
            if name not in caches.registry:
                raise self.fail(
                    "caches",
                    tr("The cache “{name}” does not exist.").format(name=name) + did_you_mean(name, caches.registry),
                    tr("Available: {names}.").format(names=join_names(caches.registry)),
                )
            options = self._typed("caches.settings", dict, {}, table.get("settings"))
            label = table.get("name") or ", ".join([name, *(f"{k} {format_value(v)}" for k, v in options.items())])
            found.append(StudyCache(str(label), name, options))
        if len({one.label for one in found}) < len(found):
            raise self.fail("caches", tr("A cache is listed twice."), tr("Give each one a name."))
        return found

    def _settings(self, key: str, table: Mapping[str, Any], index: int = 0) -> dict[str, Any]:
        for name, value in table.items():
            self._check_setting(f"{key}.{name}", name, value, index)
        return dict(table)

    def _check_setting(self, key: str, name: str, value: object, index: int = 0) -> None:
        if name == "strategy":
            if not isinstance(value, str) or value not in strategies.registry:
                raise self.fail(
                    key,
                    tr("The strategy {name} does not exist.").format(name=short_repr(value))
                    + did_you_mean(str(value), strategies.registry),
                    tr("Available: {names}.").format(names=join_names(strategies.registry)), index,
                )  # fmt: skip
            return
        known = _setting_parameters()
        if name not in known and name not in KNOWN_FIELDS:
            names = sorted({*known, *KNOWN_FIELDS})
            raise self.fail(
                key, tr("The setting “{name}” is unknown.").format(name=name) + did_you_mean(name, names),
                tr("Correct the name; the guide lists the settings of each strategy."), index,
            )  # fmt: skip
        problems = []
        for parameter in known.get(name, ()):
            try:
                check_values((parameter,), {name: value})
                return
            except DecodescopeError as error:
                problems.append(error)
        if problems:
            raise self.fail(key, problems[0].cause, problems[0].remedy, index)

    def _make_cells(
        self, models: Sequence[StudyModel], cache_list: Sequence[StudyCache], templates: Mapping[str, str],
        settings: Mapping[str, Any],
    ) -> list[StudyCell]:  # fmt: skip
        grid = self._typed("grid", dict, {})
        for name, values in grid.items():
            if not isinstance(values, list) or not values:
                raise self.fail(
                    f"grid.{name}", tr("The value is {value}, not a list.").format(value=short_repr(values)),
                    tr("Write the values to compare in brackets; a single value belongs to [settings]."),
                )  # fmt: skip
            for value in values:
                self._check_setting(f"grid.{name}", name, value)
        listed = self._typed("cells", list, [{}])
        if not listed or not all(isinstance(one, dict) for one in listed):
            raise self.fail("cells", tr("The cells are no list of tables."), tr("Write [[cells]] before each one."))
        names = list(dict.fromkeys(name for one in listed for name in one))
        for index, one in enumerate(listed):
            self._settings("cells", one, index)
        found, seen = [], set[str]()
        for model, cache, (template, text), own in itertools.product(models, cache_list, templates.items(), listed):
            for values in itertools.product(*grid.values()):
                varied = {
                    **{name: own.get(name, settings.get(name)) for name in names},
                    **dict(zip(grid, values, strict=True)),
                }
                factors = {
                    **({"model": model.name} if len(models) > 1 else {}),
                    **({"cache": cache.label} if len(cache_list) > 1 else {}),
                    **({"template": template} if len(templates) > 1 else {}),
                    **{name: tr("default") if value is None else value for name, value in varied.items()},
                }
                whole = {**settings, **{name: value for name, value in varied.items() if value is not None}}
                strategy = whole.pop("strategy", None)
                cell = StudyCell(factors, model, cache, text, whole, strategy)
                if cell.label in seen:
                    raise self.fail(
                        "grid" if grid else "cells", tr("The cell “{cell}” exists twice.").format(cell=cell.label),
                        tr("Remove one of them."),
                    )  # fmt: skip
                seen.add(cell.label)
                found.append(cell)
        return found

    def _find_baseline(self, cells: Sequence[StudyCell]) -> int | None:
        wanted = self._typed("baseline", dict, None)
        if wanted is None:
            return None
        names = list(cells[0].factors)
        for name in wanted:
            if name not in names:
                raise self.fail(
                    f"baseline.{name}", tr("“{name}” does not differ between the cells.").format(name=name),
                    tr("Available: {names}.").format(names=join_names(names) or "–"),
                )  # fmt: skip
        found = [
            place for place, cell in enumerate(cells)
            if all(cell.factors[name] == value for name, value in wanted.items())
        ]  # fmt: skip
        if len(found) != 1:
            raise self.fail(
                "baseline", tr("{count} cells match the baseline.").format(count=len(found)),
                tr("Give a value for each of: {names}.").format(names=join_names(names)),
            )  # fmt: skip
        return found[0]

    # --- measures

    def _check_pattern(self, key: str, pattern: str) -> None:
        try:
            re.compile(pattern)
        except re.error as error:
            raise self.fail(
                key, tr("The regular expression is invalid: {reason}.").format(reason=error), tr("Correct it.")
            ) from None

    def _read_measures(self, has_answers: bool) -> tuple[StudyMeasure, ...]:
        given = self._table.get("measures")
        if given is None:
            return default_measures(has_answers)
        if not isinstance(given, list):
            raise self.fail("measures", tr("The measures are no list."), tr('Write a list: ["length"].'))
        found = []
        for index, one in enumerate(given):
            table = {"name": one} if isinstance(one, str) else one
            try:
                measure = make_measure(table)
            except DecodescopeError as error:
                key = f"measures.{error.key}" if isinstance(error, StudyError) and error.key else "measures"
                raise self.fail(key, error.cause, error.remedy, index) from None
            if measure.needs_answers and not has_answers:
                raise self.fail(
                    "measures",
                    tr("“{name}” needs right answers, and the prompts have none.").format(name=measure.name),
                    tr("Add a column with right answers, and name it in prompts.answer."),
                )
            found.append(measure)
        names = [one.name for one in found]
        if twice := next((name for name in names if names.count(name) > 1), ""):
            raise self.fail(
                "measures", tr("Two measures are called “{name}”.").format(name=twice),
                tr("Give each one a title of its own."),
            )  # fmt: skip
        return tuple(found)

    def _known_measure(self, key: str, name: object, measures: Sequence[StudyMeasure]) -> str:
        names = [one.name for one in measures]
        if name not in names:
            raise self.fail(
                key,
                tr("The study has no measure {name}.").format(name=short_repr(name)) + did_you_mean(str(name), names),
                tr("Available: {names}.").format(names=join_names(names)),
            )
        return str(name)

    def _read_best_of(self, measures: Sequence[StudyMeasure]) -> str:
        given = self._table.get("best_of")
        return "" if given is None else self._known_measure("best_of", given, measures)

    def _read_precision(self, measures: Sequence[StudyMeasure]) -> dict[str, float]:
        table = self._typed("precision", dict, {})
        found = {}
        for name, value in table.items():
            self._known_measure(f"precision.{name}", name, measures)
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            if not is_number or not 0 < value < math.inf:
                raise self.fail(
                    f"precision.{name}", tr("The value is {value}.").format(value=short_repr(value)),
                    tr("Write half the width of the interval, a number above 0."),
                )  # fmt: skip
            found[name] = float(value)
        return found


def _setting_parameters() -> dict[str, list[Parameter]]:
    """Return the parameters of all strategies by name: their ranges depend on the strategy."""
    found: dict[str, list[Parameter]] = {}
    for strategy in strategies.registry.values():
        for parameter in strategy.parameters:
            found.setdefault(parameter.name, []).append(parameter)
    return found


def _as_text(value: object) -> str:
    if isinstance(value, str):
        return value
    return format_value(value) if value is not None else ""


def _read_prompt_file(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield place and values of each row of a text file (a prompt per line), CSV or JSON Lines."""
    text, ending = _read_text(path), path.suffix.lower()

    def place(line: int) -> str:
        return tr("{file}, line {line}").format(file=path.name, line=line)

    if ending in (".jsonl", ".ndjson"):
        for number, line in enumerate(text.split("\n"), 1):  # JSON allows other line breaks inside a text
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except (ValueError, RecursionError) as error:
                reason = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
                raise StudyError(
                    f"{place(number)}: " + tr("it is not valid JSON ({reason}).").format(reason=reason),
                    tr("Write one JSON object per line."), number,
                ) from None  # fmt: skip
            row = {"prompt": row} if isinstance(row, str) else row
            if not isinstance(row, dict):
                raise StudyError(
                    f"{place(number)}: " + tr("it is not a JSON object."), tr("Write one JSON object per line."), number
                )
            yield place(number), row
    elif ending in (".csv", ".tsv"):
        reader = csv.reader(io.StringIO(text, newline=""), delimiter="\t" if ending == ".tsv" else ",", strict=True)
        names: list[str] | None = None
        try:
            for cells in reader:
                if names is None:
                    names = [cell.strip() for cell in cells]
                    if len(set(names)) < len(names) or not all(names):
                        raise StudyError(
                            f"{place(1)}: " + tr("a column has no name, or the name of another one."),
                            tr("Give each column a name of its own."), 1,
                        )  # fmt: skip
                elif cells:
                    if len(cells) != len(names):
                        raise StudyError(
                            f"{place(reader.line_num)}: "
                            + tr("it has {count} values, and there are {columns} columns.").format(
                                count=len(cells), columns=len(names)
                            ),
                            tr("Put texts with commas or line breaks in quotes."), reader.line_num,
                        )  # fmt: skip
                    yield place(reader.line_num), dict(zip(names, cells, strict=True))
        except csv.Error as error:
            raise StudyError(
                f"{place(reader.line_num)}: " + tr("it is not valid CSV ({reason}).").format(reason=error),
                tr("Put texts with commas or line breaks in quotes."), reader.line_num,
            ) from None  # fmt: skip
    elif ending in (".txt", ".text", ".md", ""):
        for number, line in enumerate(text.splitlines(), 1):
            if line.strip():
                yield place(number), {"prompt": line}
    else:
        raise StudyError(
            tr("Files ending in {ending} are not read.").format(ending=ending), tr("Use .txt, .csv, .tsv or .jsonl.")
        )


def find_line(text: str, key: str, index: int = 0) -> int:
    """Return the line of a key in a TOML text, or that of the nearest key or table around it; 0 if there is none.

    `index`: the number of the table in a list of tables.
    """
    wanted = tuple(key.split(".")) if key else ()
    table: tuple[str, ...] = ()
    seen: dict[tuple[str, ...], int] = {}
    best, best_length = 0, 0
    for number, line in enumerate(text.splitlines(), 1):
        if header := re.match(r"\s*\[{1,2}\s*([^\[\]]+?)\s*\]{1,2}\s*(#.*)?$", line):
            table = path = tuple(part.strip().strip("\"'") for part in header[1].split("."))
            seen[table] = seen.get(table, -1) + 1
        elif assigned := re.match(r"\s*([A-Za-z0-9_.\"'-]+)\s*=", line):
            path = (*table, *(part.strip("\"'") for part in assigned[1].split(".")))
        else:
            continue
        is_in_other_table = f"[[{'.'.join(table)}]]" in text and seen.get(table, 0) != index
        if path == wanted[: len(path)] and len(path) > best_length and not is_in_other_table:
            best, best_length = number, len(path)
    return best
