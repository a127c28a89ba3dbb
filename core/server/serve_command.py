"""`decodescope serve`: load a model and serve it until Ctrl+C; its runs appear in an open window."""

from __future__ import annotations

import argparse
import os
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, cast

from decodescope.core.errors import DecodescopeError, ParameterError
from decodescope.core.server.http_server import LOCAL_HOST, HttpServer, Runner, ServerError, is_local, new_key
from decodescope.core.server.openai_api import ServedModel, ServedRequest
from decodescope.resources.language import tr

if TYPE_CHECKING:
    from collections.abc import Generator

    from decodescope.core.events import Event
    from decodescope.core.models.loaded_model import LoadedModel
    from decodescope.core.remote.remote_model import RemoteModel

KEY_VARIABLE = "DECODESCOPE_SERVER_KEY"
DEFAULT_PORT = 8017
_DONE, _FAILED, _INVALID = 0, 1, 2


def make_parser() -> argparse.ArgumentParser:
    """Return the parser in the current language."""
    parser = argparse.ArgumentParser(
        prog="decodescope serve",
        description=tr("Serve a model with the API of OpenAI. Its runs appear in an open window."),
        epilog=tr(
            "The key is random unless the variable {name} has one. Requests are answered one at a time. Ctrl+C ends "
            "the server."
        ).format(name=KEY_VARIABLE),
        allow_abbrev=False,
    )
    add = parser.add_argument
    add(
        "model", nargs="?", default="storyteller", metavar="MODEL",
        help=tr("bundled name, local folder, GGUF file, or downloaded hub id"),
    )  # fmt: skip
    add("--host", default=LOCAL_HOST, metavar="ADDRESS", help=tr("address to listen on; default: %(default)s"))
    add("--port", type=int, default=DEFAULT_PORT, metavar="N", help=tr("port; 0: any free one; default: %(default)s"))
    add("--name", default="", metavar="NAME", help=tr("name of the model for clients; default: that of the model"))
    add("--device", default="auto", metavar="D", help=tr("auto, cpu, cuda, mps or spread"))
    add("--weights", default="auto", metavar="W", help=tr("auto, float32, bfloat16, int8, int4 or fp8"))
    return parser


def run(arguments: Sequence[str]) -> int:
    """Run the command and return the exit code."""
    parser = make_parser()
    options = parser.parse_args(list(arguments))
    if not 0 <= options.port < 65536:
        parser.error(tr("{name} is not a port: use 0 to 65535").format(name=options.port))
    server = None
    try:
        from decodescope import core

        model = core.load(options.model, device=options.device, weights=options.weights)
        served = ServedModel(options.name or model.name, model.context)
        server = HttpServer(
            served, make_runner(model), key=os.environ.get(KEY_VARIABLE) or new_key(), host=options.host,
            port=options.port, on_call=_print,
        )  # fmt: skip
        server.start()
    except DecodescopeError as error:
        if server is not None:
            server.stop()
        _print(f"{parser.prog}: {error}")
        return _INVALID if isinstance(error, ServerError | ParameterError) else _FAILED
    _describe(server)
    try:
        server.wait()
    except KeyboardInterrupt:
        _print(tr("The server has ended."))
        _print(server.counts.sentence())
        if server.counts.last_refusal:
            _print(tr("Last refusal: {reason}").format(reason=server.counts.last_refusal))
    finally:
        server.stop()
    return _DONE


def _describe(server: HttpServer) -> None:
    print(tr("Serving “{model}” at {address}").format(model=server.model.name, address=server.address))
    if not os.environ.get(KEY_VARIABLE):
        print(tr("Key: {key}").format(key=server.key))
    if not is_local(server.host):
        _print(
            tr(
                "Warning: other computers can reach this address. The connection is not encrypted, and anyone who has "
                "the key can use the model."
            )
        )
    sys.stdout.flush()


def _print(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def make_runner(model: LoadedModel | RemoteModel) -> Runner:
    """Return a function that runs requests with a model and sends the runs to an open window.

    Raises ServerError for a model that another engine runs.
    """
    from decodescope import core
    from decodescope.core.decoding.prompt import encode
    from decodescope.core.generate_capture.live_sender import LiveRun
    from decodescope.core.remote.remote_model import RemoteModel
    from decodescope.core.trace import LiveAddress, failure_of

    if isinstance(model, RemoteModel):
        raise ServerError(
            tr("{model} runs in another engine, which serves it already.").format(model=model.name),
            tr("Use the address of that engine, or choose a local model."),
        )

    def run_request(request: ServedRequest, cancel: threading.Event) -> Iterator[Event]:
        # The window adds a chat of messages to its own conversation; ids are shown as a run.
        plain = request.with_ids(encode(model, request.prompt, template_settings=request.template_settings))
        window = LiveAddress.find()
        live = LiveRun(window, plain, {"served": True}) if window is not None else None
        failure = None
        try:
            with closing(cast("Generator[Event]", core.stream(model, plain, cancel=cancel))) as events:
                for event in events:
                    if live is not None:
                        live.write(event)
                    yield event
        except BaseException as error:
            failure = failure_of(error)
            raise
        finally:
            if live is not None:
                live.close(failure)

    return run_request
