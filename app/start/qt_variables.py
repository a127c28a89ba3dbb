"""Check the environment variables that Qt reads first: values out of range end the process without a message."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, MutableMapping

from decodescope.resources.language import tr

MIN_SCALE, MAX_SCALE = 0.25, 8.0
"""Pixels per point, all variables combined."""
MIN_DPI, MAX_DPI = 24, 480
SCALE, SCREENS, DPI = "QT_SCALE_FACTOR", "QT_SCREEN_SCALE_FACTORS", "QT_FONT_DPI"
_FLAGS = (
    "QT_ENABLE_HIGHDPI_SCALING", "QT_AUTO_SCREEN_SCALE_FACTOR", "QT_USE_PHYSICAL_DPI",
    "QT_HIGHDPI_DISABLE_2X_IMAGE_LOADING",
)  # fmt: skip
_POLICIES = ("Round", "Ceil", "Floor", "RoundPreferFloor", "PassThrough", "Unset")
_MAX_QUOTED = 40
"""Maximum number of characters of a value that a notice quotes."""


def remove_invalid_variables(variables: MutableMapping[str, str] = os.environ) -> list[str]:
    """Remove the variables that Qt cannot use; return one sentence for each removed variable."""
    return list(_removals(variables))


def _removals(variables: MutableMapping[str, str]) -> Iterator[str]:
    scales = tr("a number from {least:g} to {most:g}").format(least=MIN_SCALE, most=MAX_SCALE)
    checks: dict[str, tuple[Callable[[str], bool], str]] = {
        SCALE: (lambda text: _is_within(text, MIN_SCALE, MAX_SCALE), scales),
        SCREENS: (
            lambda text: all(map(_is_screen_scale, text.split(";"))),
            tr("numbers like 1.5;2 or HDMI-1=1.5;eDP-1=2"),
        ),
        DPI: (
            lambda text: text.strip().isdecimal() and _is_within(text, MIN_DPI, MAX_DPI),
            tr("a whole number from {least} to {most}").format(least=MIN_DPI, most=MAX_DPI),
        ),
        **dict.fromkeys(_FLAGS, (lambda text: text.strip() in ("0", "1", "2"), tr("0 or 1"))),
        "QT_SCALE_FACTOR_ROUNDING_POLICY": (lambda text: text.strip() in _POLICIES, ", ".join(_POLICIES)),
        "QT_DPI_ADJUSTMENT_POLICY": (
            lambda text: text.strip() in ("AdjustDpi", "DontAdjustDpi", "AdjustUpOnly"),
            "AdjustDpi, DontAdjustDpi, AdjustUpOnly",
        ),
    }
    for name, (is_right, requirement) in checks.items():
        value = variables.get(name)
        if value and not is_right(value):
            del variables[name]
            yield tr("{name}={value} is ignored: it must be {wanted}.").format(
                name=name, value=value[:_MAX_QUOTED], wanted=requirement
            )
    if _total_scale(variables) > MAX_SCALE:
        value = variables.pop(SCREENS)
        yield tr("{name}={value} is ignored: combined with {other} it enlarges more than {most:g} times.").format(
            name=SCREENS, value=value[:_MAX_QUOTED], other=SCALE, most=MAX_SCALE
        )


def _total_scale(variables: MutableMapping[str, str]) -> float:
    screens = [_factor(part) for part in variables.get(SCREENS, "").split(";") if part.strip()]
    return float(variables.get(SCALE) or 1) * max(screens) if screens else 1.0


def _is_screen_scale(part: str) -> bool:
    """Return whether the text is a factor, a screen name with its factor, or empty (that screen is unchanged)."""
    return not part.strip() or _is_within(part.rpartition("=")[2], MIN_SCALE, MAX_SCALE)


def _factor(part: str) -> float:
    return float(part.rpartition("=")[2])


def _is_within(text: str, minimum: float, maximum: float) -> bool:
    try:
        number = float(text)
    except ValueError:
        return False
    return text.isascii() and "_" not in text and math.isfinite(number) and minimum <= number <= maximum
