"""Records of what a class did in its lessons, in a file of the data folder; and the printable sheet made of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields
from html import escape
from pathlib import Path
from typing import Any

from decodescope.app.features.tours.state import Lesson
from decodescope.app.state.room_votes import LETTERS
from decodescope.app.storage.json_files import StorageError, UnreadableError, read_object, write_json
from decodescope.resources.language import current_language, join_sentences, tr, trc

FILE = "lessons.json"
MAX_TOKENS, MAX_TEXT = 44, 420
"""Tokens and characters of a run on the sheet, so that a lesson fits on one page."""
MAX_ROOM_QUESTIONS = 12
"""Questions of the guessing game on the sheet; the latest are kept."""


@dataclass
class LessonRun:
    """A run of a lesson: its settings in words, its prompt, and its tokens with their probabilities as text."""

    settings: str = ""
    prompt: str = ""
    tokens: list[list[str]] = field(default_factory=list)
    text: str = ""


@dataclass
class GuessRecord:
    """A guess: the choices, the votes, the model's probabilities as text (empty where it gives none), the answer."""

    question: str = ""
    choices: list[str] = field(default_factory=list)
    votes: list[int] = field(default_factory=list)
    is_room: bool = False
    shares: list[str] = field(default_factory=list)
    answer: int = -1
    """Index of the right choice; −1 if none is right."""
    before: str = ""
    """End of the text before the word, for the guessing game."""


@dataclass
class LessonRecord:
    """Record of what a class did in one lesson."""

    is_done: bool = False
    guess: GuessRecord = field(default_factory=GuessRecord)
    runs: list[LessonRun] = field(default_factory=list)
    sentences: list[str] = field(default_factory=list)
    """The explanations, true for these runs."""
    picture: str = ""
    """PNG in base64."""


class ClassRecords:
    """The records of all lessons, and the questions of the guessing game that a room has answered."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.lessons: dict[str, LessonRecord] = {}
        self.room: list[GuessRecord] = []
        self._load()

    @property
    def done(self) -> set[str]:
        """Names of the finished lessons."""
        return {name for name, record in self.lessons.items() if record.is_done}

    @property
    def has_runs(self) -> bool:
        """Whether there is something for a sheet."""
        return bool(self.room) or any(record.runs for record in self.lessons.values())

    def begin(self, name: str) -> LessonRecord:
        """Return a new record of a lesson; it stays done if it was."""
        before = self.lessons.get(name)
        self.lessons[name] = LessonRecord(is_done=before is not None and before.is_done)
        return self.lessons[name]

    def clear(self) -> None:
        """Forget everything. Raises StorageError."""
        self.lessons, self.room = {}, []
        self.save()

    def save(self) -> None:
        """Write the file. Raises StorageError."""
        data = {
            "lessons": {name: asdict(record) for name, record in self.lessons.items()},
            "room": [asdict(record) for record in self.room[-MAX_ROOM_QUESTIONS:]],
        }
        write_json(self._path, data)

    def _load(self) -> None:
        """Read the file; a damaged one counts as none."""
        try:
            data = read_object(self._path)
            lessons = data.get("lessons", {})
            self.lessons = {str(name): _read_record(entry) for name, entry in lessons.items()}
            self.room = [_read(GuessRecord, entry) for entry in data.get("room", [])]
        except (OSError, UnreadableError, StorageError, TypeError, AttributeError, ValueError):
            self.lessons, self.room = {}, []


def _read(kind: type[Any], data: dict[str, Any]) -> Any:
    """Return a record with the known keys of `data`. Raises TypeError if one has another type than its default."""
    record = kind()
    for entry in fields(kind):
        if entry.name in data:
            if type(data[entry.name]) is not type(getattr(record, entry.name)):
                raise TypeError(entry.name)
            setattr(record, entry.name, data[entry.name])
    return record


def _read_record(data: dict[str, Any]) -> LessonRecord:
    plain = {name: value for name, value in data.items() if name not in ("guess", "runs")}
    record: LessonRecord = _read(LessonRecord, plain)
    record.guess = _read(GuessRecord, data.get("guess", {}))
    record.runs = [_read(LessonRun, entry) for entry in data.get("runs", [])]
    return record


# The sheet

_STYLE = """
@page { size: A4; margin: 14mm 16mm; }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 178mm; color: #000; background: #fff; font: 10.5pt/1.4 Inter, "Noto Sans SC",
  "Segoe UI", "PingFang SC", "Microsoft YaHei", sans-serif; }
section { display: flex; flex-direction: column; height: 267mm; overflow: hidden; break-after: page; }
section.teacher { display: block; height: auto; overflow: visible; }
section:last-child { break-after: auto; }
header { display: flex; justify-content: space-between; border-bottom: 1.5pt solid #000; padding-bottom: 2mm; }
header span { color: #333; }
h1 { font-size: 15pt; line-height: 1.2; margin: 3mm 0 1mm; }
h2 { font-size: 11pt; margin: 3.5mm 0 1mm; }
p { margin: 0 0 1.5mm; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
td, th { border-bottom: .5pt solid #999; padding: .8mm 2mm; text-align: left; font-weight: normal; }
th { font-weight: 600; }
td.n, th.n { text-align: right; white-space: nowrap; }
td.bar { width: 34mm; }
td.bar i { display: block; height: 3.2mm; border: .8pt solid #000;
  background: repeating-linear-gradient(45deg, #000 0 .6pt, #fff .6pt 3pt); print-color-adjust: exact; }
tr.right td { font-weight: 600; }
.text { border-left: 2pt solid #000; padding-left: 3mm; overflow-wrap: anywhere; }
.text b { font-weight: normal; border: .5pt solid #777; border-radius: 1mm; padding: 0 .5mm; margin-right: .3mm;
  white-space: pre-wrap; display: inline-block; line-height: 1.25; }
.prompt { color: #333; font-style: italic; }
.small { font-size: smaller; color: #333; }
img { display: block; max-width: 100%; max-height: 62mm; margin: 1.5mm auto; border: .5pt solid #999; }
.lines { flex: 1 1 0; min-height: 16mm; overflow: hidden; }
.lines i { display: block; height: 8mm; border-bottom: .5pt solid #777; }
.teacher h2 { break-after: avoid; }
.teacher article { break-inside: avoid; margin-bottom: 4mm; }
@media screen { section { margin: 10mm 0; } }
"""


def make_sheet(lessons: Sequence[Lesson], records: ClassRecords) -> str:
    """Return the sheet as one HTML page: a printed page for each lesson with runs, one for the guessing game, and the
    teacher's answers on pages of their own.
    """
    shown = [(number, lesson) for number, lesson in enumerate(lessons, 1) if _has_runs(records, lesson)]
    pages = [_lesson_page(number, lesson, records.lessons[lesson.name]) for number, lesson in shown]
    if records.room:
        pages.append(_room_page(records.room))
    if shown:
        pages.append(_answers_page(shown, records))
    title = escape(tr("Lessons about language models"))
    return (
        f'<!DOCTYPE html>\n<html lang="{current_language().replace("_", "-")}">\n<head><meta charset="utf-8">'
        f"<title>{title}</title><style>{_STYLE}</style></head>\n<body>\n{''.join(pages)}</body>\n</html>\n"
    )


def _has_runs(records: ClassRecords, lesson: Lesson) -> bool:
    return lesson.name in records.lessons and bool(records.lessons[lesson.name].runs)


def _header(left: str) -> str:
    blanks = f"{escape(trc('of a pupil', 'Name'))} ____________________  {escape(tr('Date'))} __________"
    return f"<header><strong>{escape(left)}</strong><span>{blanks}</span></header>"


def _lesson_page(number: int, lesson: Lesson, record: LessonRecord) -> str:
    parts = [
        _header(tr("Lesson {number}").format(number=number)),
        f"<h1>{escape(tr(lesson.title))}</h1><p>{escape(tr(lesson.question))}</p>",
        f"<h2>{escape(_guess_title(record.guess))}</h2><p>{escape(record.guess.question)}</p>",
        _guess_table(record.guess),
        f"<h2>{escape(tr('Our runs'))}</h2>",
        *(_run_text(run, is_cut=n == 0) for n, run in enumerate(record.runs)),
    ]
    if record.picture:
        alt = escape(tr("The window after the first run"))
        parts.append(f'<img alt="{alt}" src="data:image/png;base64,{record.picture}">')
    for n, home in enumerate(lesson.home, 1):
        parts.append(f"<h2>{n}. {escape(tr(home.question))}</h2>{_lines()}")
    return f"<section>{''.join(parts)}</section>\n"


def _guess_title(guess: GuessRecord) -> str:
    if not guess.votes:
        return tr("The question")
    return tr("What we guessed") if guess.is_room else tr("My guess")


def _guess_table(guess: GuessRecord) -> str:
    """Return the choices with the hands or the guess, and the model beside them."""
    total = sum(guess.votes)
    own = tr("Hands") if guess.is_room else tr("Guess")
    heads = [("", "")] + ([("n", own)] if total else []) + ([("", "")] if total and guess.is_room else [])
    heads += [("n", tr("Model"))] if guess.shares else []
    rows = [f"<tr>{''.join(f'<th class={name!r}>{escape(text)}</th>' for name, text in heads)}</tr>"]
    for n, choice in enumerate(guess.choices):
        mark = " ✓" if n == guess.answer else ""
        cells = [f"<td>{LETTERS[n]}&ensp;{escape(choice)}{mark}</td>"]
        if total:
            votes = guess.votes[n]
            cells.append(f'<td class="n">{votes if guess.is_room else "●" if votes else ""}</td>')
            if guess.is_room:
                bar = f'<i style="width:{100 * votes / total:.0f}%"></i>' if votes else ""
                cells.append(f'<td class="bar">{bar}</td>')
        if guess.shares:
            cells.append(f'<td class="n">{escape(guess.shares[n])}</td>')
        rows.append(f"<tr{' class=right' if n == guess.answer else ''}>{''.join(cells)}</tr>")
    return f"<table>{''.join(rows)}</table>"


def _run_text(run: LessonRun, is_cut: bool) -> str:
    """Return a run: its settings, its prompt, and its text, cut into tokens or not."""
    if is_cut:
        written = "".join(f"<b>{escape(piece) or '∅'}</b>" for piece, _share in run.tokens[:MAX_TOKENS])
        written += " …" if len(run.tokens) > MAX_TOKENS else ""
    else:
        written = escape(run.text[:MAX_TEXT]) + ("…" if len(run.text) > MAX_TEXT else "")
    return (
        f'<p class="small">{escape(run.settings)}</p>'
        f'<p class="text"><span class="prompt">{escape(run.prompt)}</span>{written}</p>'
    )


def _lines() -> str:
    return f'<div class="lines">{"<i></i>" * 12}</div>'


def _room_page(room: Sequence[GuessRecord]) -> str:
    """Return a page with the questions of the guessing game."""
    parts = [_header(tr("Guess first")), f"<h1>{escape(tr('The room and the model'))}</h1>"]
    for record in room[-4:]:
        before = record.before[-120:]
        parts.append(f'<p class="text">{"…" if len(record.before) > 120 else ""}{escape(before)} ____</p>')
        parts.append(_guess_table(record))
    parts.append(f"<h2>{escape(tr('Where did we know better than the model, and why?'))}</h2>{_lines()}")
    return f"<section>{''.join(parts)}</section>\n"


def _answers_page(shown: Sequence[tuple[int, Lesson]], records: ClassRecords) -> str:
    """Return the teacher's pages: the right choices, what the runs showed, and answers to the questions."""
    title = escape(tr("For the teacher: answers"))
    parts = [f"<header><strong>{title}</strong></header>"]
    for number, lesson in shown:
        record = records.lessons[lesson.name]
        right = record.guess.answer
        answer = (
            f"{LETTERS[right]}  {record.guess.choices[right]}"
            if 0 <= right < len(record.guess.choices)
            else tr("None of the four was right in this run.")
        )
        home = "".join(f"<p><strong>{n}.</strong> {escape(tr(one.answer))}</p>" for n, one in enumerate(lesson.home, 1))
        parts.append(
            f"<article><h2>{number}. {escape(tr(lesson.title))}</h2><p><strong>{escape(record.guess.question)}"
            f"</strong> {escape(answer)}</p><p>{escape(join_sentences(*record.sentences))}</p>{home}</article>"
        )
    return f'<section class="teacher">{"".join(parts)}</section>\n'
