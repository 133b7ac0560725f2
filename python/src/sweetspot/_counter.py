"""Named counters of the service: the energy of GPUs between two moments."""

import http.client
import json
import os
import socket
from urllib.parse import quote

_SOCKET = "/run/sweetspot/sweetspot.sock"
_TIMEOUT_S = 15.0


class CounterError(Exception):
    """The service does not run, or it refused the request; the message says why."""


class _Connection(http.client.HTTPConnection):
    """An HTTP connection over the Unix socket of the service."""

    def __init__(self):
        super().__init__("localhost", timeout=_TIMEOUT_S)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(os.environ.get("SWEETSPOT_SOCKET") or _SOCKET)


def _ask(method, target):
    connection = _Connection()
    try:
        connection.request(method, target)
        answer = connection.getresponse()
        body = answer.read().decode()
    except (OSError, http.client.HTTPException) as problem:
        raise CounterError(f"the service does not answer: {problem}") from problem
    finally:
        connection.close()
    if answer.status == 200:
        return body
    try:
        message = json.loads(body)["error"]
    except (ValueError, KeyError, TypeError):
        message = f"the service answered with status {answer.status}"
    raise CounterError(message)


class Counter:
    """A named counter of the service.

        with sweetspot.Counter("epoch") as counter: ...
        print(counter.energy_j, counter.average_power_w)

    `devices` are indices or UUIDs of GPUs, all if it is empty. A counter belongs to the user of the process, and a
    process of the same user can stop or read it by its name. After `stop()` or `read()` the attribute `result` has the
    document `sweetspot.counter/1`.
    """

    def __init__(self, name, devices=()):
        self.name = name
        self.devices = [str(device) for device in devices]
        self.result = None

    def start(self):
        """Starts the counter."""
        gpus = "?gpus=" + quote(",".join(self.devices)) if self.devices else ""
        self.result = json.loads(_ask("POST", self._path() + "/start" + gpus))
        return self

    def stop(self):
        """Stops the counter, and returns its energy in joules."""
        self.result = json.loads(_ask("POST", self._path() + "/stop"))
        return self.energy_j

    def read(self):
        """Returns the energy so far in joules."""
        self.result = json.loads(_ask("GET", self._path()))
        return self.energy_j

    def samples_csv(self):
        """Returns the power samples as CSV."""
        return _ask("GET", self._path() + "/samples")

    def delete(self):
        """Deletes the counter."""
        _ask("DELETE", self._path())

    @property
    def energy_j(self):
        """The energy in joules as of the last `stop()` or `read()`; None if unknown."""
        return (self.result or {}).get("energy_j")

    @property
    def average_power_w(self):
        """The mean power in watts as of the last `stop()` or `read()`; None if unknown."""
        return (self.result or {}).get("average_power_w")

    def _path(self):
        return "/counters/" + quote(self.name, safe="")

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.stop()
