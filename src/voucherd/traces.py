"""Traces for OpenTelemetry, where an address for them is set. Where none is, not even the library is loaded."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any, Final

import structlog

from voucherd.http import Request, method_word

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Span

MISSING: Final = (
    "traces are wanted (VOUCHERD_TRACES_URL or OTEL_EXPORTER_OTLP_ENDPOINT is set), but the library for them is not "
    "installed: pip install 'voucherd[traces]'"
)
LINKS_MAX: Final = 128
"""Calls that the span of a batch is linked to; OpenTelemetry keeps no more."""
STOP_MS_MAX: Final = 2_000
"""How long the last spans may take to leave when the process stops."""

logger = structlog.get_logger(__name__)


class _Nothing:
    """A span where no traces are wanted."""

    __slots__ = ()

    def __enter__(self) -> None:
        """Nothing begins."""

    def __exit__(self, *_error: object) -> None:
        """Nothing ends."""


_NOTHING: Final = _Nothing()


class Tracing:
    """Makes spans; they leave in a thread of the library's own, and are dropped where nobody takes them."""

    def __init__(self, provider: TracerProvider) -> None:
        from opentelemetry import context, trace  # noqa: PLC0415 - Loaded only where traces are wanted.
        from opentelemetry.trace.propagation import tracecontext  # noqa: PLC0415 - The same.

        self._provider = provider
        self._tracer = provider.get_tracer("voucherd")
        self._trace = trace
        self._nowhere = context.Context()
        self._headers = tracecontext.TraceContextTextMapPropagator()

    @contextmanager
    def call(self, request: Request) -> Iterator[Callable[[int], None]]:
        """The span of one call, below the client's own; it is told the status of the answer."""
        given = request.traceparent
        parent = self._nowhere if given is None else self._headers.extract({"traceparent": given})
        method = method_word(request.method)

        def told(status: int) -> None:
            span.set_attribute("http.response.status_code", status)
            if status >= 500:
                span.set_status(self._trace.StatusCode.ERROR)

        with self._span(method, context=parent, kind=self._trace.SpanKind.SERVER) as span:
            try:
                yield told
            finally:
                self._describe(span, request, method)

    @contextmanager
    def _span(self, name: str, **more: Any) -> Iterator[Span]:
        """A span in which only the kind of an error is told: its text may hold a row of the database."""
        with self._tracer.start_as_current_span(
            name, record_exception=False, set_status_on_exception=False, **more
        ) as span:
            try:
                yield span
            except BaseException as error:
                span.set_status(self._trace.StatusCode.ERROR, type(error).__name__)
                raise

    def _describe(self, span: Span, request: Request, method: str) -> None:
        """Say what the call was, in the words of OpenTelemetry; never a path, a query or a body."""
        span.update_name(f"{method} {request.route}" if request.route else method)
        span.set_attributes({"http.route": request.route, "http.request.method": method})
        if request.caller is not None:
            span.set_attributes(
                {"voucherd.key": request.caller.key_id, "voucherd.company": request.caller.company_id}
            )

    def wait(self, request: Request | None) -> None:
        """Begin the span of a call's wait for a batch."""
        if request is not None:
            request.gate = (
                self._tracer.start_span("gate"),
                self._trace.get_current_span().get_span_context(),
            )

    @contextmanager
    def batch(self, name: str, requests: Iterable[Request | None]) -> Iterator[None]:
        """The span of a batch: it is of no single call, so it is linked to those that it serves."""
        links = []
        for request in requests:
            if request is not None and request.gate is not None:
                span, context = request.gate
                request.gate = None
                span.end()
                links.append(self._trace.Link(context))
        calls = {"voucherd.calls": len(links)}
        with self._span(f"batch {name}", context=self._nowhere, links=links[:LINKS_MAX], attributes=calls):
            yield

    def step(self, name: str) -> AbstractContextManager[Any]:
        """The span of a step of what is done here."""
        return self._span(name)

    def outgoing(self, name: str, supplier: str) -> AbstractContextManager[Any]:
        """The span of a call of ours to somebody else."""
        return self._span(name, kind=self._trace.SpanKind.CLIENT, attributes={"voucherd.supplier": supplier})

    def traceparent(self) -> str | None:
        """The present span, as the next program is told of it."""
        carrier: dict[str, str] = {}
        self._headers.inject(carrier)
        return carrier.get("traceparent")

    def stop(self) -> None:
        """Let the last spans leave."""
        self._provider.force_flush(STOP_MS_MAX)
        self._provider.shutdown()


active: Tracing | None = None
"""What makes spans in this process; None where no traces are wanted, which is all that a call looks at."""


def start(url: str | None) -> None:
    """Send traces to this address from now on; without one, or without the library, nothing changes."""
    global active  # noqa: PLW0603 - One for the process, as the log is.
    if url is None or active is not None:
        return
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415
        from opentelemetry.sdk.resources import Resource  # noqa: PLC0415
        from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
        from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415
    except ImportError:
        # Sales don't depend on being watched.
        logger.error("traces_missing", reason=MISSING)
        return
    provider = TracerProvider(resource=Resource.create({"service.name": "voucherd"}), shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=f"{url}/v1/traces")))
    active = Tracing(provider)


def stop() -> None:
    """Let the last spans leave, and make no more."""
    global active
    ending, active = active, None
    if ending is not None:
        ending.stop()


def step(name: str) -> AbstractContextManager[Any]:
    """The span of a step; nothing where no traces are wanted."""
    return _NOTHING if active is None else active.step(name)


def outgoing(name: str, supplier: str) -> AbstractContextManager[Any]:
    """The span of a call to a supplier; nothing where no traces are wanted."""
    return _NOTHING if active is None else active.outgoing(name, supplier)
