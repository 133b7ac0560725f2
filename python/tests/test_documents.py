"""The Python blocks of the documents: they parse, and what they use of the package is there."""

import ast
import glob
import importlib
import importlib.util
import os
import sys
import unittest

from linked_programs import SOURCE

sys.path.insert(0, SOURCE)
ROOT = os.path.join(SOURCE, "..", "..")


def blocks():
    """Each Python block with the file and the line of its begin."""
    for path in [os.path.join(ROOT, "README.md"), *sorted(glob.glob(os.path.join(ROOT, "docs", "**", "*.md"), recursive=True))]:
        begin, lines = None, []
        with open(path, encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                if line.startswith("```python"):
                    begin, lines = number, []
                elif line.startswith("```") and begin is not None:
                    yield f"{os.path.relpath(path, ROOT)}:{begin}", "".join(lines)
                    begin = None
                elif begin is not None:
                    lines.append(line)


def unknown_names(text):
    """The names of the package that a block uses and that do not exist; of callbacks only the modules, which need packages."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "sweetspot":
            if not hasattr(importlib.import_module("sweetspot"), node.attr):
                yield f"sweetspot.{node.attr}"
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "sweetspot":
            if node.module.startswith("sweetspot.callbacks."):
                if importlib.util.find_spec(node.module) is None:
                    yield node.module
                continue
            module = importlib.import_module(node.module)
            yield from (f"{node.module}.{one.name}" for one in node.names if not hasattr(module, one.name))


class Documents(unittest.TestCase):
    def test_python_blocks_use_what_exists(self):
        found = list(blocks())
        self.assertGreaterEqual(len(found), 10)
        for place, text in found:
            with self.subTest(place):
                self.assertEqual(list(unknown_names(text)), [])

    def test_a_wrong_name_is_found(self):
        self.assertEqual(list(unknown_names("import sweetspot\nsweetspot.mesure()")), ["sweetspot.mesure"])


if __name__ == "__main__":
    unittest.main()
