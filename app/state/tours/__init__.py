"""Guided tours: what they are made of, where they are read, and how their sentences are built from a run's events."""

from app.state.tours.narration import StepNarration, tell
from app.state.tours.tour import Tour, TourProblem, TourSetting, TourStep
from app.state.tours.tour_file import find, load, names_and_titles

__all__ = [
    "StepNarration",
    "Tour",
    "TourProblem",
    "TourSetting",
    "TourStep",
    "find",
    "load",
    "names_and_titles",
    "tell",
]
