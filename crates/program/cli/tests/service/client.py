"""Speaks to the service as a test tells it to: reads orders from standard input and prints what came of them, each as one
line of JSON."""

import json
import socket
import sys

TIMEOUT_S = 20
path = sys.argv[1]
connections = {}
received = {}


def connect(name):
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(TIMEOUT_S)
    connection.connect(path)
    connections[name] = connection
    received[name] = b""


def read(name, until):
    """Reads until these bytes have arrived or the other side has closed the connection."""
    is_closed = False
    while not is_closed and (until is None or until not in received[name]):
        try:
            chunk = connections[name].recv(65536)
        except ConnectionResetError:
            chunk = b""
        received[name] += chunk
        is_closed = not chunk
    data = received[name]
    if until is None or until not in data:
        received[name] = b""
        return {"bytes": data.decode("latin-1"), "closed": is_closed}
    line, _, received[name] = data.partition(until)
    return {"bytes": line.decode("latin-1"), "closed": False}


def obey(order):
    name, what = order["connection"], order["do"]
    if what == "open":
        connect(name)
    elif what == "send":
        connections[name].sendall(order["bytes"].encode("latin-1"))
    elif what == "read-line":
        return read(name, b"\n")
    elif what == "read-all":
        return read(name, None)
    elif what == "close":
        connections.pop(name).close()
    return {}


for line in sys.stdin:
    try:
        result = obey(json.loads(line))
    except OSError as error:
        result = {"error": repr(error)}
    print(json.dumps(result), flush=True)
