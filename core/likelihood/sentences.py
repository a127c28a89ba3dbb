"""Sentences about results: bounds of a probability, and the settings that wrote a text. Imports no torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from decodescope.core.explain.words import percent_text
from decodescope.resources.language import join_names, tr, trn

if TYPE_CHECKING:
    from decodescope.core.likelihood.pattern_probability import PatternProbability, ProbabilityBounds
    from decodescope.core.likelihood.setting_posterior import Ridge, SettingPosterior

_SURE, _UNLIKELY = 0.9, 0.1
"""Probabilities from which a sentence states that a filter was off, and below which that it was on."""
_NAMES = {"temperature": "temperature", "top_k": "top-k", "top_p": "top-p", "min_p": "min-p"}


def probability_text(probability: float, digits: int = 1) -> str:
    """Return a probability in percent; one that is not 0 or 1 is never shown as such."""
    value = 100 * probability
    step = 10.0**-digits
    if 0 < value < step / 2:
        return percent_text(f"< {step:.{digits}f}")
    if 100 - step / 2 <= value < 100:
        return percent_text(f"> {100 - step:.{digits}f}")
    return percent_text(f"{value:.{digits}f}")


def bounds_text(bounds: ProbabilityBounds) -> str:
    """Return bounds as a range in percent, with as many digits as distinguish them."""
    digits = 1 if bounds.gap >= 2e-3 else 2 if bounds.gap >= 2e-4 else 3
    low, high = probability_text(bounds.lower, digits), probability_text(bounds.upper, digits)
    return low if low == high else tr("{low} to {high}").format(low=low, high=high)


def explain_pattern(found: PatternProbability) -> list[str]:
    """Return the result of a search in sentences."""
    lines = [
        tr("The answer matches with a probability of {bounds}. These bounds are sure.").format(
            bounds=bounds_text(found.any_bounds)
        )
    ]
    if len(found.patterns) > 1:
        pairs = zip(found.patterns, found.bounds, strict=True)
        lines += [
            tr("“{pattern}”: {bounds}").format(pattern=str(one), bounds=bounds_text(bounds)) for one, bounds in pairs
        ]
    if _lacks_a_space(found):
        lines.append(tr("All likely answers begin with a space, but the text does not. Write a space before it."))
    lines.append(
        trn("{count:,} beginning was read.", "{count:,} beginnings were read.", found.prefixes).format(
            count=found.prefixes
        )
    )
    if not found.is_converged:
        lines.append(
            tr(
                "The search ended before the bounds met: {gap} of the probability is undecided. Allow more beginnings, "
                "limit the new tokens, or cut unlikely tokens (top-k, top-p)."
            ).format(gap=probability_text(found.any_bounds.gap))
        )
    return lines


def _lacks_a_space(found: PatternProbability) -> bool:
    """Return whether nothing matches only because answers begin with white space."""
    texts = [row.text for row in found if row.text]
    without = (one.place != "contains" and not one.is_regex and one.text[:1].strip() for one in found.patterns)
    return found.upper < 1e-3 and bool(texts) and all(text[0].isspace() for text in texts) and any(without)


def setting_name(setting: str) -> str:
    """Return the name of a setting within a sentence."""
    return tr(_NAMES[setting])


def value_text(setting: str, value: float) -> str:
    """Return a value of a setting: a number, or that a filter is off."""
    from decodescope.core.likelihood.setting_posterior import OFF

    if setting == "temperature":
        return f"{value:.2f}"
    return tr("off") if value == OFF[setting] else f"{value:g}"


def explain_posterior(found: SettingPosterior) -> list[str]:
    """Return the sentences about the settings of a text, and about what the text does not determine."""
    lines = [_temperature_sentence(found)]
    if found.greedy_below is not None:
        lines.append(
            tr(
                "Every token is the model's first choice. Greedy decoding, top-k 1 and any temperature up to about "
                "{limit:.2g} write this text, and cannot be told apart."
            ).format(limit=found.greedy_below)
        )
    else:
        count = sum(one.rank > 1 for one in found)
        lines.append(
            trn(
                "It was not greedy decoding: {count:,} token is not the model's first choice.",
                "It was not greedy decoding: {count:,} tokens are not the model's first choice.",
                count,
            ).format(count=count)
        )
    lines += [_filter_sentence(found, setting) for setting in ("top_k", "top_p", "min_p")]
    lines += [_ridge_sentence(ridge) for ridge in found.ridges]
    if unexplained := found.unexplained:
        lines.append(
            trn(
                "No setting explains {count:,} token: {tokens}. It may have been written in another way.",
                "No setting explains {count:,} tokens: {tokens}. They may have been written in another way.",
                len(unexplained),
            ).format(count=len(unexplained), tokens=join_names(f"“{one.text}”" for one in unexplained[:8]))
        )
    lines += _limits(found)
    return lines


def _temperature_sentence(found: SettingPosterior) -> str:
    parts = [tr("{low} to {high}").format(low=f"{low:.2f}", high=f"{high:.2f}") for low, high in found.intervals]
    return tr("With a probability of 90 %, the temperature was within {intervals}.").format(
        intervals=tr(" or ").join(parts)
    )


def _filter_sentence(found: SettingPosterior, setting: str) -> str:
    from decodescope.core.likelihood.setting_posterior import OFF

    name, marginal = setting_name(setting), found.marginal(setting)
    off = next(one.probability for one in marginal if one.value == OFF[setting])
    on = [value for value in found.credible(setting) if value != OFF[setting]]
    values = f"{on[0]:g}" if on else ""
    if len(on) > 1:
        values = tr("{low} to {high}").format(low=values, high=f"{on[-1]:g}")
    first = name[:1].upper() + name[1:]
    if off >= _SURE or not on:
        return tr("{name} was off, or cut nothing that was needed ({probability}).").format(
            name=first, probability=probability_text(off, 0)
        )
    if off < _UNLIKELY:
        return tr("{name} was on: {values} ({probability}).").format(
            name=first, values=values, probability=probability_text(1 - off, 0)
        )
    return tr("Whether {name} was on cannot be told: it was off ({probability}), or {values}.").format(
        name=name, probability=probability_text(off, 0), values=values
    )


def _ridge_sentence(ridge: Ridge) -> str:
    points = sorted(ridge.points, key=lambda point: point[1])
    first, last = points[0], points[-1]
    return tr(
        "The temperature and {name} cannot be told apart: {name} {first} with temperature {low:.2f} explains the text "
        "about as well as {name} {last} with {high:.2f}."
    ).format(
        name=setting_name(ridge.setting), first=value_text(ridge.setting, first[0]), low=first[1],
        last=value_text(ridge.setting, last[0]), high=last[1],
    )  # fmt: skip


def _limits(found: SettingPosterior) -> list[str]:
    lines = [
        tr("Beam search cannot be recognized, and penalties that are not given make the result wrong."),
    ]
    if found.was_retokenized:
        lines.append(
            tr("The text was divided into tokens again. The writer may have used other tokens of the same letters.")
        )
    if not found.is_complete:
        lines.append(tr("It was stopped, and only the tokens up to there are used."))
    return lines
