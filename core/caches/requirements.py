"""What strategies ask of a cache beyond growing, and the sentences for caches that cannot do it."""

from __future__ import annotations

from typing import Literal

from resources.language import mark, tr

CacheOperation = Literal["reorder", "truncate", "select", "copy", "drafts"]
"""reorder: rows change places and repeat (beams, candidates); truncate: the last tokens are taken back (drafts);
select: only some positions stay (token trees); copy: a second, independent cache (branches, prefixes);
drafts: tokens behind the text are read through a mask of the text's own length."""

_SENTENCES: dict[CacheOperation, str] = {
    "reorder": mark(
        "this strategy follows several candidates at once, and {title} cannot change the places of its rows."
    ),
    "truncate": mark("this strategy takes refused drafts back, and {title} cannot forget its last tokens exactly."),
    "select": mark(
        "this strategy keeps one path of a token tree, and {title} cannot keep tokens at chosen places only."
    ),
    "drafts": mark(
        "this strategy reads drafts behind the text through a mask as long as the text, which {title} does not "
        "allow; “Dynamic” does."
    ),
    "copy": mark("this strategy needs a second copy of the cache, and {title} cannot be copied."),
}


def missing_operation_sentence(title: str, missing: frozenset[CacheOperation]) -> str | None:
    """Why a back end that does not offer what is `missing` cannot serve; None when nothing is."""
    first = next((sentence for need, sentence in _SENTENCES.items() if need in missing), None)
    return tr(first).format(title=tr("the cache “{title}”").format(title=tr(title))) if first else None
