"""Format numbers and tokens for people: percentages, ordinals, sizes, names of tokens and reasons for endings."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from decodescope.core.explain.sentence import SentenceNumber
from decodescope.resources import depth
from decodescope.resources.language import join_sentences, mark, tr, trc, trn

if TYPE_CHECKING:
    from decodescope.core.events import Ending, MediumRead, SequenceFinished, TokenChosen

_ORDINALS = (
    "",
    mark("first"),
    mark("second"),
    mark("third"),
    mark("fourth"),
    mark("fifth"),
    mark("sixth"),
    mark("seventh"),
    mark("eighth"),
    mark("ninth"),
    mark("tenth"),
)
_ORDINAL_BY_DIGIT = {1: mark("{number}st"), 2: mark("{number}nd"), 3: mark("{number}rd")}
_OTHER_ORDINAL = mark("{number}th")
UNKNOWN = "–"
"""Shown for a value that a remote engine does not report (NaN, or rank 0)."""
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
_WHITESPACE_NAMES = {"\n": mark("a line break"), " ": mark("a space")}
_OTHER_WHITE, _EMPTY = mark("whitespace"), mark("an empty token")
# Control characters are invisible or end a line; show each as one visible character.
_VISIBLE = {code: 0x2400 + code for code in range(0x20) if code not in (0x09, 0x0A)}
_VISIBLE |= {0x7F: 0x2421, 0x85: 0x2424, 0x2028: 0x2424, 0x2029: 0x2424, 0x0D: 0x200B, 0xFFFC: 0xFFFD}
# Overrides and isolates would show the text around them in another order than that of its tokens.
_VISIBLE |= dict.fromkeys((*range(0x202A, 0x202F), *range(0x2066, 0x206A)), ord("↔"))
_CONTROL_TOKEN = re.compile(r"\s*(?:<[^\w/]*([\w/][^<>]*?)\W*>|\[([A-Z]{2,})\])\s*")


class EndingTexts(NamedTuple):
    """One reason for a text to end, worded for three uses; marked, so translate it through `tr` when shown."""

    brief: str
    """Next to a number of tokens: `34 tokens · time is up`."""
    line: str
    """Before `after 34 tokens`."""
    sentence: str
    """For a node that ends a text; without the full stop."""


ENDINGS: dict[Ending, EndingTexts] = {
    "eos": EndingTexts(mark("finished"), mark("EOS"), mark("The text ends here with an end token")),
    "length": EndingTexts(mark("length reached"), mark("length limit reached"), mark("The limit ends the text here")),
    "context": EndingTexts(
        mark("context full"), mark("context full"), mark("The model's context is full, so the text ends here")
    ),
    "time": EndingTexts(mark("time is up"), mark("time limit"), mark("The time limit ends the text here")),
    "stop_string": EndingTexts(mark("stop text"), mark("stop text"), mark("The text ends here, at a stop string")),
    "stopped": EndingTexts(mark("stopped"), mark("stopped"), mark("The text was stopped here")),
    "given": EndingTexts(mark("scored"), mark("scored to its end"), mark("The given text ends here")),
    "grammar": EndingTexts(
        mark("grammar complete"),
        mark("grammar complete"),
        mark("The text ends here because the grammar allows no more"),
    ),
}


_PLAIN_ENDINGS: dict[Ending, str] = {
    "length": mark("The text ends here because it has the requested length"),
    "context": mark("The text ends here because the model cannot read any more"),
    "time": mark("The text ends here because the time is up"),
    "stop_string": mark("The text ends here, at words set to end it"),
}


def ending_brief(finished: SequenceFinished) -> str:
    """Return why a text ended, briefly; mention an incomplete grammar."""
    brief = tr(ENDINGS[finished.reason].brief)
    return tr("{ending}, grammar incomplete").format(ending=brief) if finished.whole is False else brief


def ending(reason: Ending | None) -> str:
    """Return why a text ends, as a sentence without full stop, at the current level of detail and language."""
    if reason is None:
        return tr("The text ends here")
    usual = ENDINGS[reason].sentence
    return tr(depth.pick(_PLAIN_ENDINGS.get(reason, usual), usual, usual))


CERTAIN = 0.95
"""Probability above which sentences call the model nearly certain."""
_ROUNDED_TO_ALL = "≈ 100"
"""A probability of 1.0 that floating-point numbers rounded: other tokens have a little."""


def is_only_survivor(event: TokenChosen) -> bool:
    """Return whether processing left no other token, so that a final probability of 1 is exact."""
    return bool(event.funnel) and event.funnel[-1].survivors == 1


def percent_text(number: str) -> str:
    """Write a percentage as the language does: `31 %`, in Chinese `31%`."""
    return tr("{number} %").format(number=number)


def percent(share: float, below_text: str = "<", above_text: str = ">", is_exact: bool = False) -> str:
    """Format a probability as a rounded percentage: `0.314` → `31 %`, with more digits where it would round to 0 or
    100.

    `below_text` and `above_text` are the words for the ends, `< 0.001 %` and `> 99.99 %`. `is_exact`: 1.0 means all,
    as in a ratio of counts, and is no rounded probability.
    """
    value = share * 100
    if math.isnan(value):
        return UNKNOWN
    if value >= 100:
        return percent_text("100" if is_exact else _ROUNDED_TO_ALL)
    if value <= 0:
        return percent_text("0")
    if value < 0.001:
        return percent_text(f"{below_text} 0.001")
    if value >= 99.995:
        return percent_text(f"{above_text} 99.99")
    if value < 0.0995:
        return percent_text(f"{value:.3f}")
    if value < 0.995 or value > 99:
        return percent_text(f"{value:.2f}")
    return percent_text(f"{value:.1f}") if value < 9.95 else percent_text(f"{value:.0f}")


def brief_percent(share: float, is_exact: bool = False) -> str:
    """Format a rounded percentage for a table: `0.314` → `31 %`; never 100 for less, nor 0 for more. `is_exact` as for
    `percent`.
    """
    value = share * 100
    if math.isnan(value):
        return UNKNOWN
    if value >= 100:
        return percent_text("100" if is_exact else _ROUNDED_TO_ALL)
    if value <= 0:
        return percent_text("0")
    if 99.95 <= value < 100:
        return percent_text("> 99.9")
    if 99 < value < 100:
        return percent_text(f"{value:.1f}")
    if value >= 9.95:
        return percent_text(f"{value:.0f}")
    return percent_text(f"{value:.1f}") if value >= 0.05 else percent_text("< 0.1")


def thinking_share(thinking: int, tokens: int) -> str:
    """Return how many of an answer's tokens are thinking: `34 of 56 tokens (61 %)`."""
    return trn("{part:,} of {count:,} token ({share})", "{part:,} of {count:,} tokens ({share})", tokens).format(
        part=thinking, count=tokens, share=whole_percent(thinking / tokens)
    )


def whole_percent(share: float) -> str:
    """Format a rounded percentage for an axis or an average: `0.314` → `31 %`; never 100 for less, nor 0 for more."""
    value = share * 100
    if math.isnan(value):
        return UNKNOWN
    if 0 < value < 0.5:
        return percent_text("< 1")
    return percent_text("> 99") if 99.5 <= value < 100 else percent_text(f"{value:.0f}")


def compact_share(share: float) -> str:
    """Format a probability in three characters for a tree node: `.46`; `<.01`, `>.99` and `≈1` at the ends."""
    if math.isnan(share):
        return UNKNOWN
    if 0 < share < 0.005:
        return "<.01"
    if 0.995 <= share < 1:
        return ">.99"
    return "≈1" if share >= 1 else f"{max(share, 0):.2f}".removeprefix("0")


LONGEST_PERCENT = "> 99.9 %"
"""The longest text that `brief_percent` returns."""


def decimal(value: float, digits: int = 2) -> str:
    """Format a number with a real minus sign, or ±∞."""
    if math.isnan(value):
        return UNKNOWN
    text = f"{value:.{digits}f}" if math.isfinite(value) else "∞" if value > 0 else "-∞"
    return text.replace("-", "−")


def rank(number: int) -> str:
    """Format a rank: `1,024`; "–" for 0 (unknown)."""
    return f"{number:,}" if number else UNKNOWN


def ordinal(number: int) -> str:
    """Return an ordinal: first, second, … tenth, 11th, 22nd."""
    if 0 < number < len(_ORDINALS):
        return tr(_ORDINALS[number])
    further = _OTHER_ORDINAL if 10 <= number % 100 <= 20 else _ORDINAL_BY_DIGIT.get(number % 10, _OTHER_ORDINAL)
    return tr(further).format(number=f"{number:,}")


def count(number: int, noun: str) -> str:
    """Return a number with its noun: `1 token`, `1,024 tokens`; `noun` is one of `_COUNTED`."""
    return _COUNTED[noun](number).format(n=number)


_COUNTED: dict[str, Callable[[int], str]] = {
    "token": lambda n: trn("{n:,} token", "{n:,} tokens", n),
    "node": lambda n: trn("{n:,} node", "{n:,} nodes", n),
    "run": lambda n: trn("{n:,} run", "{n:,} runs", n),
    "step": lambda n: trn("{n:,} step", "{n:,} steps", n),
    "thread": lambda n: trn("{n:,} thread", "{n:,} threads", n),
}


def size(count: float) -> str:
    """Format bytes in binary units with at most four characters of number: `232 KiB`, `1.4 GiB`."""
    for unit in _UNITS:
        if count < 1024 or unit == _UNITS[-1]:
            break
        count /= 1024
    return f"{count:.{0 if unit == 'B' or count >= 100 else 1}f} {unit}"


def duration(seconds: float) -> str:
    """Format a duration: `24 ms`, `1.3 s`."""
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"


def rounded_duration(seconds: float) -> str:
    """Format an estimated duration of at least a second: `40 s`, `3 min`, `2 h 5 min`."""
    if round(seconds) < 60:
        return tr("{n} s").format(n=max(1, round(seconds)))
    minutes = round(seconds / 60)
    if minutes < 60:
        return tr("{n} min").format(n=minutes)
    return tr("{h} h {m} min").format(h=minutes // 60, m=minutes % 60)


def rate(tokens: float) -> str:
    """Format tokens per second: `118 tok/s`; one decimal below ten."""
    return tr("{number} tok/s").format(number=f"{tokens:,.0f}" if tokens >= 10 else f"{tokens:.1f}")


def magnitude(number: int) -> str:
    """Format a number of parameters: `5.7 M`, `1.2 B`."""
    for limit, unit in ((1_000_000_000, "B"), (1_000_000, "M"), (1_000, "K")):
        if number >= limit:
            share = number / limit
            return f"{share:.0f} {unit}" if share >= 100 else f"{share:.1f} {unit}"
    return str(number)


def visible(text: str) -> str:
    """Replace every control character of `text` by one visible character; the length is unchanged."""
    return text.translate(_VISIBLE)


def _named(piece: str) -> str:
    """Return a piece that can be read: one that is not drawn, as a joiner of emoji or a control character, is named
    `U+200D`, and a combining mark at the beginning stands on a dotted circle.
    """
    signs = piece.lstrip(" ")
    if signs and all(_is_unseen(sign) for sign in signs):
        return piece[: -len(signs)] + " ".join(f"U+{ord(sign):04X}" for sign in signs)
    return f"◌{piece}" if unicodedata.category(piece[:1] or " ") in ("Mn", "Me") else piece


def _is_unseen(sign: str) -> bool:
    is_selector = "\ufe00" <= sign <= "\ufe0f"
    return is_selector or (unicodedata.category(sign) in ("Cc", "Cf") and sign not in "\t\n\r")


_VISIBLE_WHITESPACE = str.maketrans({" ": "␣", "\n": "↵", "\t": "⇥", "\u00a0": "␣", "\u200b": "␍"})


def label(piece: str, special: bool | None = None) -> str:
    """Return a token as a readable label: ␣ for spaces, ↵ for line breaks, ⟨end⟩ for a control token.

    `special`: as in `control_name`.
    """
    name = control_name(piece, special)
    return f"⟨{name}⟩" if name else visible(_named(piece)).translate(_VISIBLE_WHITESPACE)


def control_name(piece: str, special: bool | None = None) -> str:
    """Return the bare name of a control token: `end` for `<|end|>`; empty for any other token.

    `special`: whether the tokenizer marks it as special. If unknown, the piece's form decides.
    """
    if special is False:
        return ""
    match = _CONTROL_TOKEN.fullmatch(piece)
    if match:
        return visible(match[1] or match[2])
    return visible(piece.strip()) if special else ""


def quote(piece: str, special: bool | None = None) -> str:
    """Return a token for use in a sentence: in quotation marks, `⟨end⟩` for a control token, whitespace by name.

    `special`: as in `control_name`.
    """
    if name := control_name(piece, special):
        return f"⟨{name}⟩"
    if word := piece.strip():
        return f"“{visible(_named(word))}”"
    return tr(_WHITESPACE_NAMES.get(piece, _OTHER_WHITE if piece else _EMPTY))


def quote_both(
    piece: str, other: str, special: bool | None = None, other_special: bool | None = None
) -> dict[str, str]:
    """Return the fields `name` and `other` of a sentence comparing two tokens, as `quote` returns them, with visible
    whitespace if they would look the same.
    """
    name, rival = quote(piece, special), quote(other, other_special)
    if name == rival and piece != other:
        name, rival = f"“{label(piece, special)}”", f"“{label(other, other_special)}”"
    return {"name": name, "other": rival}


_BASES = (10, 100, 1000)
_MIN_COUNT = 0.95
"""Smallest count for which a probability is given in tenths, hundredths or thousandths."""
_ABOUT = mark("about {count} in {base}")
_ALMOST_ALL = 0.995


def share(value: float, is_exact: bool = False) -> SentenceNumber:
    """Format a probability as a number in a sentence. `is_exact` as for `percent`."""
    if math.isnan(value):
        return SentenceNumber(UNKNOWN)
    if depth.current_depth() == depth.PLAIN:
        return SentenceNumber(_approximate_fraction(value, is_exact))
    if depth.current_depth() == depth.EXACT:
        return SentenceNumber("≈ 1" if value >= 1 and not is_exact else format_full(value))
    return SentenceNumber(percent(value, trc("share", "under"), trc("share", "over"), is_exact))


def final_share(event: TokenChosen) -> SentenceNumber:
    """Format a token's probability after processing as a number in a sentence."""
    return share(event.probability, is_only_survivor(event))


def final_percent(event: TokenChosen) -> str:
    """Format a token's probability after processing as `percent` does."""
    return percent(event.probability, is_exact=is_only_survivor(event))


def format_share_pair(one: float, other: float) -> tuple[SentenceNumber, SentenceNumber]:
    """Format two probabilities for comparison: if both would read the same in tenths, use hundredths."""
    first, second = share(one), share(other)
    if first != second or max(one, other) >= _ALMOST_ALL or depth.current_depth() != depth.PLAIN:
        return first, second
    return SentenceNumber(_count_in_base(one, 100)), SentenceNumber(_count_in_base(other, 100))


def format_full(value: float) -> str:
    """Format with four significant digits, or more where the result would round to 0 or 1."""
    digits = 4
    while digits < 12 and value != float(f"{value:.{digits}g}") in (0.0, 1.0):
        digits += 1
    return f"{value:.{digits}g}".replace("-", "−")


def format_log(value: float) -> str:
    """Format a log-probability or an entropy: `−1.158`."""
    return format_full(value + 0.0)  # avoids a minus sign before zero


def format_score(value: float) -> str:
    """Format a search score with two decimals, or four at the "exact" level."""
    return decimal(value, 4 if depth.current_depth() == depth.EXACT else 2)


def _approximate_fraction(value: float, is_exact: bool = False) -> str:
    if value >= 1 and is_exact:
        return tr("10 in 10")
    if value >= _ALMOST_ALL:
        return tr("more than 99 in 100")
    for base in _BASES:
        if value * base >= _MIN_COUNT:
            if round(value * base) < base:
                return _count_in_base(value, base)
    return tr("less than 1 in 1,000") if value > 0 else trc("share", "none")


def _count_in_base(value: float, base: int) -> str:
    return tr(_ABOUT).format(count=math.floor(value * base + 0.5), base=f"{base:,}")


def medium_label(medium: MediumRead) -> str:
    """Return a short label: `picture 3 × 3 patches`, `sound 0.0–4.0 s`, with the length of a longer recording."""
    if medium.kind == "sound":
        if is_cut_short(medium):
            return tr("sound {begin:.1f}–{end:.1f} s of {whole:.1f} s").format(
                begin=0.0, end=medium.heard, whole=medium.seconds
            )
        return tr("sound {begin:.1f}–{end:.1f} s").format(begin=0.0, end=medium.seconds)
    if medium.rows:
        return tr("picture {rows} × {columns} patches").format(rows=medium.rows, columns=medium.columns)
    count = medium.last - medium.first + 1
    return trn("picture, {count:,} position", "picture, {count:,} positions", count).format(count=count)


def is_cut_short(medium: MediumRead) -> bool:
    """Return whether a recording is longer than what the model reads of it."""
    return medium.kind == "sound" and 0 < medium.heard < medium.seconds - 0.05


def medium_sentence(medium: MediumRead) -> str:
    """Return a sentence on how the model reads it, and as how many positions; one more if it reads only the beginning
    of a recording.
    """
    count = medium.last - medium.first + 1
    match medium.place:
        case "prompt":
            template = trn(
                "It occupies {count:,} token of the prompt.", "It occupies {count:,} tokens of the prompt.", count
            )
        case "before":
            template = trn(
                "It is read before the prompt's first token, as {count:,} position.",
                "It is read before the prompt's first token, as {count:,} positions.",
                count,
            )
        case _:
            template = trn(
                "An encoder turns it into {count:,} position once; every generated token attends to it.",
                "An encoder turns it into {count:,} positions once; every generated token attends to all of them.",
                count,
            )
    sentence = template.format(count=count)
    if not is_cut_short(medium):
        return sentence
    cut = tr("Only its first {heard:.1f} s are read, because the model hears no more at once.")
    return join_sentences(cut.format(heard=medium.heard), sentence)


def medium_part(medium: MediumRead, position: int) -> str:
    """Describe one of its positions: `row 2, column 3 of girl.png`, `0.04–0.06 s of hello.wav`."""
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
    """Return the patch's row and column, counted from 0, or the seconds of a position; None if it represents the whole
    medium (a summary, a separator between patches) or is unknown.
    """
    offset, count = position - medium.first, medium.last - medium.first + 1
    if not 0 <= offset < count:
        return None
    if medium.kind == "sound" and medium.heard:
        return ("seconds", medium.heard * offset / count, medium.heard * (offset + 1) / count)
    patch = offset - (count - medium.rows * medium.columns)  # positions beyond the patches precede them
    return ("patch", *divmod(patch, medium.columns)) if medium.columns and patch >= 0 else None
