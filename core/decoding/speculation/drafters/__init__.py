"""Drafters: each proposes tokens that the target verifies. `registry` finds them, one per file."""

from decodescope.core.checks.name_suggestions import did_you_mean
from decodescope.core.decoding.speculation.drafters.base import Drafter, DrafterKind
from decodescope.core.errors import ParameterError
from decodescope.core.parameter import quote_text
from decodescope.core.registry import Registry
from decodescope.resources.language import join_names, tr

registry: Registry[DrafterKind] = Registry(__name__, "DRAFTER")


def combinable_drafters(text: str) -> list[DrafterKind]:
    """Return the drafters that `text` names, separated by commas or spaces. Raises ParameterError."""
    offered = {name: kind for name, kind in registry.items() if kind.combines}
    found = []
    for name in text.replace(",", " ").split():
        kind = registry.get(name)
        if kind is None or not kind.combines:
            raise ParameterError(
                tr("There is no such drafter: {name}.").format(name=quote_text(name)) + did_you_mean(name, offered),
                tr("Choose one of: {names}.").format(names=join_names(offered)),
                "extra_drafters",
            )
        if kind not in found:
            found.append(kind)
    return found


__all__ = ["Drafter", "DrafterKind", "combinable_drafters", "registry"]
