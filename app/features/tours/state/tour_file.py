"""Reader for tour files in TOML, with full validation; errors name the file, the step and the key."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from string import Formatter
from typing import Any, TypeVar, get_args

from decodescope import resources
from decodescope.app.features.tours.state.measures import MEASURES
from decodescope.app.features.tours.state.measures.measure import RELATIONS
from decodescope.app.features.tours.state.tour import (
    HomeQuestion,
    Lesson,
    LessonGuess,
    MeasureRef,
    Tour,
    TourCondition,
    TourError,
    TourSetting,
    TourStep,
    Waits,
)
from decodescope.app.state import setting_values
from decodescope.app.state.suggestions import truncate_name, unknown_name_message
from decodescope.core import caches, strategies
from decodescope.core.checks.name_suggestions import did_you_mean
from decodescope.core.strategies import Parameter
from decodescope.core.system.system_errors import system_error_reason
from decodescope.resources.language import LANGUAGES, current_language, join_names, mark, tr

QUESTION, GUESS, RUN, EXPLANATION, HOME = (
    mark("Question"), mark("Guess"), mark("Run"), mark("Explanation"), mark("Take home"),
)  # fmt: skip
"""Parts of a lesson."""
_LESSON = {"name", "title", "about", "order", "question", "guess", "runs", "steps", "home"}
_GUESS = {"question", "choices", "run", "words", "figure", "below"}
_CHOICES = 4
_STEP = TourStep.__dataclass_fields__.keys() - {"stage", "guess", "asks"}
_SETTING = TourSetting.__dataclass_fields__.keys()
_TOUR = {"name", "title", "about", "order", "runs", "steps"}
_KINDS: Mapping[str, type | tuple[type, ...]] = {
    "order": int, "seed": int, "seconds": (int, float), "runs": dict, "figures": dict, "parameters": dict,
    "cache_parameters": dict, "guess": dict, "home": list, "steps": list, "drafts": list, "when": list,
}  # fmt: skip
"""Types of the values by key; all other values are strings."""
_MAX_SECONDS = 90.0
"""Longest duration of a tour in seconds."""


TourType = TypeVar("TourType", bound=Tour)


def load_tours(folder: Path | None = None) -> tuple[tuple[Tour, ...], tuple[TourError, ...]]:
    """Load the tours of a folder in their order, by default the bundled ones, and the errors of invalid files."""
    return _load(folder or resources.path("tours"), read_tour)


def load_lessons(folder: Path | None = None) -> tuple[tuple[Lesson, ...], tuple[TourError, ...]]:
    """Load the lessons of a folder in their order, by default the bundled ones, with the runs of the current language;
    and the errors of invalid files.
    """
    return _load(folder or resources.path("lessons"), read_lesson)


def _load(folder: Path, read: Callable[[Path], TourType]) -> tuple[tuple[TourType, ...], tuple[TourError, ...]]:
    found: list[TourType] = []
    problems: list[TourError] = []
    for path in sorted(folder.glob("*.toml")):
        try:
            found.append(read(path))
        except TourError as problem:
            problems.append(problem)
    return tuple(sorted(found, key=lambda tour: (tour.order, tour.name))), tuple(problems)


def find_lesson(name: str) -> Lesson:
    """Return the lesson called `name`. Raises TourError, which lists the existing lessons."""
    return _find(name, load_lessons()[0], "lesson")


def find_tour(name: str) -> Tour:
    """Return the tour called `name`. Raises TourError, which lists the existing tours."""
    return _find(name, load_tours()[0], "tour")


def _find(name: str, tours: Sequence[TourType], kind: str) -> TourType:
    by_name = {tour.name: tour for tour in tours}
    if name not in by_name:
        raise TourError(unknown_name_message(kind, name, by_name))
    return by_name[name]


def names_and_titles() -> list[tuple[str, str]]:
    """Return name and title, in the current language, of every tour."""
    return [(tour.name, tr(tour.title)) for tour in load_tours()[0]]


def read_tour(path: Path) -> Tour:
    """Read a tour file. Raises TourError."""
    return _read(path, _parse_tour)


def read_lesson(path: Path) -> Lesson:
    """Read a lesson file, with the runs of the current language. Raises TourError."""
    return _read(path, _parse_lesson)


def _read(path: Path, parse: Callable[[Mapping[str, Any]], TourType]) -> TourType:
    try:
        return parse(tomllib.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        cause = system_error_reason(error)
    except (ValueError, RecursionError) as error:  # not text, not TOML, a number of thousands of digits, or invalid
        cause = str(error)
    raise TourError(
        tr("Cannot play the tour {file}: {cause}").format(file=path.name, cause=cause),
        tr("Correct the file. The other tours are not affected."),
    )


class _TourFileError(ValueError):
    """An error in a tour file, with its location."""


def _parse_tour(data: Mapping[str, Any]) -> Tour:
    _check_keys(data, _TOUR, "")
    name, title, about = (_text(data, key, "") for key in ("name", "title", "about"))
    runs = {key: _parse_setting(table, f"runs.{key}") for key, table in _table(data, "runs").items()}
    tables = data.get("steps")
    if not isinstance(tables, list) or not tables:
        raise _TourFileError(tr("[[steps]] is missing."))
    steps = tuple(_parse_step(table, runs, tr("step {number}").format(number=n)) for n, table in enumerate(tables, 1))
    order = data.get("order", 0)
    tour = Tour(name, title, about, order if isinstance(order, int) else 0, runs, steps)
    if tour.seconds > _MAX_SECONDS:
        raise _TourFileError(
            tr("it takes {seconds} seconds; the maximum is {most}.").format(seconds=tour.seconds, most=_MAX_SECONDS)
        )
    return tour


def _parse_lesson(data: Mapping[str, Any]) -> Lesson:
    """Parse a lesson: its question, its guess, its explanation and its questions to take home, as steps of a tour."""
    _check_keys(data, _LESSON, "")
    name, title, about, question = (_text(data, key, "") for key in ("name", "title", "about", "question"))
    tables = {key: _in_language(table) for key, table in _table(data, "runs").items()}
    runs = {key: _parse_setting(table, f"runs.{key}") for key, table in tables.items()}
    guess = _parse_guess(_in_language(_table(data, "guess")), runs)
    entries = data.get("steps")
    if not isinstance(entries, list) or not entries:
        raise _TourFileError(tr("[[steps]] is missing."))
    steps = [_parse_step(table, runs, tr("step {number}").format(number=n)) for n, table in enumerate(entries, 1)]
    if steps[0].run != guess.run:
        raise _TourFileError(tr("The first step must show the run of the guess."))
    home = tuple(
        HomeQuestion(*(_text(table, key, "home") for key in ("question", "answer"))) for table in data.get("home", ())
    )
    if not home:
        raise _TourFileError(tr("The key “{key}” is missing.").format(key="home"))
    order = data.get("order", 0)
    return Lesson(
        name, title, about, order if isinstance(order, int) else 0, runs,
        (
            TourStep(question, stage=QUESTION),
            TourStep(guess.question, stage=GUESS, guess=guess, asks=True),
            replace(steps[0], stage=RUN, guess=guess),
            *(replace(step, stage=EXPLANATION) for step in steps[1:]),
            TourStep(home[0].question, stage=HOME),
        ),
        question, home,
    )  # fmt: skip


def _in_language(table: Any) -> dict[str, Any]:
    """Return a table with what it has for the current language, and without its parts for languages."""
    own = table.get(current_language(), {}) if isinstance(table, dict) else {}
    return {**{key: value for key, value in dict(table).items() if key not in LANGUAGES}, **own}


def _parse_guess(table: Mapping[str, Any], runs: Mapping[str, TourSetting]) -> LessonGuess:
    for key in table:
        if key not in _GUESS:
            raise _TourFileError(_at("guess", tr("unknown key “{key}”.").format(key=truncate_name(key))))
    question, run = _text(table, "question", "guess"), _known_name(table, "run", runs, "guess")
    entries, below = table.get("choices", ()), tuple(table.get("below", ()))
    choices = tuple(str(entry.get("text", "") if isinstance(entry, dict) else entry) for entry in entries)
    words = table.get("words", False)
    if len(choices) != _CHOICES or not all(choices):
        raise _TourFileError(_at("guess", tr("four choices are needed.")))
    if words:
        return LessonGuess(question, choices, run, words=True)
    if len(below) != _CHOICES - 1 or list(below) != sorted(below):
        raise _TourFileError(_at("guess", tr("“below” needs three rising numbers.")))
    figure = _parse_figures({"value": table.get("figure")}, set(runs), "guess")["value"]
    return LessonGuess(question, choices, run, figure=figure, below=below)


def _parse_setting(table: object, location: str) -> TourSetting:
    if not isinstance(table, dict):
        raise _TourFileError(tr("{place} is not a table.").format(place=location))
    _check_keys(table, _SETTING, location)
    strategy = _known_name(table, "strategy", strategies.registry, location)
    cache_name = _known_name({"cache": "dynamic"} | table, "cache", caches.registry, location)
    texts = {key: _text(table, key, location) for key in ("model", "prompt")}
    backend = caches.registry[cache_name]
    return TourSetting(
        **texts,
        strategy=strategy,
        parameters=_values(table, "parameters", strategies.registry[strategy].parameters, location),
        cache=cache_name,
        cache_parameters=_values(table, "cache_parameters", backend.parameters, location),
        drafts=tuple(table.get("drafts", ())),
        seed=int(table.get("seed", 0)),
        view=str(table.get("view", "tokens")),
    )


def _parse_step(table: object, runs: Iterable[str], location: str) -> TourStep:
    if not isinstance(table, dict):
        raise _TourFileError(tr("{place} is not a table.").format(place=location))
    _check_keys(table, _STEP, location)
    _text(table, "text", location)
    if table.get("run"):
        _known_name(table, "run", runs, location)
    figures = _parse_figures(table.get("figures", {}), set(runs), location)
    when = tuple(_parse_condition(row, figures, location) for row in table.get("when", ()))
    if table.get("waits", "next") not in get_args(Waits):
        raise _TourFileError(f"{location}: {unknown_name_message('waits', str(table['waits']), get_args(Waits))}")
    step = TourStep(**{**table, "figures": figures, "when": when})
    _check_placeholders(step, location)
    return step


def _parse_figures(table: Mapping[str, Any], runs: set[str], location: str) -> dict[str, MeasureRef]:
    """Parse the numbers of a step; they can refer to runs and to earlier numbers."""
    found: dict[str, MeasureRef] = {}
    for name, entry in table.items():
        measure, *of = list[Any](entry) if isinstance(entry, list) and entry else [entry]
        if not isinstance(measure, str) or measure not in MEASURES:
            raise _TourFileError(f"{location}: {unknown_name_message('measure', str(measure), MEASURES)}")
        needed = MEASURES[measure].run_count
        if len(of) < needed or not all(one in runs for one in of[:needed]):
            raise _TourFileError(
                tr("{place}: {measure} requires {count} runs of this tour.").format(
                    place=location, measure=measure, count=needed
                )
            )
        found[name] = MeasureRef(measure, tuple(of))
    return found


def _parse_condition(row: object, figures: Mapping[str, MeasureRef], location: str) -> TourCondition:
    if not isinstance(row, list) or len(row) != 3 or row[1] not in RELATIONS:
        shown = truncate_name(str(row))
        raise _TourFileError(tr("{place}: {what} is not a condition. Use [figure, “>=”, number].").format(
            place=location, what=shown))  # fmt: skip
    left, relation, right = row
    for side in (left, right):
        if isinstance(side, str) and side not in figures:
            raise _TourFileError(f"{location}: {unknown_name_message('figure', side, figures)}")
    return TourCondition(left, relation, right)


def _check_placeholders(step: TourStep, location: str) -> None:
    """Check that every placeholder is a number of the step, and that a step with numbers has an alternative text."""
    for text in (step.text, step.otherwise):
        for name in _placeholders(text, location):
            if name not in step.figures:
                raise _TourFileError(f"{location}: {unknown_name_message('figure', name, step.figures)}")
    lacking = {name for name, reference in step.figures.items() if MEASURES[reference.measure].may_be_missing}
    if lacking & placeholders(step.otherwise):
        raise _TourFileError(
            tr("{place}: “otherwise” cannot use {figures}, which may be missing.").format(
                place=location, figures=join_names(sorted(lacking & placeholders(step.otherwise)))
            )
        )
    if step.figures and not step.otherwise:
        raise _TourFileError(tr("{place}: a step with figures requires “otherwise”.").format(place=location))


def _placeholders(text: str, location: str) -> set[str]:
    try:
        return placeholders(text)
    except ValueError:
        raise _TourFileError(
            tr("{place}: unmatched brace in “{text}”.").format(place=location, text=truncate_name(text))
        ) from None


def placeholders(text: str) -> set[str]:
    """Return the names of the placeholders."""
    return {name for _, name, _, _ in Formatter().parse(text) if name}


def _at(location: str, cause: str) -> str:
    """Put the part of the file in front of a cause; `location` is empty for the file itself."""
    return f"{location}: {cause}" if location else cause


def _check_keys(table: Mapping[str, Any], known_names: Iterable[str], location: str) -> None:
    for key, value in table.items():
        if key not in known_names:
            unknown_key = tr("unknown key “{key}”.").format(key=truncate_name(key))
            raise _TourFileError(_at(location, f"{unknown_key}{did_you_mean(key, known_names)}"))
        kind = _KINDS.get(key, str)
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            wrong_type = tr("wrong type for “{key}”: {value}.").format(key=key, value=truncate_name(str(value)))
            raise _TourFileError(_at(location, wrong_type))


def _text(table: Mapping[str, Any], key: str, location: str) -> str:
    value = table.get(key)
    if not isinstance(value, str) or not value:
        raise _TourFileError(_at(location, tr("the key “{key}” is missing.").format(key=key)))
    return value


def _table(data: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = data.get(key)
    if not isinstance(value, dict) or not value:
        raise _TourFileError(tr("the key “{key}” is missing.").format(key=key))
    return value


def _known_name(table: Mapping[str, Any], key: str, known_names: Iterable[str], location: str) -> str:
    name = _text(table, key, location)
    names = list(known_names)
    if name not in names:
        raise _TourFileError(f"{location}: {unknown_name_message(key, name, names)}")
    return name


def _values(table: Mapping[str, Any], key: str, parameters: Sequence[Parameter], location: str) -> Mapping[str, Any]:
    """Read settings and check that their editors can show them."""
    known = {parameter.name: parameter for parameter in parameters}
    given: Mapping[str, Any] = table.get(key, {})
    for name, value in given.items():
        if name not in known:
            raise _TourFileError(f"{location}: {unknown_name_message('setting', name, known)}")
        if reason := setting_values.invalid_reason(known[name], value):
            raise _TourFileError(f"{location}: {reason}")
    return given
