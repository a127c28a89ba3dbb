"""A setting whose row nobody has seen yet: what it is set to, without a widget."""

from __future__ import annotations

from typing import Any

from core.strategies import Parameter


class DeferredSetting:
    """Speaks like a `ParameterRow`, as far as nobody looks at it."""

    problem = ""
    """Nothing can have been typed."""

    def __init__(self, parameter: Parameter) -> None:
        self.parameter = parameter
        self.default: Any = parameter.default
        self.value: Any = parameter.default
        self.unavailable = ""

    @property
    def is_changed(self) -> bool:
        """Whether it differs from the default."""
        return bool(self.value != self.default)

    def set_value(self, value: Any) -> None:
        """What it is from now on."""
        self.value = value

    def set_default(self, default: Any) -> None:
        """What counts as unchanged: the parameter's default, or the model's own."""
        self.default = default

    def set_unavailable(self, reason: str) -> None:
        """Why it has no effect now; an empty reason makes it usable again."""
        self.unavailable = reason
