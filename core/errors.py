"""All errors of a run, each with a cause and a remedy."""

from __future__ import annotations

from decodescope.core.common.text import printable
from decodescope.resources.language import join_sentences, mark, tr, trn

_SENTENCE_ENDS, _CLOSING = ("", *".!?…:。！？："), "\"'”’»)]）」"


class DecodescopeError(Exception):
    """Base class: `cause` says what is wrong, `remedy` what to do; `details` may contain more, such as a traceback."""

    title = mark("Something went wrong")

    def __init__(self, cause: str, remedy: str = "", details: str = "") -> None:
        self.cause, self.remedy, self.details = map(printable, (cause, remedy, details))
        if self.remedy and self.cause.rstrip(_CLOSING)[-1:] not in _SENTENCE_ENDS:
            self.cause = tr("{sentence}.").format(sentence=self.cause)  # ends with another library's words
        super().__init__(join_sentences(self.cause, self.remedy))


class ModelError(DecodescopeError):
    """A model could not be found or loaded."""

    title = mark("The model could not be loaded")


class ModelNotFoundError(ModelError):
    """No bundled model, folder or local hub snapshot has that name."""


class ConfigMissingError(ModelError):
    """The folder contains no config.json, or an unreadable one."""


class ModelFileError(ModelError):
    """A file of the folder is damaged, too large, or cannot be opened safely (a pipe, a device)."""


class ConfigInvalidError(ModelError):
    """A value of config.json or generation_config.json is invalid, or no model can be built from them."""


class UnknownArchitectureError(ModelError):
    """The installed transformers does not support the model type, or the model cannot generate text."""


class CorruptWeightsError(ModelError):
    """A weights file is truncated, corrupt, missing or does not fit its config."""


class PickledWeightsError(ModelError):
    """Only pickled weights exist, which are not allowed for this model."""


class ProcessorMissingError(ModelError):
    """A model for sounds or pictures has no processor file, or an invalid one."""


class UnpackableError(ModelError):
    """The model's layers cannot be quantized to eight or four bits."""


class AdapterError(ModelError):
    """An adapter is damaged, of an unsupported kind, or does not fit the model."""

    title = mark("The adapter cannot be used")


class RemoteCodeError(ModelError):
    """The model contains its own code, which is not allowed to run."""


class UnforeseenError(DecodescopeError):
    """An unexpected error, usually in the model's own code; `details` contain the traceback."""

    title = mark("The run failed")


class PluginError(DecodescopeError):
    """A plug-in cannot be loaded, or failed during a run; `path` and `line` locate the cause, 0 if unknown."""

    title = mark("A plug-in failed")

    def __init__(self, cause: str, remedy: str = "", details: str = "", path: str = "", line: int = 0) -> None:
        super().__init__(cause, remedy, details)
        self.path, self.line = path, line


class StudyError(DecodescopeError):
    """A study's file, its prompts or its results cannot be used; `line` and `key` locate the cause, 0 and empty if
    unknown.
    """

    title = mark("The study cannot be used")

    def __init__(self, cause: str, remedy: str = "", line: int = 0, key: str = "") -> None:
        super().__init__(cause, remedy)
        self.line, self.key = line, key


class PreferenceError(DecodescopeError):
    """Rankings, a reward model or a training run of the preference lab cannot be used."""

    title = mark("The preferences cannot be used")


class UnpredictableError(DecodescopeError):
    """A size cannot be predicted."""

    title = mark("This cannot be predicted")


class TokenizerMissingError(DecodescopeError):
    """The prompt is text or a chat, but the model has no tokenizer or no chat template."""

    title = mark("Text cannot be tokenized")


class PromptError(DecodescopeError):
    """The prompt cannot be used."""

    title = mark("The prompt cannot be used")


class EmptyPromptError(PromptError):
    """There is no first token: the prompt is empty and the model has no beginning-of-sequence token."""


class PromptTooLongError(PromptError):
    """The prompt has more tokens than the model's context."""

    def __init__(self, tokens: int, context: int) -> None:
        self.tokens, self.context = tokens, context
        over = tokens - context
        super().__init__(
            tr("The prompt has {tokens:,} tokens, {over:,} more than the model's context of {context:,}.").format(
                tokens=tokens, over=over, context=context
            ),
            trn(
                "Shorten it by at least {over:,} token, or choose a model with a longer context.",
                "Shorten it by at least {over:,} tokens, or choose a model with a longer context.",
                over + 1,
            ).format(over=over + 1),
        )


class MediaError(DecodescopeError):
    """A sound or a picture cannot be read, or not by this model."""

    title = mark("The sound or picture cannot be used")


class MediaMissingError(MediaError):
    """The file does not exist or cannot be opened (no permission, a folder, a pipe, a device)."""


class MediaFormatError(MediaError):
    """The file is neither a sound nor a picture, or its format is not supported."""


class MediaDamagedError(MediaError):
    """The file is empty, truncated or invalid."""


class MediaTooLargeError(MediaError):
    """The file has more bytes, seconds or pixels than supported here or by the model."""


class MediaRefusedError(MediaError):
    """The model does not accept it: no sounds, no pictures, or fewer of them; or it requires one and there is none."""

    title = mark("The model does not accept this")


class TextTooLongError(PromptError):
    """A text to be scored has more tokens than the model's context."""

    title = mark("The text cannot be scored")

    def __init__(self, tokens: int, context: int) -> None:
        self.tokens, self.context = tokens, context
        super().__init__(
            tr("The text has {tokens:,} tokens, more than the model's context of {context:,}.").format(
                tokens=tokens, context=context
            ),
            tr("Remove at least {tokens:,} of them, or choose a model with a longer context.").format(
                tokens=tokens - context
            ),
        )


class ComparisonError(DecodescopeError):
    """Two models cannot be compared on one text."""

    title = mark("These models cannot be compared")


class InsideError(DecodescopeError):
    """A model's internals cannot be inspected: its layers have no readable predictions, or it returns no attention."""

    title = mark("This model cannot be inspected this way")


class ParameterError(DecodescopeError):
    """A setting is out of range, of the wrong type or unknown."""

    title = mark("A setting cannot be used")

    def __init__(self, cause: str, remedy: str = "", parameter: str = "") -> None:
        self.parameter = parameter
        super().__init__(cause, remedy)


class StrategyError(DecodescopeError):
    """The strategy does not exist, or the model does not support it."""

    title = mark("This strategy cannot be used here")


class CacheError(DecodescopeError):
    """The cache backend does not exist, or does not support this model and strategy."""

    title = mark("This cache cannot be used here")


class DeviceError(DecodescopeError):
    """The requested device does not exist."""

    title = mark("The device cannot be used")


class NumericError(DecodescopeError):
    """The model produced logits that are NaN or infinite."""

    title = mark("The model's output is invalid")


class NativeCodeError(DecodescopeError):
    """A tensor is not one that native code can read."""

    title = mark("The native code cannot be used")


class TraceError(DecodescopeError):
    """A recording cannot be written or read: missing, truncated, damaged, or of a later version."""

    title = mark("The recording cannot be used")


class ScaleError(DecodescopeError):
    """The processes of the Scale lab could not be started, or ended early."""

    title = mark("The lab was stopped")


class OutOfMemoryError(DecodescopeError):
    """The device or the machine ran out of memory."""

    title = mark("Out of memory")


class ModelTooLargeError(OutOfMemoryError):
    """A model's weights need more memory than available or allowed."""

    title = mark("The model does not fit into memory")


class FileNotWrittenError(DecodescopeError):
    """A file could not be written: missing folder, no permission, or no space."""

    title = mark("The file could not be saved")


class DiskFullError(FileNotWrittenError):
    """The disk has too little space for a download."""


class HubError(DecodescopeError):
    """The Hub did not fulfil a request."""

    title = mark("The Hub request failed")


class NoNetworkError(HubError):
    """The Hub cannot be reached, or offline mode is on."""

    title = mark("No network")


class NotOnHubError(HubError):
    """The Hub has no model of that name, or the name is invalid."""


class AccessError(HubError):
    """The model is gated or private, or the token is rejected."""

    title = mark("You have no access to this model")


class TooManyRequestsError(HubError):
    """The Hub rejected the request because of its rate limit; `seconds` until the next attempt, 0 if unknown."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        super().__init__(
            tr("The Hub received too many requests from here."),
            trn(
                "Try again in {seconds:.0f} second; what is already downloaded is kept.",
                "Try again in {seconds:.0f} seconds; what is already downloaded is kept.",
                round(seconds),
            ).format(seconds=seconds)
            if seconds
            else tr("Try again in a few minutes; what is already downloaded is kept."),
        )


class TransferError(HubError):
    """A file was not downloaded completely, or differs from the Hub's listing."""

    title = mark("The download was interrupted")


class DownloadStoppedError(HubError):
    """The download was stopped by the user; the downloaded part is kept."""

    title = mark("The download is paused")


class EngineError(DecodescopeError):
    """A request to a remote engine failed."""

    title = mark("The engine request failed")


class AddressError(EngineError):
    """The address is not that of an engine, or is not allowed as it is."""

    title = mark("The address cannot be used")


class EngineUnreachableError(EngineError):
    """The address does not answer, or not in time."""

    title = mark("The engine cannot be reached")


class EngineAccessError(EngineError):
    """The engine requires a key, or another one."""

    title = mark("The engine requires a key")


class EngineRefusedError(EngineError):
    """The engine rejected the request; its own message says why."""

    title = mark("The engine rejected the request")


class EngineBusyError(EngineError):
    """The engine is overloaded or temporarily failing; raised after several attempts."""

    title = mark("The engine is busy")


class EngineReplyError(EngineError):
    """The engine's response cannot be parsed."""

    title = mark("The engine's response cannot be read")


class EngineCutError(EngineError):
    """The connection ended before the text was complete; the text so far is kept."""

    title = mark("The engine stopped responding")
