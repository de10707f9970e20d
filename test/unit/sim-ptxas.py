"""Has ptxas assemble the texts of the interpreter's tests: sim-ptxas.py PTXAS FOLDER

Texts of one version and target go into few files, with kernels renamed, because
starting ptxas takes longer than assembling a snippet. A text with variables of
its own at module scope is assembled alone.
"""

import concurrent.futures
import os
import re
import subprocess
import sys
import tempfile

AT_ONCE = 60


def header_and_rest(text):
    lines = text.split("\n")
    return "\n".join(lines[:3]), "\n".join(lines[3:])


def assemble(ptxas, text):
    """What ptxas says against a text, or an empty string."""
    target = re.search(r"\.target\s+(\w+)", text).group(1)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "k.ptx")
        with open(path, "w") as file:
            file.write(text)
        done = subprocess.run(
            [ptxas, "-arch=" + target, "-O0", path, "-o", os.path.join(folder, "k.cubin")],
            capture_output=True,
            text=True,
        )
    return "" if done.returncode == 0 else done.stdout + done.stderr or "failed"


def main():
    ptxas, folder = sys.argv[1:]
    texts = []
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name)) as file:
            texts.append(file.read())
    groups = {}
    for number, text in enumerate(texts):
        header, rest = header_and_rest(text)
        if not rest.startswith(".visible .entry"):
            groups[header + str(number)] = [(header, rest)]
            continue
        rest = rest.replace(".entry k(", f".entry k{number}(", 1)
        groups.setdefault(header, []).append((header, rest))
    files = []
    for members in groups.values():
        for start in range(0, len(members), AT_ONCE):
            files.append(members[start : start + AT_ONCE])
    refused = 0
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        joined = [f[0][0] + "\n" + "\n".join(rest for _, rest in f) for f in files]
        results = list(pool.map(lambda text: assemble(ptxas, text), joined))
        for members, result in zip(files, results):
            if not result:
                continue
            # Which of them it was.
            alone = pool.map(lambda m: assemble(ptxas, m[0] + "\n" + m[1]), members)
            for (_, rest), message in zip(members, alone):
                if message:
                    refused += 1
                    print(f"ptxas refuses:\n{rest}\n{message}", file=sys.stderr)
    if refused:
        print(f"{refused} of {len(texts)} texts are refused")
        return 1
    print(f"{len(texts)} texts: {len(texts)} assembled")
    return 0


sys.exit(main())
