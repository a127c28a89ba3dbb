"""vLLM."""

from __future__ import annotations

from decodescope.core.grammar.grammar_setting import schema_of
from decodescope.core.remote.engines.base import Body, EngineKind, EngineTokenizer, GrammarFormat, Message
from decodescope.core.remote.engines.formats import GRAMMAR, OPENAI_SETTINGS, SERVER_SETTINGS, SEVERAL_TEXTS
from decodescope.core.remote.responses import ResponseUsage, valid_count


def _structured(name: str) -> GrammarFormat:
    return lambda content: {"structured_outputs": {name: schema_of(content) if name == "json" else content}}


def tokenize_body(model: str, prompt: str | None, messages: object) -> Body:
    """Return the body of a request for the tokens of a prompt or a chat."""
    content: Body = {"messages": messages} if prompt is None else {"prompt": prompt}
    return content | {"model": model, "return_token_strs": True}


def read_usage(usage: ResponseUsage, message: Message) -> None:
    """Read the numbers of drafted and accepted tokens, which vLLM reports with --per-request-spec-decode-metrics."""
    metrics = message.get("metrics")
    drafts = metrics.get("speculative_decoding") if isinstance(metrics, dict) else None
    if isinstance(drafts, dict):
        usage.drafted = valid_count(drafts.get("num_draft_tokens"), usage.drafted)
        usage.accepted = valid_count(drafts.get("num_accepted_draft_tokens"), usage.accepted)


ENGINE = EngineKind(
    "vllm",
    "vLLM",
    {**OPENAI_SETTINGS, **SEVERAL_TEXTS, **SERVER_SETTINGS, **GRAMMAR},
    {"stream_options": {"include_usage": True, "continuous_usage_stats": True}, "return_token_ids": True},
    no_top_k=-1,
    alternatives=20,
    chat_alternatives=20,
    takes_ids=True,
    scores=True,
    owned_by="vllm",
    grammars={"json_schema": _structured("json"), "regex": _structured("regex"), "choice": _structured("choice")},
    tokenizer=EngineTokenizer("prompt", tokenize_body),
    read_usage=read_usage,
    order=10,
)
