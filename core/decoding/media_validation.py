"""The sounds and pictures of a request, held against what its model takes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from core import media
from core.errors import MediaRefusedError
from core.media import PICTURE, SOUND, MediaFile
from core.models.modalities import Takes
from resources.language import mark, tr

_NOT_ACCEPTED = {
    SOUND: mark("{model} takes no sound, and {file} is one."),
    PICTURE: mark("{model} takes no pictures, and {file} is one."),
}
_REQUIRED = {
    (True, False): mark("{model} writes down what it hears, and no sound was given."),
    (False, True): mark("{model} writes about a picture, and none was given."),
    (True, True): mark("{model} writes about a sound or a picture, and none was given."),
}


def check_media(name: str, modalities: Takes, paths: Sequence[str | Path]) -> tuple[MediaFile, ...]:
    """The files of a request, each looked at; `name` is the model's.

    Raises MediaRefusedError where the model does not take them, and whatever `core.media.inspect` raises.
    """
    if modalities.needs and not paths:
        raise MediaRefusedError(
            tr(_REQUIRED[modalities.sound, modalities.picture]).format(model=name),
            tr("Add a file (Request.media, --media)."),
        )
    if paths and not modalities.media:
        raise MediaRefusedError(
            tr("{model} reads text only: neither sound nor pictures.").format(model=name),
            tr("Remove the file, or choose a model that takes it."),
        )
    for path in paths:
        kind = media.kind_of(path)
        if not (modalities.sound if kind == SOUND else modalities.picture):
            raise MediaRefusedError(
                tr(_NOT_ACCEPTED[kind]).format(model=name, file=Path(path).name),
                tr("Remove the file, or choose a model that takes it."),
            )
    if modalities.most is not None and len(paths) > modalities.most:
        raise MediaRefusedError(
            tr("{model} takes one file at a time, and {count} were given.").format(model=name, count=len(paths)),
            tr("Leave one of them."),
        )
    return tuple(map(media.inspect, paths))
