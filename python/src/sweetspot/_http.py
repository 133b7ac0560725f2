"""Requests to the measuring process, over a Unix socket of its own for each."""

from __future__ import annotations

import http.client
import json
import os
import select
import socket

_SOCKET = "/run/sweetspot/sweetspot.sock"
TIMEOUT_S = 15.0


class CounterError(Exception):
    """The service does not run, or it refused the request; the message says why."""


class Answer:
    """The answer to a request, which may arrive much later."""

    def __init__(self, connection: socket.socket, method: str) -> None:
        self._connection = connection
        self._method = method

    def body(self, timeout_s: float = TIMEOUT_S) -> str:
        """Waits for the answer; a refusal is an error."""
        with self._connection:
            self._connection.settimeout(timeout_s)
            response = http.client.HTTPResponse(self._connection, method=self._method)
            try:
                response.begin()
                body = response.read().decode()
            except (OSError, http.client.HTTPException, ValueError) as problem:
                raise CounterError(f"the measuring process does not answer: {problem}") from problem
            finally:
                response.close()
        if response.status == 200:
            return body
        try:
            message = str(json.loads(body)["error"])
        except (ValueError, KeyError, TypeError):
            message = f"the measuring process answered with status {response.status}"
        raise CounterError(message)

    def has_arrived(self) -> bool:
        """Whether the answer, or at least its beginning, is there."""
        return bool(select.select([self._connection], [], [], 0)[0])

    def forget(self) -> None:
        """Drops an answer that nobody needs."""
        self._connection.close()


def request_bytes(method: str, target: str) -> bytes:
    """The bytes of a request."""
    return f"{method} {target} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode()


def service_socket() -> str:
    """The path of the service's socket."""
    return os.environ.get("SWEETSPOT_SOCKET") or _SOCKET


def ask_service(method: str, target: str) -> Answer:
    """Sends a request to the service."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.settimeout(TIMEOUT_S)
        connection.connect(service_socket())
        connection.sendall(request_bytes(method, target))
    except OSError as problem:
        connection.close()
        raise CounterError(f"the service does not answer: {problem}") from problem
    return Answer(connection, method)
