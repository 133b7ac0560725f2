"""Finds the program `sweetspot`, which this package asks for everything that it knows better."""

from __future__ import annotations

import os
import shutil
import sysconfig


class ProgramError(Exception):
    """The program `sweetspot` is missing, or it reported an error; the message says which."""


def find_program() -> str:
    """The path of the program: the one that was installed with this package, otherwise the one on PATH."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    for scheme in (None, "posix_user"):
        paths = sysconfig.get_paths() if scheme is None else sysconfig.get_paths(scheme)
        program = os.path.join(paths["scripts"], "sweetspot")
        if package in (paths["purelib"], paths["platlib"]) and os.access(program, os.X_OK):
            return program
    found = shutil.which("sweetspot")
    if found is None:
        raise ProgramError("the program `sweetspot` is not on PATH: install it with `pip install sweetspot-gpu`")
    return found
