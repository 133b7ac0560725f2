"""Studies that `sweetspot sweep` made, read from Python."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any, Iterator

from ._program import ProgramError, find_program

if TYPE_CHECKING:
    import pandas

_APPLICATION_ID = 0x53575350
_VERSION = 1
# A sweep holds the lock on the database for moments, when it stores a run.
_LOCK_TIMEOUT_S = 30.0
# Columns that repeat what other columns of a run have.
_KEYS = {"id", "configuration"}


class StudyError(Exception):
    """The folder has no study that can be read; the message says why."""


class Study:
    """A study on disk, for analysis.

        study = sweetspot.Study("studies/resnet50-v100")
        study.runs()            # each run: settings, time, energy with its interval, phases, values
        study.points()          # each setting: means and intervals, as `sweetspot report --export-json` has them
        study.recommendation()  # the recommended setting, its saving, and why
        study.to_pandas()       # the runs as a DataFrame; to_pandas("points") for the settings

    It only reads, and can be used while a sweep adds to the study. Runs come from the database, which docs/reference/study-format.md
    describes. Statistics and the recommendation come from the program `sweetspot`, so that they are those of its report.
    Quantities are in SI units; what is unknown is None.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = _find(Path(folder))
        with self._database() as database:
            rows = dict(_select(database, "SELECT key, value FROM meta"))
        try:
            self.definition: dict[str, Any] = json.loads(rows["definition"])
            self.subject: dict[str, Any] = json.loads(rows["subject"])
        except (KeyError, ValueError) as problem:
            raise StudyError(f"{self.folder} has a damaged study: its description cannot be read ({problem})") from problem
        self._reports: dict[tuple[str, ...], tuple[tuple[int, ...], dict[str, Any]]] = {}

    def runs(self) -> list[dict[str, Any]]:
        """All runs so far, in the order of their numbers: the settings of each, its status, time, items and energies with
        the ends of their 95 % intervals, `energy_j` (the energy that the study counts), `parameters`, `values`, `phases` and `devices`."""
        with self._database() as database:
            configurations = {row["id"]: row for row in _rows(database, "SELECT * FROM configuration")}
            runs = _rows(database, "SELECT * FROM run ORDER BY id")
            parameters = _group(_rows(database, "SELECT * FROM parameter"), "configuration")
            values = _group(_rows(database, "SELECT * FROM run_value"), "run")
            phases = _group(_rows(database, "SELECT * FROM run_phase ORDER BY run, position"), "run")
            devices = _group(_rows(database, "SELECT * FROM run_device ORDER BY run, position"), "run")
        counted = str(self.definition.get("energy-of", "job-gpus")).replace("-", "_") + "_j"
        full = []
        for run in runs:
            run["energy_j"] = run.get(counted)
            configuration = configurations[run["configuration"]]
            settings = {name: value for name, value in configuration.items() if name not in _KEYS}
            run["is_reference"] = bool(settings.pop("is_reference"))
            run["on_axes"] = bool(settings.pop("on_axes"))
            run["settings"] = {name: value for name, value in settings.items() if value is not None}
            run["parameters"] = {row["name"]: row["value"] for row in parameters.get(run["configuration"], [])}
            run["values"] = {row["name"]: row["value"] for row in values.get(run["id"], [])}
            run["phases"] = {
                row["name"]: {"time_s": row["time_s"], "energy_j": row["energy_j"]} for row in phases.get(run["id"], [])
            }
            run["devices"] = [
                {name: value for name, value in row.items() if name not in ("run", "position")}
                for row in devices.get(run["id"], [])
            ]
            full.append(run)
        return full

    def points(self, *flags: str) -> list[dict[str, Any]]:
        """Each setting with the means of its runs, their 95 % intervals, and its comparison with the reference."""
        points: list[dict[str, Any]] = self.report(*flags)["points"]
        return points

    def recommendation(self, *flags: str) -> dict[str, Any] | None:
        """The recommendation of `sweetspot report`, with the `settings` to use and the `text` of the answer; None if there
        are too few runs for one. Flags of `report` change the objective, for example `"--objective", "energy"`."""
        report = self.report(*flags)
        recommendation: dict[str, Any] | None = report.get("recommendation")
        if recommendation is None:
            return None
        point = recommendation.get("point")
        chosen = report["reference"] if point is None else report["points"][point]
        return {**recommendation, "settings": chosen["settings"], "text": report.get("answer", {}).get("text")}

    def report(self, *flags: str) -> dict[str, Any]:
        """The whole document of `sweetspot report STUDY --export-json -` (docs/schemas/study.schema.json)."""
        state = _state(self.folder / "study.db")
        known = self._reports.get(flags)
        if known is not None and known[0] == state:
            return known[1]
        try:
            command = [find_program(), "report", str(self.folder.absolute()), *flags, "--export-json", "-"]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        except (ProgramError, OSError) as problem:
            raise StudyError(f"the report of {self.folder} cannot be computed: {problem}") from problem
        try:
            # Exit code 1 means that a limit is not met; the document is complete.
            document: dict[str, Any] = json.loads(done.stdout)
        except ValueError:
            lines = done.stderr.strip().splitlines()
            said = (lines[-1].partition("sweetspot: ")[2] or lines[-1]) if lines else f"exit code {done.returncode}"
            raise StudyError(f"the report of {self.folder} cannot be computed: {said}") from None
        self._reports[flags] = (state, document)
        return document

    def to_pandas(self, what: str = "runs") -> pandas.DataFrame:
        """The `runs` or the `points` as a DataFrame with a column for each number, such as `settings.power_cap_w` and
        `time_s.mean`. It needs pandas."""
        if what not in ("runs", "points"):
            raise ValueError(f"to_pandas takes 'runs' or 'points', not {what!r}")
        import pandas

        rows = self.runs() if what == "runs" else self.points()
        return pandas.DataFrame([dict(_flat(row)) for row in rows])

    def samples(self, run: int) -> pandas.DataFrame:
        """Every reading of a run over time, as a DataFrame. It needs pandas with pyarrow or fastparquet."""
        import pandas

        file = self.folder / "samples" / f"{run}.parquet"
        if not file.is_file():
            raise StudyError(f"{self.folder} has no samples of run {run}")
        return pandas.read_parquet(file)

    def __repr__(self) -> str:
        return f"sweetspot.Study({str(self.folder)!r})"

    def _database(self) -> _Connection:
        return _Connection(self.folder)


class _Connection:
    """A database that is open for reading alone."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __enter__(self) -> sqlite3.Connection:
        file = (self._folder / "study.db").absolute()
        try:
            self._open = sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True, timeout=_LOCK_TIMEOUT_S)
            application = self._open.execute("PRAGMA application_id").fetchone()[0]
            version = self._open.execute("PRAGMA user_version").fetchone()[0]
            # All queries see the same state, whatever a sweep adds meanwhile.
            self._open.execute("BEGIN")
        except sqlite3.Error as problem:
            raise _damaged(self._folder, problem) from problem
        if application != _APPLICATION_ID:
            raise StudyError(f"{file} is not the database of a study")
        if version != _VERSION:
            raise StudyError(
                f"{file} has version {version} of the format, and this package reads version {_VERSION}: update it"
            )
        return self._open

    def __exit__(self, *error: object) -> None:
        self._open.close()


def _find(folder: Path) -> Path:
    """The folder of a study: as given, or by its name below studies/, as for the program."""
    for candidate in (folder, Path("studies") / folder):
        if (candidate / "study.db").is_file():
            return candidate
    if not folder.exists():
        raise StudyError(f"there is no study in {folder}: the folder does not exist")
    raise StudyError(f"there is no study in {folder}: it has no file study.db")


def _damaged(folder: Path, problem: Exception) -> StudyError:
    return StudyError(f"{folder} has a damaged study: {problem}")


def _select(database: sqlite3.Connection, query: str) -> list[Any]:
    try:
        return database.execute(query).fetchall()
    except sqlite3.Error as problem:
        file = database.execute("PRAGMA database_list").fetchone()[2]
        raise _damaged(Path(file).parent, problem) from problem


def _rows(database: sqlite3.Connection, query: str) -> list[dict[str, Any]]:
    database.row_factory = sqlite3.Row
    return [dict(row) for row in _select(database, query)]


def _group(rows: list[dict[str, Any]], key: str) -> dict[int, list[dict[str, Any]]]:
    grouped: dict[int, list[dict[str, Any]]] = {}
    for row in rows:
        grouped.setdefault(row[key], []).append(row)
    return grouped


def _state(file: Path) -> tuple[int, ...]:
    """What changes when a sweep adds to the study."""
    status = file.stat()
    return (status.st_ino, status.st_size, status.st_mtime_ns)


def _flat(row: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """The numbers and texts of a document, with their paths as names; intervals become two columns."""
    for name, value in row.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{name}.")
        elif name == "ci95" and isinstance(value, list):
            yield f"{prefix}low", value[0]
            yield f"{prefix}high", value[1]
        elif not isinstance(value, list):
            yield prefix + name, value
