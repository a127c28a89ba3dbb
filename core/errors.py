"""Every way a run can fail, each with its cause, its figures and what to do about it."""

from __future__ import annotations

from core.common.text import printable
from resources.language import join_sentences, mark, tr, trn


class DecodescopeError(Exception):
    """Base class: `cause` says what is wrong, `remedy` what to do; `details` may unfold further."""

    title = mark("Something went wrong")

    def __init__(self, cause: str, remedy: str = "", details: str = "") -> None:
        self.cause, self.remedy, self.details = map(printable, (cause, remedy, details))
        super().__init__(join_sentences(self.cause, self.remedy))


TokenscopeError = DecodescopeError
"""The base class under the program's former name."""


class ModelError(DecodescopeError):
    """A model could not be found or loaded."""

    title = mark("The model could not be loaded")


class ModelNotFoundError(ModelError):
    """No bundled model, folder or local hub snapshot has that name."""


class ConfigMissingError(ModelError):
    """The folder holds no config.json, or an unreadable one."""


class ModelFileError(ModelError):
    """A file of the folder is damaged, too large, or nothing that may be opened (a pipe, a device)."""


class ConfigInvalidError(ModelError):
    """A value of config.json or generation_config.json cannot be, or nothing can be built from them."""


class UnknownArchitectureError(ModelError):
    """The installed transformers does not know the model type, or it cannot generate text."""


class CorruptWeightsError(ModelError):
    """A weights file is truncated, corrupt, missing or does not fit its config."""


class PickledWeightsError(ModelError):
    """Only pickled weights exist, and this model was not allowed them."""


class ProcessorMissingError(ModelError):
    """A model that hears or sees has no file that says how sounds and pictures become numbers, or a broken one."""


class UnpackableError(ModelError):
    """Its layers cannot be kept in eight or four bits."""


class RemoteCodeError(ModelError):
    """The model brings code of its own, and was not allowed to run it."""


class UnforeseenError(DecodescopeError):
    """Something failed that nothing here knows, most often in the model's own code; `details` say where."""

    title = mark("The run failed")


class PreferenceError(DecodescopeError):
    """Rankings, a reward model or a training of the preference lab cannot be used."""

    title = mark("The preferences cannot be used")


class UnpredictableError(DecodescopeError):
    """A size cannot be told before it is there."""

    title = mark("This cannot be told in advance")


class TokenizerMissingError(DecodescopeError):
    """Text was given (or a chat) but the model has no tokenizer or no chat template."""

    title = mark("Text cannot be turned into tokens")


class PromptError(DecodescopeError):
    """The prompt cannot be decoded from."""

    title = mark("The prompt cannot be used")


class EmptyPromptError(PromptError):
    """No token to begin with: an empty prompt and no beginning-of-sequence token."""


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
    """There is no such file, or it may not be opened (no permission, a folder, a pipe, a device)."""


class MediaFormatError(MediaError):
    """It is no sound and no picture, or of a format that is not read here."""


class MediaDamagedError(MediaError):
    """It is empty, cut short, or holds what no file of its format can."""


class MediaTooLargeError(MediaError):
    """It has more bytes, seconds or pixels than are read here, or than the model takes."""


class MediaRefusedError(MediaError):
    """The model does not take it: no sound, no picture, not so many of them; or it needs one and has none."""

    title = mark("The model cannot take this")


class TextTooLongError(PromptError):
    """A text to be scored has more tokens than the model's context."""

    title = mark("The text cannot be scored")

    def __init__(self, tokens: int, context: int) -> None:
        self.tokens, self.context = tokens, context
        super().__init__(
            tr("The text has {tokens:,} tokens, and the model's context has room for {context:,}.").format(
                tokens=tokens, context=context
            ),
            tr("Leave out at least {tokens:,} of them, or choose a model with a longer context.").format(
                tokens=tokens - context
            ),
        )


class ComparisonError(DecodescopeError):
    """Two models cannot be held against each other on one text."""

    title = mark("These models cannot be compared")


class InsideError(DecodescopeError):
    """A model does not let this be seen: its layers cannot be read as choices, or it keeps no attention."""

    title = mark("This cannot be seen inside this model")


class ParameterError(DecodescopeError):
    """A setting is out of range, of the wrong type or unknown."""

    title = mark("A setting cannot be used")

    def __init__(self, cause: str, remedy: str = "", parameter: str = "") -> None:
        self.parameter = parameter
        super().__init__(cause, remedy)


class StrategyError(DecodescopeError):
    """The strategy does not exist, or the model cannot do it."""

    title = mark("This strategy cannot be used here")


class CacheError(DecodescopeError):
    """The cache back end does not exist, or cannot serve this model and strategy."""

    title = mark("This cache cannot be used here")


class DeviceError(DecodescopeError):
    """The device asked for is not there."""

    title = mark("The device cannot be used")


class NumericError(DecodescopeError):
    """The model produced logits that are not numbers."""

    title = mark("The model's output is not a number")


class TraceError(DecodescopeError):
    """A recorded run cannot be written, or read: no such file, cut short, damaged, of a later version."""

    title = mark("The recorded run cannot be used")


class ScaleError(DecodescopeError):
    """The processes of the Scale lab could not be started, or did not come to their end."""

    title = mark("The lab was ended")


class OutOfMemoryError(DecodescopeError):
    """The device or the machine ran out of memory."""

    title = mark("Out of memory")


class ModelTooLargeError(OutOfMemoryError):
    """A model's weights take more memory than there is, or than they are allowed."""

    title = mark("The model does not fit into memory")


class FileNotWrittenError(DecodescopeError):
    """What was to be kept could not be written: no such folder, no permission, no room."""

    title = mark("The file was not written")


class DiskFullError(FileNotWrittenError):
    """The disk has no room for what is to be downloaded."""


class HubError(DecodescopeError):
    """The hub did not give what was asked of it."""

    title = mark("The hub did not give it")


class NoNetworkError(HubError):
    """The hub cannot be reached, or must not be asked."""

    title = mark("No network")


class NotOnHubError(HubError):
    """The hub has no model of that name, or it is no name that one can have."""


class AccessError(HubError):
    """The model is gated or private, or the token is not accepted."""

    title = mark("You have no access to this model")


class TooManyRequestsError(HubError):
    """The hub has been asked too often; `seconds` until it may be asked again, 0 where it did not say."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        super().__init__(
            tr("The hub has had too many requests from here."),
            trn(
                "Try again in {seconds:.0f} second; what is downloaded already is kept.",
                "Try again in {seconds:.0f} seconds; what is downloaded already is kept.",
                round(seconds),
            ).format(seconds=seconds)
            if seconds
            else tr("Try again in a few minutes; what is downloaded already is kept."),
        )


class TransferError(HubError):
    """A file did not come whole, or is not what the hub lists."""

    title = mark("The download was broken off")


class DownloadStoppedError(HubError):
    """It was asked to stop; what is there is kept."""

    title = mark("The download is paused")


class EngineError(DecodescopeError):
    """An engine on another machine did not do what was asked of it."""

    title = mark("The engine did not do it")


class AddressError(EngineError):
    """No address of an engine, or one that must not be used as it is."""

    title = mark("The address cannot be used")


class EngineUnreachableError(EngineError):
    """Nothing answers at the address, or not in time."""

    title = mark("The engine cannot be reached")


class EngineAccessError(EngineError):
    """The engine wants a key, or another one."""

    title = mark("The engine wants a key")


class EngineRefusedError(EngineError):
    """The engine refuses this request; its own words say why."""

    title = mark("The engine refuses")


class EngineBusyError(EngineError):
    """The engine has too much to do, or is broken at the moment; asked again several times."""

    title = mark("The engine has no time")


class EngineReplyError(EngineError):
    """What the engine says cannot be read."""

    title = mark("The engine's reply cannot be read")


class EngineCutError(EngineError):
    """The connection ended in the middle of the text; what came before stays."""

    title = mark("The engine broke off")
