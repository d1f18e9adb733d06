"""The load generator: a process of its own that reads a job from stdin and writes its tally to stdout.

It must not be the bottleneck on a machine that it shares with the server, so there is no HTTP library in it: the
request bytes are prepared beforehand, and of an answer only the status, the length and the trx are looked at.
"""

from __future__ import annotations

import asyncio
import gc
import resource
import sys
from time import perf_counter, process_time
from typing import Final, cast

import msgspec
import uvloop

from bench import machine
from bench.jobs import Job, Tally, spread

HOST: Final = "127.0.0.1"
OPENED_AT_ONCE: Final = 200
KEPT_BYTES: Final = 65_536
"""Of a long answer only the beginning is kept; the rest is counted."""

_HEAD_END: Final = b"\r\n\r\n"
_LENGTH: Final = b"content-length: "
_LAST_CHUNK: Final = b"0\r\n\r\n"
_TRX: Final = b'"trx":"'


class Load:
    """One job: its prepared requests, its connections and what they have seen in the measured time."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.first_s: list[float] = []
        self.second_s: list[float] = []
        self.rounds = 0
        self.rounds_by_key = [0] * len(job.keys)
        self.failures = 0
        self.failure = ""
        self.bytes_max = 0
        self.over = False
        self.busy = 0
        self.idle = asyncio.Event()
        self.held: list[Client] = []
        self.opening = [request.encode() for request in _openings(job)]
        self.closing = [request.encode() for request in _closings(job)]
        self.sign = f'"orderStatus":"{job.ends_as}"'.encode()
        self._began = 0.0
        self._ended = 0.0
        self._cpu_s = [0.0, 0.0, 0.0]

    async def run(self) -> Tally:
        """Open the connections, load the server, and count what happened between the warm-up and the end."""
        job, loop = self.job, asyncio.get_running_loop()
        clients: list[Client] = []
        for start in range(0, job.connections, OPENED_AT_ONCE):
            numbers = range(start, min(start + OPENED_AT_ONCE, job.connections))
            opened = await asyncio.gather(
                *(loop.create_connection(lambda n=n: Client(self, n), HOST, job.port) for n in numbers)  # type: ignore[misc]
            )
            clients += [client for _, client in opened]
        gc.freeze()
        gc.disable()  # Nothing here makes cycles, and a collection would look like a slow server.
        self.busy = len(clients)
        for client in clients:
            client.begin()
        await asyncio.sleep(job.warm_s)
        self._start()
        if job.load_s:
            await asyncio.sleep(job.load_s)
            self._stop()
        try:
            await asyncio.wait_for(self.idle.wait(), job.patience_s)
        except TimeoutError:
            self.fail(b"no answer in time")
        if not job.load_s:
            self._stop()
        for client in clients:
            client.leave()
        return self._tally()

    def _start(self) -> None:
        self._cpu_s = [-used for used in self._used()]
        if self.job.warm_s:
            self.first_s, self.second_s, self.rounds = [], [], 0
            self.rounds_by_key = [0] * len(self.job.keys)
        self._began = perf_counter()

    def _stop(self) -> None:
        self._ended = perf_counter()
        self._cpu_s = [before + used for before, used in zip(self._cpu_s, self._used(), strict=True)]
        # Answers to what is in flight still come, and count no more.
        self._counted = self.first_s, self.second_s, self.rounds, list(self.rounds_by_key)
        self.first_s, self.second_s = [], []
        self.over = True

    def _used(self) -> tuple[float, float, float]:
        job = self.job
        return process_time(), machine.family_cpu_s(job.server_pid), machine.family_cpu_s(job.database_pid)

    def _tally(self) -> Tally:
        first_s, second_s, rounds, rounds_by_key = self._counted
        return Tally(
            rounds=rounds,
            seconds=self._ended - self._began,
            first=spread(first_s),
            second=spread(second_s),
            failures=self.failures,
            failure=self.failure,
            bytes_max=self.bytes_max,
            rounds_by_key=rounds_by_key,
            generator_cpu_s=self._cpu_s[0],
            server_cpu_s=self._cpu_s[1],
            database_cpu_s=self._cpu_s[2],
        )

    def fail(self, answer: bytes) -> None:
        """Count an answer that is not as it should be, and keep the first."""
        self.failures += 1
        self.failure = self.failure or answer[:600].decode("latin-1")

    def rest(self) -> None:
        """One connection has nothing more to ask."""
        self.busy -= 1
        if not self.busy:
            self.idle.set()

    def hold(self, client: Client) -> None:
        """Keep a created order back until all are created."""
        self.held.append(client)
        if len(self.held) == self.job.connections:
            for one in self.held:
                one.finalise()


class Client(asyncio.Protocol):
    """One kept-alive connection with one call in flight."""

    def __init__(self, load: Load, number: int) -> None:
        self._load = load
        self._next = number
        self._left = load.job.rounds_max or sys.maxsize
        self._turn = 0
        self._trx = b""
        self._finalising = False
        self._sent_at = 0.0
        self._kept = b""
        self._tail = b""
        self._size = 0
        self._end = 0
        self._resting = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are transports in all but name.
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._resting:
            self._load.fail(b"the server closed a connection")
            self._rest()

    def begin(self) -> None:
        """Ask for the first part of the next round."""
        load = self._load
        if load.over or not self._left:
            self._rest()
            return
        self._left -= 1
        self._turn = self._next % len(load.opening)
        self._next += load.job.connections
        self._finalising = False
        self._sent_at = perf_counter()
        self._transport.write(load.opening[self._turn])

    def finalise(self) -> None:
        """Ask for the second part of a lifecycle."""
        self._finalising = True
        self._sent_at = perf_counter()
        operation = self._load.job.operation.encode()
        closing = self._load.closing[self._turn]
        self._transport.write(b"PATCH /api/1.03/order/%b/%b%b" % (operation, self._trx, closing))

    def leave(self) -> None:
        """Close the connection."""
        self._resting = True
        self._transport.close()

    def _rest(self) -> None:
        if not self._resting:
            self._resting = True
            self._load.rest()

    def data_received(self, data: bytes) -> None:
        self._size += len(data)
        if self._end == 0:
            kept = self._kept = self._kept + data if self._kept else data
            head = kept.find(_HEAD_END)
            if head < 0:
                return
            at = kept.find(_LENGTH, 0, head)
            if at < 0:
                self._end = -1  # The end shows itself: a last chunk of no length.
            else:
                self._end = head + 4 + int(kept[at + len(_LENGTH) : kept.find(b"\r", at)])
        elif len(self._kept) < KEPT_BYTES:
            self._kept += data
        if self._end < 0:
            self._tail = (self._tail + data)[-len(_LAST_CHUNK) :]
            if self._tail != _LAST_CHUNK:
                return
        elif self._size < self._end:
            return
        answer, size = self._kept, self._size
        self._kept, self._tail, self._size, self._end = b"", b"", 0, 0
        self._answered(answer, size, perf_counter() - self._sent_at)

    def _answered(self, answer: bytes, size: int, took_s: float) -> None:
        load = self._load
        if self._finalising:
            load.second_s.append(took_s)
            load.bytes_max = max(load.bytes_max, size)
            if answer[9:12] != b"200" or load.sign not in answer:
                load.fail(answer)
            self._count()
            self.begin()
            return
        load.first_s.append(took_s)
        if not load.job.operation:
            load.bytes_max = max(load.bytes_max, size)
            if answer[9:12] != b"200":
                load.fail(answer)
            self._count()
            self.begin()
            return
        at = answer.find(_TRX) + len(_TRX)
        if answer[9:12] != b"201":
            load.fail(answer)
            self.begin()
            return
        self._trx = answer[at : answer.find(b'"', at)]
        if load.job.together:
            load.hold(self)
        else:
            self.finalise()

    def _count(self) -> None:
        self._load.rounds += 1
        self._load.rounds_by_key[self._turn % len(self._load.rounds_by_key)] += 1


def _openings(job: Job) -> list[str]:
    """The first request of a round, for every key; or the paths, the i-th with the i-th key."""
    if job.cookie:
        head = f" HTTP/1.1\r\nhost: {HOST}\r\naccept: text/html\r\ncookie: {job.cookie}\r\n\r\n"
        return [f"GET {path}{head}" for path in job.paths]
    if not job.operation:
        return [
            f"GET {path} HTTP/1.1\r\nhost: {HOST}\r\nauthorization: Bearer {job.keys[at % len(job.keys)]}\r\n\r\n"
            for at, path in enumerate(job.paths)
        ]
    body = (
        f'{{"items":[{{"productSlug":"{job.slug}","amount":{job.amount}}}],'
        f'"paymentCurrency":"EUR","reference":"bench"}}'
    )
    return [
        f"POST /api/1.03/order HTTP/1.1\r\nhost: {HOST}\r\nauthorization: Bearer {key}\r\n"
        f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n{body}"
        for key in job.keys
    ]


def _closings(job: Job) -> list[str]:
    """What follows the trx in the second request of a lifecycle, for every key."""
    outcome = f"x-sandbox-outcome: {job.outcome}\r\n" if job.outcome else ""
    return [
        f" HTTP/1.1\r\nhost: {HOST}\r\nauthorization: Bearer {key}\r\n{outcome}content-length: 0\r\n\r\n"
        for key in job.keys
    ]


def main() -> None:
    """Do the one job that stdin holds."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 65_536)), hard))
    job = msgspec.json.decode(sys.stdin.buffer.read(), type=Job)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        tally = runner.run(_run(job))
    sys.stdout.buffer.write(msgspec.json.encode(tally))


async def _run(job: Job) -> Tally:
    # The event inside belongs to the running loop.
    return await Load(job).run()


if __name__ == "__main__":
    main()
