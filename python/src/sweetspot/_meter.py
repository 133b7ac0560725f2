"""Who measures: the service where it runs, otherwise a measuring process of this program's own.

Both are the same program and answer the same requests (docs/reference/metrics.md). This program's own process gets each request over
its link, as it would from the service (crates/hardware/service/src/monitor_link.rs). It ends when the link is closed.
"""

from __future__ import annotations

import atexit
import os
import socket
import subprocess
import threading

from ._http import Answer, CounterError, ask_service, request_bytes, service_socket
from ._program import ProgramError, find_program

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    class Meter(Protocol):
        """Answers requests about counters."""

        name: str

        def ask(self, method: str, target: str) -> Answer: ...


# The first answer waits until the driver is loaded and the GPUs have been read.
FIRST_TIMEOUT_S = 60.0
_CLIENT = b'{"client":{"may_read_processors":false}}\n'


class Service:
    """The service of this machine."""

    name = "service"

    def ask(self, method: str, target: str) -> Answer:
        return ask_service(method, target)


class Process:
    """A measuring process of this program's own."""

    name = "process"

    def __init__(self, devices: tuple[str, ...]) -> None:
        arguments = [find_program(), "monitor", "--private"]
        if devices:
            arguments += ["--device", ",".join(devices)]
        self._link, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            with theirs:
                # A Ctrl-C in the terminal must not end it before the last answer.
                self._process = subprocess.Popen(
                    arguments, stdin=theirs.fileno(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True
                )
        except OSError as problem:
            self._link.close()
            raise ProgramError(f"cannot start {arguments[0]}: {problem}") from problem

    def ask(self, method: str, target: str) -> Answer:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            with theirs:
                socket.send_fds(self._link, [_CLIENT + request_bytes(method, target)], [theirs.fileno()])
        except OSError:
            ours.close()
            raise CounterError(self.end() or "the measuring process ended") from None
        return Answer(ours)

    def has_ended(self) -> bool:
        return self._process.poll() is not None

    def end(self) -> str | None:
        """Ends the process, and returns the error that it reported."""
        self._link.close()
        try:
            _, errors = self._process.communicate(timeout=5)
        except (subprocess.TimeoutExpired, ValueError):
            self._process.kill()
            self._process.wait()
            errors = b""
        lines = errors.decode(errors="replace").strip().splitlines()
        return (lines[-1].partition("sweetspot: ")[2] or lines[-1]) if lines else None

    def abandon(self) -> None:
        """Closes the link after a fork: the process belongs to the parent."""
        self._link.close()


_lock = threading.Lock()
_meters: dict[tuple[str, ...] | None, Meter] = {}


def meter_for(devices: tuple[str, ...] | None) -> tuple[Meter, bool]:
    """Who measures these GPUs (None for those that the program can see), and whether it has never answered yet."""
    with _lock:
        known = _meters.get(devices)
        if isinstance(known, Process) and known.has_ended():
            known.end()
            known = None
        if known is not None:
            return known, False
        meter: Meter = Service() if service_answers() else Process(devices or ())
        _meters[devices] = meter
        return meter, True


def use_own_process(devices: tuple[str, ...] | None) -> Meter:
    """Replaces a service that refuses these GPUs."""
    with _lock:
        meter = _meters[devices] = Process(devices or ())
        return meter


def forget_meter(devices: tuple[str, ...] | None) -> str | None:
    """Drops a meter that failed, and returns what its process reported: the next measurement starts another one."""
    with _lock:
        meter = _meters.pop(devices, None)
    return meter.end() if isinstance(meter, Process) else None


def service_answers() -> bool:
    """Whether the service measures the GPUs that this program can see. The GPUs of a simulated host are not its own."""
    if os.environ.get("SWEETSPOT_SIM") and not os.environ.get("SWEETSPOT_SOCKET"):
        return False
    if not os.path.exists(service_socket()):
        return False
    try:
        ask_service("GET", "/counters").body()
    except CounterError:
        return False
    return True


def service_devices(devices: tuple[str, ...] | None) -> tuple[str, ...]:
    """The GPUs as the service knows them: it does not see the environment of this program."""
    if devices is not None:
        return devices
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    return tuple(name.strip() for name in visible.split(",")) if visible else ()


def _after_fork() -> None:
    global _lock
    _lock = threading.Lock()
    for meter in _meters.values():
        if isinstance(meter, Process):
            meter.abandon()
    _meters.clear()


def _end_all() -> None:
    for devices in list(_meters):
        forget_meter(devices)


os.register_at_fork(after_in_child=_after_fork)
atexit.register(_end_all)
