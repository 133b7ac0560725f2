"""The package itself: what it imports, what `help()` shows, and phases as decorators."""

import os
import subprocess
import sys
import unittest

from linked_programs import SOURCE, LinkedPrograms, control


class Package(unittest.TestCase):
    def run_alone(self, text, **variables):
        variables = {**os.environ, "PYTHONPATH": SOURCE, "PYTHONDONTWRITEBYTECODE": "1", **variables}
        variables = {name: value for name, value in variables.items() if value is not None}
        done = subprocess.run([sys.executable, "-S", "-c", text], env=variables, capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_importing_it_imports_a_few_modules_of_the_standard_library_alone(self):
        # Without site-packages (-S) another import would fail; the frameworks are named all the same.
        text = "import sys; before = set(sys.modules); import sweetspot; print(*sorted(set(sys.modules) - before))"
        for link in (None, "/nonexistent"):
            names = self.run_alone(text, SWEETSPOT_LINK=link).split()
            own = {name for name in names if name.split(".")[0] == "sweetspot"}
            self.assertLessEqual(own, {"sweetspot"} | {"sweetspot._" + one for one in ("device", "off", "on", "phase", "ring")})
            slow = {"typing", "json", "http.client", "sqlite3", "subprocess", "inspect", "asyncio", "socket"}
            self.assertFalse(slow & set(names), names)

    def test_answers_in_chunks_are_joined_and_incomplete_ones_are_errors(self):
        text = """
from sweetspot._http import _parse
head = b"HTTP/1.1 200 OK\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n"
assert _parse(head + b"3\\r\\nabc\\r\\n4\\r\\ndefg\\r\\n0\\r\\n\\r\\n") == (200, "abcdefg")
for cut in (b"", b"3\\r\\nab", b"3\\r\\nabc\\r\\n", b"x\\r\\nabc\\r\\n0\\r\\n\\r\\n"):
    try:
        _parse(head + cut)
    except ValueError:
        continue
    raise AssertionError(cut)
"""
        self.run_alone(text)

    def test_everything_else_needs_the_standard_library_alone(self):
        self.run_alone(
            "import sweetspot\n"
            "for name in sweetspot.__all__: assert getattr(sweetspot, name).__doc__, name\n"
            "import sweetspot.callbacks._training, sweetspot._decorate"
        )

    def test_help_teaches_with_and_without_a_link(self):
        text = "import pydoc, sweetspot; print(pydoc.plain(pydoc.render_doc(sweetspot)))"
        shown = [self.run_alone(text, SWEETSPOT_LINK=link) for link in (None, "/nonexistent")]
        for words in (
            "Returns the batch size that the tool wants next",
            "Marks a part of the program",
            "class Measurement",
            "class Study",
            "class Counter",
            "with sweetspot.measure() as m",
            "Reports that this many more items",
        ):
            for one in shown:
                self.assertIn(words, one)

    def test_unknown_names_are_errors(self):
        self.run_alone("import sweetspot\ntry: sweetspot.nonsense\nexcept AttributeError as e: assert 'nonsense' in str(e)")


DECORATED = """
import asyncio, inspect
@s.phase("function")
def function(a, *, b):
    "Adds."
    s.progress(1)
    return a + b
assert function(1, b=2) == 3 and function.__name__ == "function" and function.__doc__ == "Adds."

@s.phase("generator")
def generator():
    try:
        got = yield 1
        s.value("got", got)
        try: yield 2
        except KeyError: yield 3
        return 4
    finally: s.value("closed", 0)
assert inspect.isgeneratorfunction(generator)

def consumer():
    g = generator()
    assert next(g) == 1
    with s.phase("consumer"): pass
    assert g.send(7) == 2
    assert g.throw(KeyError()) == 3
    try: next(g)
    except StopIteration as end: assert end.value == 4
    g = generator(); next(g); g.close()
"""


class Decorators(LinkedPrograms):
    def test_functions_and_generators(self):
        control(self.folder)
        self.run_program(DECORATED + "consumer()")
        self.assertEqual(
            self.marks(),
            ["+function", "items(other names)", "-function"]
            # The consumer's own time is not that of the generator.
            + ["+generator", "-generator", "+consumer", "-consumer"]
            + ["+generator", "valuegot", "-generator"]
            + ["+generator", "-generator", "+generator", "valueclosed", "-generator"]
            + ["+generator", "-generator", "+generator", "valueclosed", "-generator"],
        )

    def test_coroutines_and_asynchronous_generators(self):
        control(self.folder)
        self.run_program(
            """
            import asyncio, inspect
            @s.phase("coroutine")
            async def coroutine(n):
                await asyncio.sleep(0)
                s.progress(n)
                return n
            @s.phase("agen")
            async def agen():
                try:
                    got = yield 1
                    await asyncio.sleep(0)
                    s.progress(got)
                    try: yield 2
                    except KeyError: yield 3
                finally: s.value("closed", 0)
            assert inspect.iscoroutinefunction(coroutine) and inspect.isasyncgenfunction(agen)
            async def main():
                assert await coroutine(5) == 5
                g = agen()
                assert await g.asend(None) == 1
                with s.phase("consumer"): pass
                assert await g.asend(7) == 2
                assert await g.athrow(KeyError()) == 3
                await g.aclose()
                assert [n async for n in agen_all()] == [1]
            @s.phase("short")
            async def agen_all():
                yield 1
            asyncio.run(main())
            """
        )
        self.assertEqual(
            self.marks(),
            ["+coroutine", "items(other names)", "-coroutine"]
            + ["+agen", "-agen", "+consumer", "-consumer", "+agen", "items(other names)", "-agen"]
            + ["+agen", "-agen", "+agen", "valueclosed", "-agen", "+short", "-short", "+short", "-short"],
        )

    def test_errors_and_recursion(self):
        control(self.folder)
        self.run_program(
            """
            @s.phase("r")
            def r(n):
                if n == 0: raise KeyError
                r(n - 1)
            try: r(1)
            except KeyError: pass
            try: s.phase("x")(7)
            except TypeError as error: assert "decorates a function" in str(error)
            """
        )
        self.assertEqual(self.marks(), ["+r", "+r", "-r", "-r"])

    def test_start_and_stop(self):
        control(self.folder)
        self.run_program(
            """
            s.start("a"); s.stop("a")
            p = s.phase("b"); p.start(); p.stop()
            """
        )
        self.assertEqual(self.marks(), ["+a", "-a", "+b", "-b"])

    def test_decorated_phases_are_synchronised(self):
        control(self.folder)
        out = self.run_program(
            """
            calls = []
            @s.phase("gpu", sync=lambda: calls.append(1))
            def f(): return len(calls)
            print(f(), len(calls))
            """
        )
        self.assertEqual(out, "1 2")

    def test_without_a_link_a_decorated_function_stays_as_it_is(self):
        out = self.run_program("def f(): pass\nprint(s.phase('a')(f) is f, s.phase('a').start(), s.enabled())", link=False)
        self.assertEqual(out, "True None False")
        with self.subTest("the same code runs"):
            self.run_program(DECORATED + "consumer()", link=False)


if __name__ == "__main__":
    unittest.main()
