"""Assembles kernels for chips: assemble.py FILE.mlir MOST_REGISTERS CHIP...

Each kernel must fit MOST_REGISTERS and spill nothing. Prints what ptxas says.
"""

import os
import re
import subprocess
import sys
import tempfile


def assemble(module, most, chip, folder):
    ptx = os.path.join(folder, chip + ".ptx")
    subprocess.run(
        ["kvc-translate", "--kvc-to-ptx", "--chip=" + chip, module, "-o", ptx], check=True
    )
    result = subprocess.run(
        ["ptxas", "-v", "-arch=" + chip, ptx, "-o", os.path.join(folder, "cubin")],
        stderr=subprocess.PIPE,
        text=True,
    )
    if result.returncode:
        sys.exit(f"assemble: {chip}: {result.stderr}")
    kernels = re.findall(
        r"entry function '(\w+)'.*?(\d+) bytes stack frame, (\d+) bytes spill stores, "
        r"(\d+) bytes spill loads.*?Used (\d+) registers",
        result.stderr,
        re.S,
    )
    if not kernels:
        sys.exit(f"assemble: {chip}: no kernels in {result.stderr}")
    for name, stack, stores, loads, registers in kernels:
        print(f"{chip} {name}: {registers} registers, {stack} bytes of stack")
        if int(stack) or int(stores) or int(loads):
            sys.exit(f"assemble: {chip}: {name} spills {stores} and {loads} bytes")
        if int(registers) > most:
            sys.exit(f"assemble: {chip}: {name} takes {registers} registers of {most}")


def main(module, most, chips):
    with tempfile.TemporaryDirectory() as folder:
        for chip in chips:
            assemble(module, int(most), chip, folder)


main(sys.argv[1], sys.argv[2], sys.argv[3:])
