"""Reads the meters of a simulated node with nothing but sockets and files, while the node idles and then works.

Prints one line for each check that fails; the exit code is 1 then.
"""

import json
import os
import socket
import subprocess
import sys
import termios
import threading
import time
import urllib.error
import urllib.request

failed = []


def check(is_good, what):
    if not is_good:
        failed.append(what)
        print("failed:", what, flush=True)


def spec(name):
    family, _, address = os.environ["SWEETSPOT_METER_" + name].partition(":")
    return address


class Wt310:
    """A WT310E behind a file: a socket or a serial line."""

    def __init__(self, file):
        self.file = file

    def write(self, command):
        self.file.write((command + "\n").encode())

    def ask(self, command):
        self.write(command)
        return self.file.readline().decode().strip()

    def start(self):
        self.write("*CLS")
        self.write("*CLS")
        for command in (
            ":STAT:QMES ON", ":COMM:HEAD OFF", ":NUM:FORM ASCII", ":SYST:COMM:COMM WT300", ":COMM:VERB ON",
            ":SAMP:RATE 0.1", ":NUM:NORM:NUM 3", ":NUM:NORM:ITEM1 P", ":NUM:NORM:ITEM2 WH", ":NUM:NORM:ITEM3 TIME",
            ":INTEG:MODE NORMAL", ":INTEG:STAR", ":STAT:FILT1 FALL",
        ):
            self.write(command)
            answer = self.ask(":STAT:ERR?")
            check(answer == '0,"No error"', f"{command}: {answer}")
        identity = self.ask("*IDN?").split(",")
        check(identity[:2] == ["YOKOGAWA", "WT310E"] and len(identity) == 4, f"identity {identity}")
        self.ask(":STAT:EESR?")

    def sample(self):
        """Waits for the next sample; returns the moment, power and energy in joules."""
        self.write(":COMM:WAIT 1")
        events = int(self.ask(":STAT:EESR?"))
        now = time.monotonic()
        power, energy, _ = self.ask(":NUM:NORM:VAL?").split(",")
        check(events & 1 == 1, f"no update in {events}")
        check(events & 0b111001000 == 0, f"over-range in {events}")
        return now, float(power), float(energy) * 3600


def open_socket():
    host, port = spec("WT310").removeprefix("tcp://").split(":")
    return socket.create_connection((host, int(port)), timeout=5).makefile("rwb", buffering=0)


def open_serial():
    descriptor = os.open(spec("WT310_SERIAL"), os.O_RDWR | os.O_NOCTTY)
    check(termios.tcgetattr(descriptor)[3] & (termios.ICANON | termios.ECHO) == 0, "the serial line is not raw")
    return os.fdopen(descriptor, "r+b", buffering=0)


def get(name, path):
    with urllib.request.urlopen(spec(name) + path, timeout=5) as answer:
        return json.load(answer)


PLUGS = {
    "SHELLY": ("/rpc/Switch.GetStatus?id=0", lambda page: (page["apower"], page["aenergy"]["total"] * 3600)),
    "SHELLY_GEN1": ("/meter/0", lambda page: (page["power"], page["total"] * 60)),
    "TASMOTA": (
        "/cm?cmnd=Status%2010",
        lambda page: (page["StatusSNS"]["ENERGY"]["Power"], page["StatusSNS"]["ENERGY"]["Total"] * 3.6e6),
    ),
    "TASMOTA_OLD": (
        "/cm?cmnd=Status%208",
        lambda page: (page["StatusPWR"]["Power"], page["StatusPWR"]["Total"] * 3.6e6),
    ),
    "REDFISH": (
        "/redfish/v1/Chassis/1/EnvironmentMetrics",
        lambda page: (page["PowerWatts"]["Reading"], page["EnergykWh"]["Reading"] * 3.6e6),
    ),
    "REDFISH_OLD": (
        "/redfish/v1/Chassis/1/Power",
        lambda page: (page["PowerControl"][0]["PowerConsumedWatts"], 0),
    ),
}


def truth():
    """Moments and the true energies at the wall up to each."""
    with open(os.path.join(os.environ["SWEETSPOT_SIM"], "truth.csv")) as file:
        rows = [line.split(",") for line in file.read().splitlines()[1:] if line.count(",") == 4]
    return [(int(row[0]) * 1e-9, float(row[1])) for row in rows]


def energy_at(rows, moment):
    for (before, low), (after, high) in zip(rows, rows[1:]):
        if before <= moment <= after:
            return low + (high - low) * (moment - before) / (after - before)
    raise ValueError("no truth for this moment")


def watch(meter, seconds, samples):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        samples.append(meter.sample())


def check_wt310(name, samples, rows):
    """Every sample has come once, and their sum and the meter's own integration agree with the truth."""
    gaps = [after[0] - before[0] for before, after in zip(samples, samples[1:])]
    count = round((samples[-1][0] - samples[0][0]) / 0.1)
    check(abs(count - len(gaps)) <= 1, f"{name}: {len(gaps)} samples in {count} intervals")
    # A sample is shown 30 ms after the end of its interval.
    start, end = samples[0][0] - 0.03, samples[-1][0] - 0.03
    true = energy_at(rows, end) - energy_at(rows, start)
    summed = sum(power for _, power, _ in samples[1:]) * 0.1
    counted = samples[-1][2] - samples[0][2]
    check(abs(summed / true - 1) < 0.005, f"{name}: {summed} J summed, {true} J true")
    check(abs(counted / true - 1) < 0.005, f"{name}: {counted} J counted, {true} J true")


def main():
    meters = {"tcp": Wt310(open_socket()), "serial": Wt310(open_serial())}
    for meter in meters.values():
        meter.start()
    plugs = {name: read(get(name, path)) for name, (path, read) in PLUGS.items()}
    samples = {name: [] for name in meters}
    work = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
    threads = [threading.Thread(target=watch, args=(meter, 4.0, samples[name])) for name, meter in meters.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    work.wait()
    time.sleep(0.2)
    rows = truth()
    for name in meters:
        check_wt310(name, samples[name], rows)
    check(max(power for _, power, _ in samples["tcp"]) > 1.3 * samples["tcp"][0][1], "the work is not seen")
    for name, (path, read) in PLUGS.items():
        power, energy = read(get(name, path))
        idle, before = plugs[name]
        check(power > 200, f"{name} shows {power} W")
        check(energy >= before, f"{name} has lost energy")
    try:
        get("REDFISH", "/redfish/v1/Nothing")
        check(False, "an unknown resource was found")
    except urllib.error.HTTPError as error:
        check(error.code == 404, f"status {error.code}")
    check(meters["tcp"].ask(":STAT:ERR?") == '0,"No error"', "an error is left in the queue")
    sys.exit(1 if failed else 0)


main()
