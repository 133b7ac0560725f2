"""Trains with each real framework on a simulated GPU, and checks what the callbacks log and report; reads a study with pandas.

`scripts/python-packages-test` runs it. What a callback costs is printed and not checked: it depends on the machine.
"""

import csv
import importlib.metadata
import json
import os
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
EXAMPLES = os.path.join(HERE, "../../../examples/callbacks")
IDLE_W = 40.0
LOGGED = ("energy_j", "energy_error_j", "average_power_w")


def train(framework, folder, *arguments, last_step=0):
    """Runs an example under `measure` on a simulated GPU; returns its output, the measurement and the callback's times. A load
    on the GPU ends with the step `last_step` of each epoch, or with its validation."""
    script = os.path.join(EXAMPLES, f"{framework}_train.py")
    timed = [sys.executable, "-W", "ignore", os.path.join(HERE, "timed.py"), "times.json", str(last_step), framework, script]
    timed += arguments
    command = ["sweetspot", "simulate", "--gpu", "v100", "--", "sweetspot", "measure", "--progress", "none"]
    done = subprocess.run(
        [*command, "--export-json", "measured.json", "--", *timed], cwd=folder, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr

    def read(name):
        with open(os.path.join(folder, name)) as file:
            return json.load(file)

    return done.stdout, read("measured.json"), read("times.json")


def check_epochs(framework, logged, times, epochs):
    """Each epoch has its energy in the log, although the power falls before it ends."""
    assert len(logged) == epochs == len(times["exact_j"]), (logged, times)
    for epoch, ((energy, error, power), exact) in enumerate(zip(logged, times["exact_j"])):
        inner, outer = times["inner_ns"][epoch] / 1e9, times["outer_ns"][epoch] / 1e9
        print(
            f"{framework}, epoch {epoch + 1} of {inner:.1f} s: logged {energy:.1f} J, at most {error:.1f} J off; "
            f"exact {exact:.1f} J ({energy / exact - 1:+.2%})",
            flush=True,
        )
        # How near an estimate comes depends on how alike the ends of two epochs are, and that on what else the machine does: it
        # must lie within the error that it names. The exact measurement begins and ends some milliseconds beside the callback's.
        assert abs(energy - exact) <= error + 0.005 * exact, (epoch, energy, error, exact)
        assert power > 2 * IDLE_W, (power, "the load did not run")
        # The measured time lies between the callback's hooks; its two ends are milliseconds late if the processor is busy.
        assert inner - 0.1 < energy / power < outer + 0.1, (energy, power, inner, outer)


def check_report(measured, phases, items):
    for name, count in phases.items():
        assert measured["phases"][name]["count"] == count, measured["phases"]
    assert measured["items"] == items, measured["items"]
    assert 0.3 < measured["values"]["accuracy"] <= 1, measured["values"]


def print_cost(framework, times):
    """Prints what the callback cost in this run."""
    version = importlib.metadata.version(framework)
    ns, steps = times["ns"], times["calls"]["step"] // 2
    first = ns.pop("first", 0)
    training, epochs = sum(times["outer_ns"]) - first, len(times["outer_ns"])
    step = ns["step"] / steps
    step_share = ns["step"] / training
    epoch = (ns["epoch_begin"] + ns["epoch_end"] + ns["other"]) / epochs
    share = sum(ns.values()) / training
    print(
        f"{framework} {version}: {step / 1e3:.1f} us per step of {training / steps / 1e6:.2f} ms ({step_share:.3%}), "
        f"{epoch / 1e9:.3f} s per epoch of {training / epochs / 1e9:.1f} s; together {share:.2%}; "
        f"the first start took {first / 1e9:.2f} s; "
        f"the measuring process took {times['processor_s'] / training * 1e9:.2%} of a core",
        flush=True,
    )


def lightning(folder):
    # One long epoch, as in a real training: reading the energy costs a fixed time in each epoch.
    samples = int(os.environ.get("SAMPLES", "128000"))
    arguments = ["--accelerator", "cpu", "--epochs", "1", "--samples", str(samples), "--width", "2048"]
    _, measured, times = train("lightning", folder, *arguments)
    with open(os.path.join(folder, "logs/metrics.csv")) as file:
        rows = [row for row in csv.DictReader(file) if row["energy_j"]]
    check_epochs("lightning", [[float(row[key]) for key in LOGGED] for row in rows], times, 1)
    check_report(measured, {"epoch": 1, "step": samples // 64, "validation": 1}, samples)
    print_cost("lightning", times)


def transformers(folder):
    output, measured, times = train("transformers", folder, "--cpu", "--epochs", "3", "--samples", "4008", last_step=226)
    history = [json.loads(line) for line in output.splitlines() if line.startswith('{"')]
    entries = [entry for entry in history if "energy_j" in entry]
    check_epochs("transformers", [[entry[key] for key in LOGGED] for entry in entries], times, 3)
    assert [entry["epoch"] for entry in entries] == [1.0, 2.0, 3.0], history
    # 250 full steps of 16 samples and one of 8.
    check_report(measured, {"epoch": 3, "step": 3 * 251}, 3 * 4008)
    print_cost("transformers", times)


def keras(folder):
    output, measured, times = train("keras", folder, "--epochs", "3", "--samples", "8000", "--width", "2048")
    history = json.loads(next(line for line in output.splitlines() if line.startswith('{"accuracy"')))
    check_epochs("keras", list(zip(*(history[key] for key in LOGGED))), times, 3)
    assert " - energy_j: " in output, output
    # Keras does not tell its callbacks that the last batch is smaller: 113 steps of 64.
    check_report(measured, {"epoch": 3, "step": 3 * 113, "validation": 3}, 3 * 113 * 64)
    print_cost("keras", times)


def pandas(folder):
    import sweetspot

    sweep = ["sweetspot", "sweep", "--simulate", "v100", "--network", "resnet50", "--power-cap", "200,250,300"]
    done = subprocess.run([*sweep, "--repeat", "3", "--study", "caps"], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    study = sweetspot.Study(os.path.join(folder, "caps"))
    runs, points = study.to_pandas(), study.to_pandas("points")
    assert len(runs) == 9 and len(points) == 3, (runs, points)
    by_cap = runs.groupby("settings.power_cap_w")["energy_j"].mean()
    assert by_cap.is_monotonic_increasing, by_cap
    assert runs["time_s"].dtype.kind == "f" and not runs["energy_j"].isna().any(), runs.dtypes


def main():
    passed = failed = 0
    begun = time.monotonic()
    for check in (pandas, lightning, transformers, keras):
        if sys.argv[1:] and check.__name__ not in sys.argv[1:]:
            continue
        with tempfile.TemporaryDirectory() as folder:
            try:
                check(folder)
            except Exception as error:
                failed += 1
                print(f"test python_packages::{check.__name__} ... FAILED\n{type(error).__name__}: {error}", flush=True)
            else:
                passed += 1
                print(f"test python_packages::{check.__name__} ... ok", flush=True)
    result = "FAILED" if failed else "ok"
    print(
        f"test result: {result}. {passed} passed; {failed} failed; 0 ignored; 0 measured; 0 filtered out; "
        f"finished in {time.monotonic() - begun:.2f}s"
    )
    sys.exit(1 if failed else 0)


main()
