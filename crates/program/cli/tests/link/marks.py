"""Phase marks of every kind for tests/measure/link.rs: `marks.py KIND`, with `sweetspot` in the import path."""

import os
import subprocess
import sys
import time

import sweetspot as s


def training(program):
    # The workload reports its own progress, which must not count for this program.
    alone = {name: value for name, value in os.environ.items() if name != "SWEETSPOT_LINK"}
    for _ in range(4):
        with s.phase("busy"):
            subprocess.run([program, "sim-workload", "--network", "resnet50", "--seconds", "0.5"],
                           check=True, stdout=subprocess.DEVNULL, env=alone)
        with s.phase("pause"):
            time.sleep(0.3)
        s.progress(items=128)
    s.value("accuracy", 0.5)
    s.value("accuracy", 0.76)
    s.value("loss", float("nan"))


def irregular():
    s.begin("a")
    s.begin("b")
    time.sleep(0.05)
    s.end("a")
    s.end("b")
    s.end("c")
    s.begin("d")


def workers():
    workers = []
    with s.phase("train"):
        for _ in range(3):
            worker = os.fork()
            if worker == 0:
                for _ in range(4):
                    with s.phase("load"):
                        time.sleep(0.02)
                os._exit(0)
            workers.append(worker)
        for worker in workers:
            os.waitpid(worker, 0)


def ranks(kind="rank"):
    every = [subprocess.Popen([sys.executable, __file__, kind, str(rank)],
                              env=dict(os.environ, RANK=str(rank))) for rank in range(2)]
    for one in every:
        one.wait()


def unequal():
    ranks("unequal_rank")


def unequal_rank(number):
    s.value("batch", 64 if number == "0" else 32)
    for _ in range(10):
        with s.phase("step"):
            time.sleep(0.02)
        if number == "0":
            with s.phase("save"):
                time.sleep(0.01)


def accurate():
    is_small = os.environ["batch"] == "64"
    time.sleep(2.0 if is_small else 0.4)
    s.value("accuracy", 0.76 if is_small else 0.55)


def differing():
    ranks("differing_rank")


def differing_rank(number):
    for _ in range(10):
        with s.phase("forward" if number == "0" else "fwd"):
            time.sleep(0.02)
        s.progress(items=10)


def dying():
    ranks("dying_rank")


def dying_rank(number):
    for step in range(60):
        with s.phase("step"):
            time.sleep(0.04)
        s.progress(items=10)
        if number == "1" and step == 10:
            os._exit(0)


def rank(number):
    for _ in range(30):
        with s.phase("step"):
            time.sleep(0.03)
        if number == "1":
            with s.phase("evaluate"):
                time.sleep(0.01)
        s.progress(items=10)


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
