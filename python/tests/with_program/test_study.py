"""Studies that the program made, read from Python; a Rust test runs this file."""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import types
import unittest
from unittest import mock

import sweetspot

SWEEP = [
    "sweetspot", "sweep", "--simulate", "v100", "--network", "resnet50", "--power-cap", "150..300:50", "--repeat", "3",
]


def made_study(folder):
    subprocess.run(SWEEP, cwd=folder, check=True, capture_output=True)
    (name,) = os.listdir(os.path.join(folder, "studies"))
    return os.path.join(folder, "studies", name)


class Studies(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.parent = tempfile.TemporaryDirectory()
        cls.path = made_study(cls.parent.name)

    @classmethod
    def tearDownClass(cls):
        cls.parent.cleanup()

    def copy(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        return shutil.copytree(self.path, os.path.join(folder.name, "study"))

    def report(self, *flags):
        done = subprocess.run(
            ["sweetspot", "report", self.path, *flags, "--export-json", "-"], capture_output=True, check=True
        )
        return json.loads(done.stdout)

    def test_runs_are_those_of_the_points(self):
        study = sweetspot.Study(self.path)
        runs, report = study.runs(), self.report()
        self.assertEqual(len(runs), 4 * 3)
        self.assertEqual(study.points(), report["points"])
        for point in report["points"]:
            own = [run for run in runs if run["settings"]["power_cap_w"] == point["settings"]["power_cap_w"]]
            self.assertEqual(len(own), point["runs"])
            for name, key in (("time_s", "time_s"), ("energy_j", "job_gpus_j")):
                mean = sum(run[key] for run in own) / len(own)
                self.assertAlmostEqual(mean / point[name]["mean"], 1, places=9)
        self.assertEqual({run["is_reference"] for run in runs}, {True, False})
        self.assertEqual(set(runs[0]["phases"]), {"host", "forward", "backward"})
        self.assertEqual(len(runs[0]["devices"]), 1)

    def test_the_recommendation_is_that_of_the_program(self):
        study = sweetspot.Study(self.path)
        for flags in ((), ("--objective", "energy")):
            report, own = self.report(*flags), study.recommendation(*flags)
            for key, value in report["recommendation"].items():
                self.assertEqual(own[key], value)
            chosen = report["points"][report["recommendation"]["point"]]
            self.assertEqual((own["settings"], own["text"]), (chosen["settings"], report["answer"]["text"]))

    def test_rows_are_flat_for_pandas(self):
        pandas = types.ModuleType("pandas")
        pandas.DataFrame = list
        study = sweetspot.Study(self.path)
        with mock.patch.dict(sys.modules, pandas=pandas):
            runs, points = study.to_pandas(), study.to_pandas("points")
        self.assertEqual(runs[0]["settings.power_cap_w"], study.runs()[0]["settings"]["power_cap_w"])
        self.assertEqual(points[0]["time_s.low"], study.points()[0]["time_s"]["ci95"][0])
        self.assertTrue(all(not isinstance(value, (dict, list)) for row in runs + points for value in row.values()))
        with self.assertRaisesRegex(ValueError, "takes 'runs' or 'points', not 'x'"):
            study.to_pandas("x")

    def test_a_study_is_found_by_its_name(self):
        here = os.getcwd()
        os.chdir(self.parent.name)
        self.addCleanup(os.chdir, here)
        self.assertEqual(len(sweetspot.Study(os.path.basename(self.path)).runs()), 12)

    def test_a_study_is_read_while_a_sweep_adds_to_it(self):
        path = self.copy()
        study = sweetspot.Study(path)
        before = study.recommendation()["text"]
        added = subprocess.Popen(
            ["sweetspot", "sweep", "--resume", path, "--repeat", "30"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        seen = set()
        while added.poll() is None:
            seen.add(len(study.runs()))
        self.assertEqual(added.returncode, 0)
        self.assertTrue(all(12 <= count <= 120 for count in seen), seen)
        self.assertEqual(len(study.runs()), 120)
        # The report is computed again, because the study has changed.
        self.assertEqual(study.points()[0]["runs"], 30)
        self.assertIsInstance(before, str)

    def refused(self, path, expected):
        with self.assertRaisesRegex(sweetspot.StudyError, expected) as raised:
            sweetspot.Study(path).runs()
        self.assertNotIn("\n", str(raised.exception))

    def test_other_folders_are_refused_in_one_sentence(self):
        with tempfile.TemporaryDirectory() as folder:
            self.refused(os.path.join(folder, "absent"), "the folder does not exist")
            self.refused(folder, "it has no file study.db")
            sqlite3.connect(os.path.join(folder, "study.db")).execute("CREATE TABLE x (y)").connection.close()
            self.refused(folder, "not the database of a study")

    def test_damaged_studies_are_refused_in_one_sentence(self):
        path = self.copy()
        file = os.path.join(path, "study.db")
        database = sqlite3.connect(file)
        database.execute("PRAGMA user_version = 9")
        database.close()
        self.refused(path, "has version 9 of the format")
        with open(file, "r+b") as damaged:
            damaged.truncate(os.path.getsize(file) // 3)
        self.refused(path, "damaged study|version 9")
        with open(file, "wb") as damaged:
            damaged.write(b"no database at all" * 100)
        self.refused(path, "damaged study")
        with open(file, "wb"):
            pass
        self.refused(path, "not the database of a study")

    def test_a_missing_table_is_a_damaged_study(self):
        path = self.copy()
        database = sqlite3.connect(os.path.join(path, "study.db"))
        database.execute("DROP TABLE run_phase")
        database.commit()
        database.close()
        self.refused(path, "damaged study: no such table")

    def test_problems_of_the_report_are_passed_on(self):
        study = sweetspot.Study(self.path)
        with self.assertRaisesRegex(sweetspot.StudyError, "cannot be computed.*nonsense"):
            study.report("--objective", "nonsense")
        with mock.patch.dict(os.environ, PATH="/nonexistent"):
            with self.assertRaisesRegex(sweetspot.StudyError, "not on PATH"):
                sweetspot.Study(self.path).points()
        with self.assertRaisesRegex(sweetspot.StudyError, "no samples of run 999"):
            pandas = types.ModuleType("pandas")
            with mock.patch.dict(sys.modules, pandas=pandas):
                study.samples(999)

    def test_reading_changes_nothing(self):
        path = self.copy()
        file = os.path.join(path, "study.db")
        os.chmod(file, 0o400)

        def state():
            with open(file, "rb") as bytes_of_study:
                return sorted(os.listdir(path)), bytes_of_study.read()

        before = state()
        sweetspot.Study(path).runs()
        self.assertEqual(state(), before)


if __name__ == "__main__":
    unittest.main()
