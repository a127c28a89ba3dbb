"""What is said of a model of the hub and of its download."""

from __future__ import annotations

from app.state.hub_models import DownloadStatus
from core import catalog, words
from resources.language import tr, trn

MAX_NAMES = 8
"""Files that are named; the others are counted."""


def facts_text(model: catalog.HubModel) -> str:
    """Shape, size, licence, downloads."""
    parts = [
        model.architecture,
        words.magnitude(model.parameters) if model.parameters else "",
        words.size(model.size) if model.size else "",
        model.licence,
        trn("{count} download a month", "{count} downloads a month", model.downloads).format(
            count=words.magnitude(model.downloads)
        ),
        tr("gated") if model.gated else "",
        tr("private") if model.private else "",
    ]
    return " · ".join(part for part in parts if part)


def fit_text(model: catalog.HubModel) -> str:
    """Whether it can be used here."""
    if not model.judged:
        return tr("Looking whether it fits…")
    if not model.needed:
        return model.why_not
    if model.fits_as:
        told = tr("It fits with weights of {bits} (“Weights…” in the model list): {figures}.")
    else:
        told = tr("It fits: {figures}.") if model.fits else tr("It is too large for this machine: {figures}.")
    return told.format(figures=model.figures, bits=_bits(model))


def short_facts_text(model: catalog.HubModel) -> str:
    """For a line of the list."""
    parts = [
        model.family,
        words.magnitude(model.parameters) if model.parameters else "",
        words.size(model.size) if model.size else "",
        model.licence,
    ]
    return " · ".join(part for part in parts if part)


def short_fit_text(model: catalog.HubModel) -> str:
    """Whether it can be used here, for a line of the list."""
    if not model.needed:
        return fit_text(model)
    if model.fits_as:
        told = tr("Fits with {bits}: {needed} of {free} free")
    else:
        told = tr("Fits: {needed} of {free} free") if model.fits else tr("Does not fit: {needed} of {free} free")
    return told.format(needed=words.size(model.needed), free=words.size(model.free), bits=_bits(model))


def _bits(model: catalog.HubModel) -> str:
    """How fine the weights are in which it fits."""
    return {"bfloat16": tr("16 bits"), "int8": tr("8 bits"), "int4": tr("4 bits")}.get(model.fits_as, "")


def progress_text(status: DownloadStatus) -> str:
    """How far it has come, in a line; empty where nothing is known of it."""
    there = tr("{done} of {total}").format(done=words.size(status.done), total=words.size(status.total))
    match status.status:
        case "none":
            return ""
        case "paused":
            return tr("Paused: {there}").format(there=there)
        case "failed":
            return tr("Broken off: {there}").format(there=there) if status.done else tr("Broken off")
        case "stopping":
            return tr("Stopping…")
        case "whole":
            return _complete_text(status)
    return _transfer_text(status, there)


def _complete_text(status: DownloadStatus) -> str:
    if status.damaged is None:
        return tr("On this disk: {size}").format(size=words.size(status.total))
    if not status.damaged:
        return tr("On this disk, and every file is as the hub listed it")
    return tr("Damaged: {files}").format(files=", ".join(status.damaged))


def _transfer_text(status: DownloadStatus, there: str) -> str:
    now = status.progress
    if now is None:
        return tr("Asking the hub…") if status.status == "fetching" else tr("Reading…")
    if now.state == "waiting":
        return tr("The hub asked for a pause: on in {time}").format(time=duration_text(now.left or 0))
    if now.state == "verifying":
        return tr("Checking {file}: {there}").format(file=now.file, there=there) if now.file else tr("Checking…")
    speed = tr("{size}/s").format(size=words.size(now.speed)) if now.speed else ""
    left = tr("{time} left").format(time=duration_text(now.left)) if now.left is not None else ""
    return " · ".join(part for part in (there, speed, left) if part)


def duration_text(seconds: float) -> str:
    """`40 s`, `3 min`, `2 h 5 min`."""
    if seconds < 60:
        return tr("{n} s").format(n=round(seconds))
    minutes = round(seconds / 60)
    if minutes < 60:
        return tr("{n} min").format(n=minutes)
    return tr("{h} h {m} min").format(h=minutes // 60, m=minutes % 60)


def files_text(model: catalog.HubModel) -> str:
    """Which files a download takes, and how many stay on the hub."""
    taken = _file_list([f"{file.path} ({words.size(file.size)})" for file in reversed(model.files)])
    if not model.left_out:
        return taken
    left = trn("{n} other file stays on the hub.", "{n} other files stay on the hub.", len(model.left_out))
    return f"{taken}\n{left.format(n=len(model.left_out))}"


def _file_list(names: list[str]) -> str:
    more = len(names) - MAX_NAMES
    if more <= 0:
        return ", ".join(names)
    return trn("{names} and {n} more", "{names} and {n} more", more).format(names=", ".join(names[:MAX_NAMES]), n=more)
