"""Writes seeds for gguf-fuzz into a folder: the broken files of test/frontend and
right ones with every value type and weight format.

    python3 test/fuzz/make_corpus.py CORPUS
    build-asan/bin/gguf-fuzz -max_total_time=300 CORPUS
"""

import pathlib
import runpy
import sys

frontend = pathlib.Path(__file__).resolve().parent.parent / "frontend"
sys.path.insert(0, str(frontend))

import ggufwriter as g  # noqa: E402


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for script in sorted(frontend.glob("gguf-*.py")):
        sys.argv = [str(script), str(folder / script.stem)]
        runpy.run_path(str(script), run_name="__main__")
    values = g.Gguf(alignment=64).key("general.alignment", 64)
    for kind in (g.U8, g.I8, g.U16, g.I16, g.U32, g.I32, g.FLOAT32, g.BOOL, g.U64, g.I64, g.FLOAT64):
        values.key(f"scalar.{kind}", 1, kind).key(f"array.{kind}", [0, 1], kind)
    values.key("string", "text").key("strings", ["", "a", "bc"]).key("empty", [], g.STRING)
    values.write(folder / "values")
    weights = g.Gguf(version=2)
    for name in ("F32", "F16", "BF16", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q2_K", "Q3_K", "Q4_K", "Q5_K",
                 "Q6_K", "IQ4_NL", "IQ4_XS", "MXFP4"):  # fmt: skip
        kind = getattr(g, name)
        weights.tensor(name, [kind[1], 2, 1], kind)
    weights.write(folder / "weights")


main()
