"""Phases of work on a device, timed by waiting for it or by its own events."""

import textwrap

from linked_programs import LinkedPrograms, control

FAKE_EVENTS = """
import time
class Event:
    delay = 0
    def __init__(self, enable_timing=False): assert enable_timing
    def record(self): self.at = time.monotonic_ns() + Event.delay
    def query(self): return time.monotonic_ns() >= self.at
    def synchronize(self):
        while not self.query(): pass
    def elapsed_time(self, other): return (other.at - self.at) / 1e6
"""


class DeviceEvents(LinkedPrograms):
    def test_sync_is_called_before_each_time(self):
        control(self.folder)
        out = self.run_program(
            """
            import time
            calls = []
            def sync(): time.sleep(0.02); calls.append(1)
            with s.phase("gpu", sync=sync): pass
            try:
                with s.phase("gpu", sync=sync): raise KeyError
            except KeyError: pass
            print(len(calls))
            """
        )
        self.assertEqual(out, "3")
        ((records, _),) = self.rings()
        self.assertGreater(records[1][2] - records[0][2], 19_000_000)

    def test_device_events_are_written_when_they_are_complete(self):
        control(self.folder)
        self.run_program(
            FAKE_EVENTS
            + textwrap.dedent(
                """
                Event.delay = 200_000_000
                with s.phase("warm", events=Event): pass
                start = time.monotonic_ns()
                with s.phase("outer", events=Event):
                    with s.phase("inner", events=Event): time.sleep(0.01)
                assert time.monotonic_ns() - start < 150_000_000, "it blocked"
                s.progress(1)
                time.sleep(0.25)
                s.progress(2)
                with s.phase("last", events=Event): pass
                """
            )
        )
        ((records, _),) = self.rings()
        marks = [kind + name for kind, name, _, _ in records]
        items = "items(other names)"
        self.assertEqual([mark for mark in marks if mark != "=warm"], [items, items, "=inner", "=outer", "=last"])
        spans = {name: (at, value) for kind, name, at, value in records if kind == "="}
        begin, end = spans["inner"]
        self.assertTrue(9_000_000 < end - begin < 150_000_000, end - begin)
        self.assertTrue(spans["outer"][0] <= begin and end <= spans["outer"][1])
        # The device is always 200 ms behind, and so is the anchor.
        self.assertLess(spans["warm"][0], spans["outer"][0])

    def test_events_lie_on_the_monotonic_clock(self):
        control(self.folder)
        out = self.run_program(
            FAKE_EVENTS
            + textwrap.dedent(
                """
                with s.phase("warm", events=Event): pass
                a = time.monotonic_ns()
                with s.phase("gpu", events=Event): time.sleep(0.01)
                print(a, time.monotonic_ns())
                """
            )
        )
        first, last = map(int, out.split())
        ((records, _),) = self.rings()
        spans = {name: (at, value) for kind, name, at, value in records}
        self.assertAlmostEqual(spans["gpu"][0], first, delta=50_000_000)
        self.assertAlmostEqual(spans["gpu"][1], last, delta=50_000_000)

    def test_failing_events_are_lost_and_reported(self):
        control(self.folder)
        self.run_program(
            FAKE_EVENTS
            + textwrap.dedent(
                """
                with s.phase("a", events=Event): pass
                Event.elapsed_time = lambda self, other: 1 / 0
                with s.phase("b", events=Event): pass
                def broken(enable_timing): raise RuntimeError("no device")
                with s.phase("c", events=broken): pass
                s.progress(1)
                """
            )
        )
        ((records, header),) = self.rings()
        self.assertEqual(header["lost"], 2)
        self.assertIn("phase is lost", self.errors)
