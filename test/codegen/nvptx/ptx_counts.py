"""Counts a kernel's instructions: ptx_counts.py FILE KERNEL OPCODE=COUNT...

An instruction counts for OPCODE if it starts with it ("st.global" counts all
stores to global memory). COUNT is a number, or two with a dash between them.
"""

import re
import sys


def opcodes(text, kernel):
    body = re.search(r"\.entry " + re.escape(kernel) + r"\((.*?)^}", text, re.S | re.M)
    if not body:
        sys.exit(f"ptx_counts: no kernel {kernel}")
    for line in body.group(1).splitlines():
        line = re.sub(r"^@!?%p\d+\s+", "", line.strip())
        if line and not line.startswith((".", "//", "$", "{", "}", ")")):
            yield line.split()[0].rstrip(";")


def main(path, kernel, wanted):
    with open(path) as file:
        found = list(opcodes(file.read(), kernel))
    wrong = []
    for item in wanted:
        opcode, _, count = item.partition("=")
        low, _, high = count.partition("-")
        number = sum(name.startswith(opcode) for name in found)
        if not int(low) <= number <= int(high or low):
            wrong.append(f"{opcode}: {number} instead of {count}")
    if wrong:
        sys.exit(f"ptx_counts: {kernel}: " + ", ".join(wrong))


main(sys.argv[1], sys.argv[2], sys.argv[3:])
