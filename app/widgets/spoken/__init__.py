"""What a screen reader is told of widgets that paint themselves: their role, value, text and parts."""

from app.widgets.spoken.items import release
from app.widgets.spoken.live import announce
from app.widgets.spoken.part import Part, Passage, Role, Value
from app.widgets.spoken.spoken import Spoken

__all__ = ["Part", "Passage", "Role", "Spoken", "Value", "announce", "release"]
