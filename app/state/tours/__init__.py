"""Guided tours: what they are made of, where they are read, and how their sentences are built from a run's events."""

from app.state.tours.reading import find, load, names_and_titles
from app.state.tours.telling import Told, tell
from app.state.tours.tour import Setting, Step, Tour, TourProblem

__all__ = ["Setting", "Step", "Told", "Tour", "TourProblem", "find", "load", "names_and_titles", "tell"]
