"""A study: runs of many prompts, settings, seeds and models, their measures, and what they show.

study = decodescope.Study("study.toml")
study.run()
print(study.summary().as_text())
study.write_report("study.html")
"""

from __future__ import annotations

import hashlib
import json
import math
import threading
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from decodescope.core.checks.arguments import check_kind, check_path
from decodescope.core.common.csv_text import to_csv
from decodescope.core.errors import DecodescopeError, StudyError
from decodescope.core.parameter import short_repr
from decodescope.core.studies import statistics
from decodescope.core.studies.runner import StudyProgress, StudyRunner, StudyStore, describe_result
from decodescope.core.studies.statistics import MeanEstimate
from decodescope.core.studies.study_file import StudyPlan, label_of, plan_jobs, read_study
from decodescope.core.studies.study_summary import CellSummary, PilotEstimate, StudySummary
from decodescope.core.studies.text_measures import (
    Row,
    StudyMeasure,
    default_measures,
    extract_answer,
    normalized,
)
from decodescope.core.system.file_writing import save_text
from decodescope.resources.language import join_names, tr, trn

if TYPE_CHECKING:
    import pandas as pd

    from decodescope.core.events import RunStarted

PILOT_PROMPTS, PILOT_SEEDS = 8, 2
"""Size of a pilot run."""
_RESERVED = ("prompt", "prompt_id", "answer", "seed")
"""Factors of `Study.add` that describe the run instead of its cell."""


class Study:
    """A study with its results in a folder. Raises StudyError for an unusable file or folder.

    `path`: the TOML file; None for a study that only consists of added runs. `folder`: by default, the file's name
    without its ending and with `-results`. A context manager that closes the folder; reading needs no lock.
    """

    def __init__(
        self, path: str | PathLike[str] | None = None, folder: str | PathLike[str] | None = None,
        *, load: Callable[..., Any] | None = None,
    ) -> None:  # fmt: skip
        if path is None and folder is None:
            raise StudyError(tr("The study has neither a file nor a folder."), tr("Pass a TOML file, or folder=."))
        for name, value in (("path", path), ("folder", folder)):
            if value is not None:
                check_path(name, value)
        self.plan = read_study(Path(path)) if path is not None else StudyPlan(measures=default_measures(False))
        self.folder = Path(folder) if folder is not None else Path(str(path)).with_suffix("").with_name(
            f"{Path(str(path)).stem}-results"
        )  # fmt: skip
        self._load = load
        self._store = StudyStore(self.folder, writes=False)
        self._is_writing = False

    @classmethod
    def from_plan(cls, plan: StudyPlan, folder: str | PathLike[str], *, load: Callable[..., Any] | None = None) -> Self:
        """Return a study of a plan that was read or made elsewhere."""
        study = cls(None, folder, load=load)
        study.plan = plan
        return study

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Study: {self.plan.title or self.folder.name}, {len(self._store.results):,} runs in {self.folder}>"

    def close(self) -> None:
        """Let other processes write to the folder."""
        self._store.close()
        self._is_writing = False

    def _open_for_writing(self) -> StudyStore:
        if not self._is_writing:
            self._store = StudyStore(self.folder)
            self._is_writing = True
        return self._store

    # --- runs

    def run(
        self,
        progress: Callable[[StudyProgress], None] | None = None,
        cancel: threading.Event | None = None,
        *,
        pilot: bool = False,
        uses_plugins: bool = False,
    ) -> Self:
        """Run what is missing, and measure the texts by other models. `pilot`: only the first eight prompts with two
        seeds; the whole study uses their results. `cancel` stops it; finished runs are kept. Raises StudyError, or the
        errors of a model that cannot be loaded. A run that fails is stored with its error, and repeated next time.
        """
        check_kind("pilot", pilot, bool, tr("Pass True or False."))
        store, cancel = self._open_for_writing(), cancel or threading.Event()
        runner = StudyRunner(
            store,
            self._load or _load_model,
            self.plan.records,
            progress or (lambda _progress: None),
            cancel,
            uses_plugins,
        )
        runner.run(plan_jobs(self._pilot_plan() if pilot else self.plan))
        if not cancel.is_set():
            self._judge(cancel)
        return self

    def _pilot_plan(self) -> StudyPlan:
        return replace(self.plan, prompts=self.plan.prompts[:PILOT_PROMPTS], seeds=self.plan.seeds[:PILOT_SEEDS])

    def _judge(self, cancel: threading.Event) -> None:
        """Measure the texts by the probabilities of other models."""
        store = self._store
        for judge in dict.fromkeys(measure.judge for measure in self.plan.measures if measure.judge):
            waiting = [
                row for row in self._plain_rows() if (row["text_number"], judge) not in store.judged.get(row["key"], {})
            ]
            if not waiting:
                continue
            from decodescope.core.generation.batches import score_many

            model = (self._load or _load_model)(judge)
            for row in waiting:
                if cancel.is_set():
                    return
                value, problem = None, ""
                if row["text"]:
                    try:
                        (scored,) = score_many(model, [row["text"]], 0, given=[row["prompt"]])
                        logs = [token.raw_log_probability for token in scored]
                        value = math.fsum(logs) / len(logs) if logs else None
                        value = None if value is not None and math.isnan(value) else value
                    except DecodescopeError as error:
                        problem = str(error)
                store.add_judged(row["key"], row["text_number"], judge, value, problem)

    def add(self, captured: object, factors: Mapping[str, object]) -> Self:
        """Add runs of other code: a `Capture`, a run of it, a `Result`, or several of them. `factors` describe their
        cell; the names prompt, prompt_id, answer and seed describe the run instead. A run that was added before is not
        added again. A prompt that the study has too gets its id and right answers. Raises StudyError.
        """
        given: object = factors
        if not isinstance(given, Mapping) or not all(isinstance(name, str) for name in given):
            raise StudyError(
                tr("The factors are {value}.").format(value=short_repr(factors)),
                tr('Pass a mapping of names to values, such as {{"temperature": 0.7}}.').format(),
            )
        runs = _runs_of(captured)
        store = self._open_for_writing()
        own = {name: value for name, value in factors.items() if name not in _RESERVED}
        for run in runs:
            entry = self._added_entry(run, own, factors)
            if entry["key"] not in store.results:
                store.add(entry)
        return self

    def _added_entry(self, run: Any, own: Mapping[str, object], factors: Mapping[str, object]) -> dict[str, Any]:
        from decodescope.core.events import RunStarted

        started = next((event for event in run.events if isinstance(event, RunStarted)), None)
        found, problems = describe_result(run.events)
        prompt = str(factors.get("prompt") or _prompt_text(started))
        known = next(
            (one for cell in self.plan.cells for one in self.plan.prompts if self.plan.prompt_of(cell, one) == prompt),
            None,
        )
        answer = factors.get("answer")
        answers = [str(one) for one in answer] if isinstance(answer, list | tuple) else [str(answer)] if answer else []
        digest = hashlib.sha256(prompt.encode("utf-8", "replace")).hexdigest()[:12]
        seed = factors.get("seed", started.seed if started else 0)
        content = json.dumps(
            [getattr(run, "id", ""), own, prompt, seed, found.get("texts")], sort_keys=True, default=str
        )
        failure = getattr(run, "failure", None)
        return {
            **found,
            "key": f"added-{hashlib.sha256(content.encode()).hexdigest()[:20]}",
            "is_added": True,
            "cell": {
                name: value if isinstance(value, str | int | float) else str(value) for name, value in own.items()
            },
            "model": found.get("model_name", ""),
            "cache_choice": found.get("cache", ""),
            "prompt": prompt,
            "prompt_id": str(factors.get("prompt_id") or (known.id if known else digest)),
            "answers": answers or (list(known.answers) if known else []),
            "seed": seed if isinstance(seed, int) else str(seed),
            **({"measure_errors": problems} if problems else {}),
            **({"error": f"{type(failure).__name__}: {failure}"} if failure is not None else {}),
        }

    # --- rows

    def _entries(self) -> Iterator[dict[str, Any]]:
        """Yield the results that belong to the study as its file is now, then added ones."""
        answers = {prompt.id: list(prompt.answers) for prompt in self.plan.prompts}
        seen = set[str]()
        for job in plan_jobs(self.plan):
            found = self._store.results.get(job.key)
            if found is not None and job.key not in seen:
                seen.add(job.key)
                yield {**found, "cell": dict(job.cell.factors), "answers": answers[job.prompt.id]}
        for found in self._store.results.values():
            if found.get("is_added"):
                yield found

    def _plain_rows(self) -> Iterator[Row]:
        """Yield a row for each text, without measures."""
        for entry in self._entries():
            if entry.get("error"):
                continue
            texts, judged = entry.get("texts") or [], self._store.judged.get(entry["key"], {})
            shared = {name: value for name, value in entry.items() if name not in ("texts", "text")}
            answers = [normalized(answer, self.plan.ignore_case) for answer in entry.get("answers", [])]
            for number, text in enumerate(texts):
                content = text.get("text", "")
                extracted = extract_answer(content, self.plan.answer_pattern)
                yield {
                    "ids": [], "metrics": {}, "measures": {}, **shared, **text,
                    "text": content, "text_number": number, "answers": answers,
                    "cell_label": label_of(entry["cell"]),
                    "extracted": None if extracted is None else normalized(extracted, self.plan.ignore_case),
                    "compared_text": content.casefold() if self.plan.ignore_case else content,
                    "judged": {judge: value for (place, judge), value in judged.items() if place == number},
                }  # fmt: skip

    def rows(self) -> list[Row]:
        """Return a row for each text: what is stored about it, `cell` (its factors), and `values` of the study's
        measures by name.
        """
        rows = list(self._plain_rows())
        for row in rows:
            row["values"] = {one.name: one.compute(row) for one in self.plan.measures if one.of_group is None}
        for measure in self.plan.measures:
            if measure.of_group is not None:
                self._measure_groups(measure, rows)
        return rows

    def _measure_groups(self, measure: StudyMeasure, rows: Sequence[Row]) -> None:
        """Compute a measure that depends on the other texts of a prompt and on their number: only for groups as large
        as the usual one.
        """
        assert measure.of_group is not None
        groups: dict[tuple[str, str], list[Row]] = {}
        for row in rows:
            groups.setdefault((row["cell_label"], row["prompt_id"]), []).append(row)
        sizes = [len(group) for group in groups.values()]
        usual = max(set(sizes), key=lambda size: (sizes.count(size), size), default=0)
        for group in groups.values():
            values = measure.of_group(group) if len(group) == usual else [None] * len(group)
            for row, value in zip(group, values, strict=True):
                row["values"][measure.name] = value

    def table(self) -> list[list[object]]:
        """Return the rows as a table, the first row with the names of the columns."""
        rows = self.rows()
        factors = list(dict.fromkeys(name for row in rows for name in row["cell"]))
        settings = [
            name for name in dict.fromkeys(n for row in rows for n in row.get("settings", {})) if name not in factors
        ]
        metrics = list(dict.fromkeys(name for row in rows for name in row["metrics"]))
        names = [one.name for one in self.plan.measures]
        head = ["prompt_id", "prompt", "answers", *factors, "model", "cache", "strategy", "seed", "text_number", "text",
                "extracted", "finish", "error", *names]  # fmt: skip
        renamed = {name: f"{name} (run)" if name in (*head, *factors) else name for name in (*settings, *metrics)}
        table: list[list[object]] = [[*head, *(renamed[name] for name in (*settings, *metrics))]]
        for row in rows:
            known = {
                **row, **row["cell"], "model": row.get("model", ""), "cache": row.get("cache_choice", ""),
                **row["values"],
            }  # fmt: skip
            known["answers"] = " | ".join(row["answers"])
            table.append([
                *(_cell(known.get(name)) for name in head),
                *(_cell(row.get("settings", {}).get(name)) for name in settings),
                *(_cell(row["metrics"].get(name)) for name in metrics),
            ])  # fmt: skip
        for entry in self._entries():
            if entry.get("error"):
                known = {**entry, **entry["cell"], "cache": entry.get("cache_choice", ""), "answers": ""}
                shown = [name if name not in names else "" for name in head]
                table.append([*(_cell(known.get(name)) for name in shown), *[""] * (len(settings) + len(metrics))])
        return table

    def to_dataframe(self) -> pd.DataFrame:
        """Return the rows as a pandas data frame. Raises ParameterError without pandas."""
        from decodescope.core.notebook.result_rows import make_dataframe

        head, *rows = self.table()
        return make_dataframe({str(name): [row[place] for row in rows] for place, name in enumerate(head)})

    def write_csv(self, path: str | PathLike[str], escape_formulas: bool = True) -> Path:
        """Write the rows as CSV and return the path. `escape_formulas`: put an apostrophe before texts that a
        spreadsheet would run. Raises FileNotWrittenError.
        """
        return _write(path, to_csv(self.table(), escape_formulas))

    def write_report(self, path: str | PathLike[str]) -> Path:
        """Write one HTML page with tables, plots, texts, the study's file and the identities of its models, and return
        the path. It needs no network and no other file. Raises FileNotWrittenError.
        """
        from decodescope.core.studies.study_report import report_text

        return _write(path, report_text(self.summary(), self.rows()))

    # --- results

    def failed_runs(self) -> list[Row]:
        """Return what is stored about the runs that failed, with `cell_label` and `error`."""
        return [{**entry, "cell_label": label_of(entry["cell"])} for entry in self._entries() if entry.get("error")]

    def summary(self, rows: Sequence[Row] | None = None) -> StudySummary:
        """Return estimates with intervals, differences to the baseline, and curves. `rows`: those of `rows()`, if they
        are known already.
        """
        rows, plan = self.rows() if rows is None else rows, self.plan
        labels: dict[str, Mapping[str, object]] = {cell.label: cell.factors for cell in plan.cells}
        for row in rows:
            labels.setdefault(row["cell_label"], row["cell"])
        by_cell: dict[str, list[Row]] = {label: [] for label in labels}
        for row in rows:
            by_cell[row["cell_label"]].append(row)
        failed = [entry["cell_label"] for entry in self.failed_runs()]
        baseline = plan.cells[plan.baseline].label if plan.baseline is not None else ""
        cells = [
            self._summarize_cell(
                label, labels[label], own, failed.count(label), by_cell.get(baseline) if label != baseline else None
            )
            for label, own in by_cell.items()
        ]
        return StudySummary(
            plan.title, plan.measures, tuple(self._adjust(cells)), baseline, tuple(self._notices(rows, cells)),
            plan.text, self._identities(),
        )  # fmt: skip

    def _summarize_cell(
        self,
        label: str,
        factors: Mapping[str, object],
        rows: Sequence[Row],
        failed: int,
        baseline: Sequence[Row] | None,
    ) -> CellSummary:
        values = {one.name: values_of(rows, one.name) for one in self.plan.measures}
        estimates = {name: statistics.estimate_mean(_without_seeds(own)) for name, own in values.items()}
        differences = (
            {name: statistics.difference(own, values_of(baseline, name)) for name, own in values.items()}
            if baseline is not None and any(baseline)
            else {}
        )
        prompts: dict[Hashable, list[Row]] = {}
        for row in rows:
            prompts.setdefault(row["prompt_id"], []).append(row)
        judged = {prompt: own for prompt, own in prompts.items() if own[0]["answers"]}
        correct = {prompt: [float(row["extracted"] in row["answers"]) for row in own] for prompt, own in judged.items()}
        several = {prompt: own for prompt, own in prompts.items() if len(own) > 1}
        answers = {prompt: [row["extracted"] for row in own] for prompt, own in judged.items()}
        right = {prompt: own[0]["answers"] for prompt, own in judged.items()}
        return CellSummary(
            label, factors, len(rows), len(prompts), failed, estimates, differences,
            pass_at_k=statistics.curve(
                correct, lambda prompt, k: statistics.pass_at_k(len(correct[prompt]), int(sum(correct[prompt])), k)
            ),
            best_of_k=self._best_of_curve(judged, correct),
            majority=statistics.vote_accuracy(answers, right),
            votes={
                str(prompt): statistics.majority([row["extracted"] for row in own], own[0]["answers"] or None)
                for prompt, own in several.items()
                if self.plan.answer_pattern or own[0]["answers"]
            },
        )  # fmt: skip

    def _best_of_curve(
        self, judged: Mapping[Hashable, Sequence[Row]], correct: Mapping[Hashable, Sequence[float]]
    ) -> Sequence[tuple[int, MeanEstimate]]:
        name = self.plan.best_of
        if not name:
            return ()
        scores = {
            prompt: [row["values"].get(name) for row in own]
            for prompt, own in judged.items()
            if all(row["values"].get(name) is not None for row in own)
        }
        return statistics.curve(
            {prompt: correct[prompt] for prompt in scores},
            lambda prompt, k: statistics.best_of_k(scores[prompt], correct[prompt], k),
        )

    def _adjust(self, cells: Sequence[CellSummary]) -> list[CellSummary]:
        """Return the cells with p-values adjusted by Holm over all cells, for each measure."""
        differences = [dict(cell.differences) for cell in cells]
        for measure in self.plan.measures:
            found = [one.get(measure.name) for one in differences]
            adjusted = statistics.holm([one.p if one is not None else None for one in found])
            for own, one, p in zip(differences, found, adjusted, strict=True):
                if one is not None:
                    own[measure.name] = replace(one, adjusted_p=p)
        return [replace(cell, differences=own) for cell, own in zip(cells, differences, strict=True)]

    def _notices(self, rows: Sequence[Row], cells: Sequence[CellSummary]) -> Iterator[str]:
        if failed := sum(cell.failed for cell in cells):
            yield trn(
                "{count} run failed; start again to repeat it.",
                "{count} runs failed; start again to repeat them.",
                failed,
            ).format(count=failed)
        prompts = {row["prompt_id"] for row in rows}
        if rows and len(prompts) < statistics.MIN_PROMPTS:
            yield trn(
                "With {count} prompt there are no intervals: they need {least}.",
                "With {count} prompts there are no intervals: they need {least}.",
                len(prompts),
            ).format(count=len(prompts), least=statistics.MIN_PROMPTS)
        for measure in self.plan.measures:
            missing = [row for row in rows if row["values"].get(measure.name) is None]
            if measure.of_group is not None and missing:
                yield tr("{measure}: only prompts with an equal number of texts, at least two, have a value.").format(
                    measure=measure.name
                )
            elif missing and len(missing) == len(rows):
                yield tr("{measure}: no text has a value.").format(measure=measure.name)
        names: dict[str, set[str]] = {}
        for row in rows:
            if row.get("address"):
                names.setdefault(row["model"], set()).add(row.get("model_name", ""))
        for model, own in names.items():
            if len(own) > 1:
                yield tr("The engines of {model} report different models: {names}.").format(
                    model=model, names=join_names(sorted(own))
                )
        done = sum(1 for entry in self._entries() if not entry.get("error"))
        if not done:
            yield tr("There are no results yet.")

    def _identities(self) -> dict[str, dict[str, object]]:
        found: dict[str, dict[str, object]] = {}
        for entry in self._entries():
            name = entry.get("model", "")
            place = entry.get("address", "")
            own = found.setdefault(f"{name} ({place})" if place else name, {})
            own.update(entry.get("identity") or {})
            own.update({key: entry[key] for key in ("engine", "device", "weights") if entry.get(key)})
        return found

    def pilot_estimate(self, summary: StudySummary | None = None) -> PilotEstimate:
        """Return how long the rest takes, and how many prompts give intervals of a certain width. Uses all results.
        `summary`: that of `summary()`, if it is known already.
        """
        entries = [entry for entry in self._entries() if not entry.get("is_added")]
        done = {entry["key"]: entry for entry in entries if not entry.get("error")}
        known = {entry.get("group"): bool(entry.get("uses_seed", True)) for entry in done.values()}
        by_cell: dict[str, list[float]] = {}
        random_cells: dict[str, bool] = {}
        for entry in done.values():
            label = label_of(entry["cell"])
            by_cell.setdefault(label, []).append(float((entry.get("metrics") or {}).get("seconds") or 0.0))
            random_cells[label] = random_cells.get(label, False) or bool(entry.get("uses_seed", True))
        every = [seconds for own in by_cell.values() for seconds in own]
        usual = math.fsum(every) / len(every) if every else 0.0
        left, seconds_left, seen = 0, 0.0, set[str]()
        for job in plan_jobs(self.plan):
            label, group = job.cell.label, job.group
            if job.key in done or known.get(group) is False:
                continue
            if not random_cells.get(label, True) and group in seen:
                continue
            seen.add(group)
            left += 1
            own = by_cell.get(label)
            seconds = math.fsum(own) / len(own) if own else usual
            model = job.cell.model
            seconds_left += seconds / (len(model.engines) * model.in_flight if model.engines else 1)
        return PilotEstimate(
            left, seconds_left if every else None, self._prompts_for_precision(summary or self.summary())
        )

    def _prompts_for_precision(self, summary: StudySummary) -> dict[str, dict[float, int]]:
        found: dict[str, dict[float, int]] = {}
        for measure in self.plan.measures:
            estimates = [
                *(cell.estimates.get(measure.name) for cell in summary.cells),
                *(one.estimate for cell in summary.cells if (one := cell.differences.get(measure.name)) is not None),
            ]
            deviations = [one.deviation for one in estimates if one is not None and one.deviation is not None]
            if not deviations or not (largest := max(deviations)):
                continue
            wanted = self.plan.precision.get(measure.name)
            widths = [wanted] if wanted else [_rounded(largest / 2), _rounded(largest / 5)]
            found[measure.name] = {width: statistics.prompts_for_half_width(largest, width) for width in widths}
        return found


def values_of(rows: Sequence[Row] | None, name: str) -> dict[Hashable, dict[Hashable, float]]:
    """Return the values of a measure by prompt and by seed and number of the text."""
    found: dict[Hashable, dict[Hashable, float]] = {}
    for row in rows or ():
        value = row["values"].get(name)
        if value is not None and math.isfinite(value):
            own = found.setdefault(row["prompt_id"], {})
            pair: Hashable = (row["seed"], row["text_number"])
            own[pair if pair not in own else (row["key"], row["text_number"])] = float(value)
    return found


def _without_seeds(values: Mapping[Hashable, Mapping[Hashable, float]]) -> dict[Hashable, list[float]]:
    return {prompt: list(own.values()) for prompt, own in values.items()}


def _rounded(value: float) -> float:
    """Return a number with one significant digit."""
    return float(f"{value:.0e}")


def _cell(value: object) -> object:
    if isinstance(value, list | dict):
        return json.dumps(value, ensure_ascii=False)
    return "" if value is None else value


def _prompt_text(started: RunStarted | None) -> str:
    """Return the prompt of a run without its special tokens."""
    return "".join(token.text for token in started.prompt if not token.special) if started is not None else ""


def _runs_of(captured: object) -> list[Any]:
    runs = getattr(captured, "runs", captured)
    runs = list(runs) if isinstance(runs, Sequence) and not isinstance(runs, str) else [runs]
    for run in runs:
        if not hasattr(run, "events") or not hasattr(run, "texts"):
            raise StudyError(
                tr("The added run is {value}.").format(value=short_repr(captured)),
                tr("Pass what decodescope.capture or decodescope.run returned, or a list of it."),
            )
    return runs


def _load_model(name: str, **options: Any) -> Any:
    from decodescope.core.generation.loading import load

    return load(name, **options)


def _write(path: str | PathLike[str], text: str) -> Path:
    check_path("path", path)
    return save_text(text, Path(path))
