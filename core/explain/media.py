"""What stands where a model reads a sound or a picture: named as a whole, and position by position."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from resources.language import mark, tr, trn

if TYPE_CHECKING:
    from core.events import MediumRead
    from core.events.run import MediumPlace


def medium_label(medium: MediumRead) -> str:
    """`picture 3 × 3 patches`, `sound 0.0–4.0 s`."""
    if medium.kind == "sound":
        return tr("sound {begin:.1f}–{end:.1f} s").format(begin=0.0, end=medium.seconds)
    if medium.rows:
        return tr("picture {rows} × {columns} patches").format(rows=medium.rows, columns=medium.columns)
    count = medium.last - medium.first + 1
    return trn("picture, {count:,} position", "picture, {count:,} positions", count).format(count=count)


_PLACES: dict[MediumPlace, str] = {
    "prompt": mark("It stands in the prompt, as {count:,} of its tokens."),
    "before": mark("It is read before the prompt's first token, as {count:,} positions that the text follows on."),
    "encoder": mark(
        "An encoder makes {count:,} positions of it, once; every token that is written looks at all of them."
    ),
}


def medium_sentence(medium: MediumRead) -> str:
    """How the model reads it, and as how many positions."""
    return tr(_PLACES[medium.place]).format(count=medium.last - medium.first + 1)


def medium_part(medium: MediumRead, position: int) -> str:
    """What one of its positions stands for: `row 2, column 3 of girl.png`, `0.04–0.06 s of hello.wav`."""
    name = Path(medium.path).name
    match medium_place(medium, position):
        case ("patch", row, column):
            return tr("row {row}, column {column} of {file}").format(row=row + 1, column=column + 1, file=name)
        case ("seconds", begin, end):
            return tr("{begin:.2f}–{end:.2f} s of {file}").format(begin=begin, end=end, file=name)
    return tr("a part of {file}").format(file=name)


def medium_place(
    medium: MediumRead, position: int
) -> tuple[Literal["patch"], int, int] | tuple[Literal["seconds"], float, float] | None:
    """Row and column of the patch, counted from 0, or the seconds that a position stands for; None where it stands for
    the whole (a summary, a mark between patches) or that is not known."""
    offset, count = position - medium.first, medium.last - medium.first + 1
    if not 0 <= offset < count:
        return None
    if medium.kind == "sound" and medium.heard:
        return ("seconds", medium.heard * offset / count, medium.heard * (offset + 1) / count)
    patch = offset - (count - medium.rows * medium.columns)  # what is more than patches stands before them
    return ("patch", *divmod(patch, medium.columns)) if medium.columns and patch >= 0 else None
