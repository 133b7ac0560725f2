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
        """Waits for the next sample; returns the moments before and after it was read, power and energy in joules."""
        self.write(":COMM:WAIT 1")
        # The wait is over when the meter answers the next query.
        self.ask(":STAT:COND?")
        now = time.monotonic()
        power, energy, _ = self.ask(":NUM:NORM:VAL?").split(",")
        read = time.monotonic()
        # The register is read last: an update between it and the values would make the next wait return the same values.
        events = int(self.ask(":STAT:EESR?"))
        check(events & 1 == 1, f"no update in {events}")
        check(events & 0b111001000 == 0, f"over-range in {events}")
        return now, read, float(power), float(energy) * 3600


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
    "SHELLY_3PHASE": ("/rpc/EM.GetStatus?id=0", lambda page: (page["total_act_power"], 0)),
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
    """No sample has come twice, and their sum and the meter's own integration agree with the truth.

    On a busy machine a sample is noticed late, so the meter's moments are those of the samples noticed soonest, and a
    sample that was read across the end of an interval may be of either.
    """
    phases = [sample[0] % 0.1 for sample in samples]
    offset = min(phases, key=lambda phase: sum((other - phase) % 0.1 for other in phases))
    number = lambda moment: int((moment - offset + 0.001) / 0.1)
    numbers = [number(sample[0]) for sample in samples]
    steps = [after - before for before, after in zip(numbers, numbers[1:])]
    counts = [sample[3] for sample in samples]
    check(all(before < after for before, after in zip(counts, counts[1:])), f"{name}: a sample came twice")
    certain = [sample for sample in samples if number(sample[0]) == number(sample[1])]
    first, last = certain[0], certain[-1]
    # A sample is shown 30 ms after the end of its interval.
    start, end = (number(sample[0]) * 0.1 + offset - 0.03 for sample in (first, last))
    true = energy_at(rows, end) - energy_at(rows, start)
    counted = last[3] - first[3]
    check(abs(counted / true - 1) < 0.005, f"{name}: {counted} J counted, {true} J true")
    if set(steps) == {1} and len(certain) == len(samples):
        summed = sum(sample[2] for sample in samples[1:]) * 0.1
        check(abs(summed / true - 1) < 0.005, f"{name}: {summed} J summed, {true} J true")


def main():
    meters = {"tcp": Wt310(open_socket()), "serial": Wt310(open_serial())}
    for meter in meters.values():
        meter.start()
    plugs = {name: read(get(name, path)) for name, (path, read) in PLUGS.items()}
    samples = {name: [] for name in meters}
    threads = [threading.Thread(target=watch, args=(meter, 5.0, samples[name])) for name, meter in meters.items()]
    for thread in threads:
        thread.start()
    # The power is steady at both ends of the time that is compared.
    time.sleep(0.4)
    work = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
    for thread in threads:
        thread.join()
    work.wait()
    time.sleep(0.2)
    rows = truth()
    for name in meters:
        check_wt310(name, samples[name], rows)
    powers = [sample[2] for sample in samples["tcp"]]
    check(max(powers) > 1.3 * powers[0], "the work is not seen")
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
