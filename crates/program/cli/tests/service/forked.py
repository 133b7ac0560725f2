"""Connects to the service, forks and exits. The child keeps the connection, waits for a line on standard input, and then
sends the requests that the test wants to make in the name of the process that has ended."""

import os
import socket
import sys

connection = socket.socket(socket.AF_UNIX)
connection.settimeout(20)
connection.connect(sys.argv[1])
if sys.argv[3] == "greet":
    connection.sendall(b'{"hello": {"version": 1}}\n')
    connection.recv(65536)
if os.fork() > 0:
    os._exit(0)
print("forked", flush=True)
sys.stdin.readline()
replies = b""
try:
    connection.sendall(sys.argv[2].encode())
    connection.shutdown(socket.SHUT_WR)
    while chunk := connection.recv(65536):
        replies += chunk
except OSError as error:
    print(repr(error), file=sys.stderr)
sys.stdout.write(replies.decode())
