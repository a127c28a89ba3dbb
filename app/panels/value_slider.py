"""The slider under a number: the useful range of a setting, while the editor beside it takes any value."""

from __future__ import annotations

from PySide6.QtCore import QSignalBlocker, Qt, Slot
from PySide6.QtWidgets import QWidget

from app.panels.editors import FloatEditor, IntEditor
from app.panels.slider_scale import SliderScale, scale_of
from app.widgets.accessibility import AccessibleValue, AccessibleWidget, Role
from app.widgets.inputs import Slider
from core.strategies import Parameter
from resources.language import tr

SLIDER_STEPS = 1000


class ValueSlider(Slider, AccessibleWidget):
    """Leaves the wheel to the panel and the keyboard to the editor, which it follows and sets."""

    accessible_role = Role.Slider

    def __init__(self, parameter: Parameter, editor: IntEditor | FloatEditor, scale: SliderScale) -> None:
        super().__init__(Qt.Orientation.Horizontal)
        self._editor, self._scale = editor, scale
        self._step = parameter.step or (1 if isinstance(editor, IntEditor) else 0.01)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setRange(0, SLIDER_STEPS)
        self.setAccessibleName(tr("{title} slider").format(title=tr(parameter.title)))
        self.valueChanged.connect(self._on_value)

    def sync_from_editor(self) -> None:
        """Stand where the editor's value is."""
        with QSignalBlocker(self):
            self.setValue(round(self._scale.position(self._editor.value()) * SLIDER_STEPS))

    def accessible_value(self) -> AccessibleValue:
        """The setting's, not the handle's place on its way."""
        low, high = (self._scale.value(end, self._step) for end in (0.0, 1.0))
        editor = self._editor
        return AccessibleValue(editor.value(), low, high, self._step, editor.text(), self._set_value)

    def _set_value(self, value: float) -> None:
        self.setValue(round(self._scale.position(value) * SLIDER_STEPS))

    @Slot(int)
    def _on_value(self, position: int) -> None:
        value = self._scale.value(position / SLIDER_STEPS, self._step)
        if isinstance(self._editor, IntEditor):
            self._editor.setValue(round(value))
        else:
            self._editor.setValue(round(value, 6))


def make_slider(parameter: Parameter, editor: QWidget) -> ValueSlider | None:
    """A slider for a number that has a range; None for everything else."""
    if not isinstance(editor, IntEditor | FloatEditor):
        return None
    scale = scale_of(parameter, editor.minimum())
    return ValueSlider(parameter, editor, scale) if scale is not None else None
