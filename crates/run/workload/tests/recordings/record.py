"""Records the output of a command with its times, as an asciicast (version 2) file.

    python record.py FILE ORIGIN pty|pipe COMMAND...

With `pty` the command writes to a terminal of 80 columns, with `pipe` to a pipe; both streams go to the same place.
"""

import codecs
import fcntl
import json
import os
import pty
import struct
import subprocess
import sys
import termios
import time
import tty

WIDTH, HEIGHT = 80, 24
# Output that arrives within this time is one event, to keep the files small.
SAME_EVENT_S = 0.005


def main():
    path, origin, output, *command = sys.argv[1:]
    if output == "pty":
        reader, writer = pty.openpty()
        tty.setraw(writer)
        fcntl.ioctl(writer, termios.TIOCSWINSZ, struct.pack("HHHH", HEIGHT, WIDTH, 0, 0))
    else:
        reader, writer = os.pipe()
    environment = dict(os.environ, PYTHONUNBUFFERED="1", TERM="xterm-256color")
    began = time.monotonic()
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=writer, stderr=writer, env=environment)
    os.close(writer)
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    events = []
    while chunk := read(reader):
        now, text = time.monotonic() - began, decoder.decode(chunk)
        if events and now - events[-1][0] < SAME_EVENT_S:
            events[-1][2] += text
        else:
            events.append([round(now, 3), "o", text])
    header = {"version": 2, "width": WIDTH, "height": HEIGHT, "origin": origin, "output": output}
    with open(path, "w") as file:
        for line in [header, *events]:
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
    print(f"{path}: {os.path.getsize(path)} bytes, exit code {child.wait()}")


def read(reader):
    """The next output; empty at its end, where a terminal reports an error."""
    try:
        return os.read(reader, 1 << 16)
    except OSError:
        return b""


main()
