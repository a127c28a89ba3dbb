"""Starts and stops the server of the selected model."""

from __future__ import annotations

import time
from collections import deque
from pathlib import PurePath
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Qt, Signal, Slot
from PySide6.QtWidgets import QWidget

from decodescope.app.control.adapters import AdapterController
from decodescope.app.control.messages import Messages
from decodescope.app.control.model_loading import ModelLoadController
from decodescope.app.features.serving.session import ServedRuns
from decodescope.app.session.session import Session
from decodescope.app.state.worker_messages import LoadRequest, ModelInfo, RunRequest
from decodescope.app.storage.settings import ComputeSection
from decodescope.core import remote
from decodescope.core.errors import DecodescopeError
from decodescope.resources.language import join_sentences, tr

if TYPE_CHECKING:
    from decodescope.app.features.serving.panel import ServerDialog
    from decodescope.core.server import HttpServer, ServedRequest

DEFAULT_PORT = 8017
MAX_CALLS = 100
"""Number of calls that the dialog lists."""


class ServingController(QObject):
    """Controls the dialog of the server. `changed(is on)`: it was started or stopped."""

    changed = Signal(bool)
    _called = Signal(str)

    def __init__(
        self, parent_window: QWidget, session: Session, loading: ModelLoadController, adapters: AdapterController,
        compute: ComputeSection, messages: Messages,
    ) -> None:  # fmt: skip
        super().__init__(parent_window)
        self._parent_window, self._session, self._loading = parent_window, session, loading
        self._adapters, self._compute, self._messages = adapters, compute, messages
        self._dialog: ServerDialog | None = None
        self._port = DEFAULT_PORT
        self._load = LoadRequest()
        """The model that is served."""
        self.server: HttpServer | None = None
        self._runs: ServedRuns | None = None
        self._calls: deque[str] = deque(maxlen=MAX_CALLS)
        self._called.connect(self._on_called, Qt.ConnectionType.QueuedConnection)  # emitted in the server's thread
        session.modelReady.connect(self._on_model)

    @Slot()
    def open(self) -> ServerDialog:
        """Open the dialog; nothing is served until its button is pressed."""
        from decodescope.app.features.serving.panel import ServerDialog

        if self._dialog is None:
            self._dialog = dialog = ServerDialog(self._parent_window.window())
            dialog.port.setValue(self._port)
            dialog.startRequested.connect(self.start)
            dialog.stopRequested.connect(self.stop)
            dialog.destroyed.connect(self._on_closed)
        self._show_state()
        self._dialog.show()
        self._dialog.raise_()
        self._dialog.activateWindow()
        return self._dialog

    @Slot(int)
    def start(self, port: int = DEFAULT_PORT) -> None:
        """Serve the selected model on this computer, with a new key; tell in the dialog if that is impossible."""
        from decodescope.core import server

        info, self._load = self._session.model, self._loading.request()
        if self.server is not None or not self._load.model:
            return
        self._port = port
        self._runs = runs = ServedRuns(self._session, self._make_request, self)
        runs.changed.connect(self._show_counts)
        context = info.context if info is not None and info.name == self._load.model else None
        try:
            if remote.is_address(self._load.model):
                raise server.ServerError(
                    tr("{model} runs in another engine, which serves it already.").format(model=self._load.model),
                    tr("Use the address of that engine, or choose a local model."),
                )
            served = server.ServedModel(_api_name(self._load.model), context)
            self._calls.clear()
            self.server = server.HttpServer(
                served, runs.run, key=server.new_key(), port=port, on_call=self._called.emit
            )
            self.server.start()
        except DecodescopeError as error:
            self._close_server()
            self._show_state()
            if self._dialog is not None:
                self._dialog.show_status(join_sentences(error.cause, error.remedy), "danger")
            return
        self._port = self.server.port
        self._show_state()
        self.changed.emit(True)

    @Slot()
    def stop(self) -> None:
        """Stop serving; requests in progress end."""
        if self.server is None:
            return
        self._close_server()
        self._show_state()
        self.changed.emit(False)

    @property
    def has_started_run(self) -> bool:
        """Whether the latest run answers a request: its errors and notices concern the client."""
        return self._runs is not None and self._runs.has_started(self._session.latest)

    def close(self) -> None:
        """Stop serving when the window closes."""
        self._close_server()

    def _close_server(self) -> None:
        if self._runs is not None:
            self._runs.close()  # first: the server's threads wait for it
            self._runs.deleteLater()
            self._runs = None
        if self.server is not None:
            self.server.stop()
            self.server = None

    def _make_request(self, request: ServedRequest, ids: tuple[int, ...], text: str) -> RunRequest:
        """Return a request of a client as one of the window: its model, adapters and cached prefixes."""
        return RunRequest(
            ids, strategy=request.strategy or "greedy", config=dict(request.settings), seed=request.seed,
            top_n=max(request.top_n, self._compute.top_n), prefix_budget=self._compute.prefix_budget,
            memory_fallback=self._compute.memory_fallback, load=self._load, adapters=self._adapters.choices,
            prompt_text=text,
        )  # fmt: skip

    def _show_state(self) -> None:
        if self._dialog is None:
            return
        if self.server is None:
            self._dialog.show_off(_api_name(self._loading.request().model))
            self._dialog.show_status(tr("Off. Nothing is served."))
        else:
            self._dialog.show_on(self.server.model.name, self.server.port, self.server.address, self.server.key)
            self._dialog.show_calls(list(self._calls))
            self._show_counts()

    def _show_counts(self) -> None:
        """Show how many calls were answered and refused, and why the last one was refused."""
        if self._dialog is None or self.server is None:
            return
        counts = self.server.counts
        sentences = [tr("On.")]
        if self._runs is not None and self._runs.is_answering:
            sentences.append(tr("An answer is being written."))
        sentences.append(counts.sentence())
        if counts.last_refusal:
            sentences.append(tr("Last refusal: {reason}").format(reason=counts.last_refusal))
        self._dialog.show_status(join_sentences(*sentences), "finished")

    @Slot(str)
    def _on_called(self, text: str) -> None:
        """List a call that was answered or refused."""
        self._calls.append(f"{time.strftime('%H:%M:%S')}  {text}")
        if self._dialog is not None and self.server is not None:
            self._dialog.show_calls(list(self._calls))
            self._show_counts()

    @Slot(object)
    def _on_model(self, _info: ModelInfo) -> None:
        """Stop serving when another model is selected: a request would load the served one again."""
        selected = self._loading.request()
        if self.server is None:
            self._show_state()
        elif selected.model == self._load.model:
            self._load = selected  # with other weights, or on another device
        else:
            name = self.server.model.name
            self.stop()
            text = tr("“{model}” is no longer served, because another model was selected.").format(model=name)
            self._messages.show_notice(text, tr("Server stopped"))

    @Slot()
    def _on_closed(self) -> None:
        self._dialog = None


def _api_name(model: str) -> str:
    """Return the name of a model for clients: that of its file or folder, without the path."""
    if model.startswith(("/", "~", ".")) or "\\" in model or PurePath(model).is_absolute():
        return PurePath(model.replace("\\", "/")).name
    return model
