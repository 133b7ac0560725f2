"""Lets PyTorch start on the processor where its CUDA libraries are not installed.

The usual package of PyTorch is linked with libraries of CUDA that take several GB, and that it never calls on a machine
without a GPU. This program puts empty libraries of the same names, with the functions that PyTorch is linked with, beside it.
It needs a C compiler and binutils.
"""

import collections
import glob
import os
import re
import subprocess
import sys
import sysconfig
import tempfile

RETURN_0 = {"x86_64": "xor %eax,%eax\n ret", "aarch64": "mov w0, #0\n ret"}[os.uname().machine]


def output(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def can_load(library):
    test = "import ctypes, sys; ctypes.CDLL(sys.argv[1])"
    return subprocess.run([sys.executable, "-c", test, library], capture_output=True).returncode == 0


def linked(files):
    """The libraries that files need, the versions that these have, and the functions that are undefined and defined."""
    needed, versions, undefined, defined = set(), {}, set(), set()
    for file in files:
        needed |= set(re.findall(r"\(NEEDED\).*\[(.*)\]", output("readelf", "-dW", file)))
        library = None
        for line in output("readelf", "-VW", file).splitlines():
            named = re.search(r"File: (\S+)", line)
            library = named[1] if named else library
            version = re.search(r"  Name: (\S+)", line)
            if version and library:
                versions[version[1]] = library
        for line in output("nm", "-D", file).splitlines():
            kind, symbol = line.split()[-2:]
            (undefined if kind in "Uw" else defined).add(symbol)
    return needed, versions, undefined, {symbol.split("@")[0] for symbol in defined}


def make(path, functions, folder):
    """Makes a library whose functions, by the names of their versions, return 0."""
    names = sorted(set().union(*functions.values())) if functions else []
    labels = "".join(f".globl {name}\n.type {name},@function\n{name}:\n" for name in names)
    source, script = os.path.join(folder, "library.s"), os.path.join(folder, "library.map")
    with open(source, "w") as file:
        file.write(f'.text\n{labels} {RETURN_0}\n.section .note.GNU-stack,"",@progbits\n')
    command = ["cc", "-shared", "-nostdlib", "-o", path, f"-Wl,-soname,{os.path.basename(path)}", source]
    versions = {version: own for version, own in functions.items() if version}
    if versions:
        with open(script, "w") as file:
            for version, own in versions.items():
                file.write(version + " { global: " + " ".join(f'"{name}";' for name in sorted(own)) + " };\n")
        command.append(f"-Wl,--version-script={script}")
    subprocess.run(command, check=True)


def main():
    folder = os.path.join(sysconfig.get_path("platlib"), "torch", "lib")
    files = glob.glob(os.path.join(folder, "*.so*"))
    needed, versions, undefined, defined = linked(files)
    present = {os.path.basename(file) for file in files}
    missing = sorted(library for library in needed - present if not can_load(library))
    functions = collections.defaultdict(lambda: collections.defaultdict(set))
    for symbol in undefined:
        name, _, version = symbol.partition("@")
        version = version.strip("@")
        if versions.get(version) in missing:
            functions[versions[version]][version].add(name)
        elif not version and name not in defined:
            # Nothing says which library has it, and it does not matter.
            functions[missing[0]][""].add(name)
    with tempfile.TemporaryDirectory() as scratch:
        for library in missing:
            make(os.path.join(folder, library), functions[library], scratch)


main()
