"""Runs programs with a link, each in its own process, and reads their rings."""

import os
import struct
import subprocess
import sys
import tempfile
import textwrap
import unittest

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "src")
KINDS = {1: "+", 2: "-", 3: "items", 4: "value", 5: "="}


def control(folder, capacity=1024, version=1, batch=0, tuning=0):
    data = struct.pack("<8sIIII", b"SWSPCTRL", version, 64, 32, capacity).ljust(64, b"\0")
    with open(os.path.join(folder, "control"), "wb") as file:
        file.write(data + struct.pack("<QQ", batch, tuning).ljust(256, b"\0"))


def read(path):
    """Reads the records of a ring that fit into one lap, and its header."""
    with open(path, "rb") as file:
        data = file.read()
    capacity, slots = struct.unpack_from("<II", data, 20)
    names = []
    for slot in range(slots):
        at = 256 + slot * 128
        names.append(data[at + 1 : at + 1 + data[at]].decode())
    records = []
    for place in range(capacity):
        at, value, word, _, sequence = struct.unpack_from("<QQIIQ", data, 256 + slots * 128 + place * 32)
        if sequence != place + 1:
            break
        records.append((KINDS[word >> 16], names[word & 0xFFFF], at, value))
    lost, refused, closed = struct.unpack_from("<QQQ", data, 128)
    pid, tid = struct.unpack_from("<II", data, 56)
    (rank,) = struct.unpack_from("<I", data, 36)
    return records, {"lost": lost, "refused": refused, "closed": closed, "pid": pid, "tid": tid, "rank": rank}


class LinkedPrograms(unittest.TestCase):
    """A test with a folder for the rings of the programs that it runs."""

    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        self.folder = place.name

    def run_program(self, text, link=True, **environment):
        variables = {k: v for k, v in os.environ.items() if k not in ("RANK", "LOCAL_RANK", "SWEETSPOT_LINK")}
        variables.update(PYTHONPATH=SOURCE, **environment)
        if link:
            variables["SWEETSPOT_LINK"] = self.folder
        program = "import sweetspot as s\n" + textwrap.dedent(text)
        done = subprocess.run([sys.executable, "-c", program], env=variables, capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.errors = done.stderr
        return done.stdout.strip()

    def rings(self):
        names = sorted(name for name in os.listdir(self.folder) if name.startswith("ring-"))
        return [read(os.path.join(self.folder, name)) for name in names]

    def marks(self):
        ((records, _),) = self.rings()
        return [kind + name for kind, name, _, _ in records]
