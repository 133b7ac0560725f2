#!/usr/bin/env bash
# What a study on Slurm costs beside Slurm itself: the plan of 100,000 runs, the overhead of a task, and gathering 10,000
# results. Prints figures; needs the release program, Slurm's commands, and root to start a test cluster.
#   benchmarks/slurm.sh
set -euo pipefail
cd "$(dirname "$0")/.."
program=$PWD/target/release/sweetspot
work=$(mktemp -d)
down=$PWD/scripts/slurm-down
cluster=/run/sweetspot-benchmark-$$
scripts/slurm-up "$cluster" --nodes 4 >/dev/null
trap '"$down" "$cluster"; rm -rf "$work"' EXIT
. "$cluster/env"
cd "$work"
seconds() { # seconds COMMAND... : the wall time of a command
  local begun ended
  begun=$(date +%s.%N); "$@" >out 2>err || { cat err >&2; return 1; }; ended=$(date +%s.%N)
  echo "$begun $ended" | awk '{ printf "%.3f", $2 - $1 }'
}
batches=$(seq -s, 8 8 160)
large=(sweep --simulate v100 --network resnet50 --power-cap 150..300:0.15 --axis "batch=$batches" --repeat 5 --no-samples --yes)
# The parts of a task beside its command, from the times in its log. Waiting until the sensors show the end of the command
# is measuring, which a run on this machine needs too.
parts() { # parts STUDY LENGTH
  python3 - "$program" "$@" <<'PYTHON'
import datetime, os, statistics, subprocess, sys, time
program, study, length = sys.argv[1:]
parts = []
for _ in range(5):
    begun = time.time()
    log = subprocess.run([program, "task", study, "0"], stderr=subprocess.PIPE, text=True, check=True,
                         stdout=subprocess.DEVNULL, env={**os.environ, "SWEETSPOT_LOG": "info"}).stderr
    ended = time.time()
    at = lambda text: next(datetime.datetime.fromisoformat(line.split()[0]).timestamp()
                           for line in reversed(log.splitlines()) if text in line)
    command, exited, restored = at("command started"), at("command exited"), at("power cap written")
    parts.append((command - begun, restored - exited, ended - restored))
start, sensors, end = (1000 * statistics.median(part) for part in zip(*parts))
print(f"a task of `sleep {length}` on a simulated host: {start + end:.0f} ms of its own "
      f"({start:.0f} before the command, {end:.0f} at the end), "
      f"and {sensors:.0f} ms until the sensors show the end of the command (medians of 5)")
PYTHON
}
for each in 1 1000; do
  /usr/bin/time -f '%e %M' -o used "$program" "${large[@]}" --executor slurm --runs-per-job "$each" --dry-run >out
  awk -v what="$(tail -1 out)" '{ printf "plan of 100,100 runs (%s): %.2f s, %.0f MB\n", what, $1, $2 / 1024 }' used
done
"$program" sweep --simulate v100 --network resnet50 --power-cap 150,300 --repeat 1 --no-samples --study small >/dev/null 2>&1
for _ in 1 2 3 4 5; do seconds "$program" task small 0; echo; done | sort -n | sed -n 3p |
  awk '{ printf "a task in virtual time, from start to exit: %.0f ms (median of 5)\n", 1000 * $1 }'
. <(sed 's/^/export /' "$cluster/hosts/n1/env")
for length in 0.5 5; do
  "$program" sweep --power-cap 150,300 --repeat 1 --settle 0s --no-samples --study "real-$length" -- sleep "$length" >/dev/null 2>&1
  parts "real-$length" "$length"
done
"$program" sweep --simulate v100 --network resnet50 --power-cap 150..300:0.15 --repeat 10 --no-samples --yes --study gathered >/dev/null 2>&1
rows() { python3 -c 'import sqlite3,sys
d = sqlite3.connect("gathered/study.db")
if sys.argv[1] == "count": print(d.execute("SELECT count(*) FROM run").fetchone()[0])
else:
    for name, kind in d.execute("SELECT name, type FROM sqlite_master WHERE name LIKE ? ORDER BY name DESC", ("run%",)).fetchall():
        if kind == "table": d.execute("DELETE FROM " + name)
d.commit()' "$1"; }
rows clear
# shellcheck disable=SC2046
"$program" task gathered $(seq 0 9999) >/dev/null
time=$(seconds "$program" study gather gathered)
echo "10,000 finished tasks gathered: $time s ($(rows count) runs in the study)"
