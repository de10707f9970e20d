#!/usr/bin/env python3
"""Writes the tiny GGUF models that tiny_gguf/tiny_gguf.py describes. Standard library only."""
import argparse
import hashlib
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "tiny_gguf"))
import tiny_gguf  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", help="where NAME.gguf goes")
    parser.add_argument("names", nargs="*", help="models; all without")
    args = parser.parse_args()
    models = tiny_gguf.models()
    unknown = [name for name in args.names if name not in models]
    if unknown:
        parser.error(f"no such model: {', '.join(unknown)}; there are {', '.join(models)}")
    os.makedirs(args.folder, exist_ok=True)
    for name in args.names or models:
        data = tiny_gguf.make(models[name])
        path = os.path.join(args.folder, f"{name}.gguf")
        with open(path + ".part", "wb") as file:
            file.write(data)
        os.replace(path + ".part", path)
        print(f"{path}: {len(data)} bytes, sha256 {hashlib.sha256(data).hexdigest()[:16]}")


if __name__ == "__main__":
    main()
