#!/usr/bin/env python3
"""Builds llama.cpp from the source archive of PyPI's llama-cpp-python.

Variants: `native` (-march=native) and, where the CPU has AVX512-FP16,
`nofp16` (-mno-avx512fp16): with those instructions the compiler makes its
attention much slower at head sizes of 64, so peers are compared with the
better of the two. Nothing of it is committed or linked with kvc.
"""
import argparse
import glob
import hashlib
import os
import subprocess
import sys

PACKAGE, VERSION = "llama_cpp_python", "0.3.36"
HERE = os.path.dirname(os.path.abspath(__file__))
DEFAULT_FOLDER = os.path.join(HERE, "../.cache/llama.cpp")
OPTIONS = ["-DCMAKE_BUILD_TYPE=Release", "-DBUILD_SHARED_LIBS=OFF", "-DGGML_NATIVE=ON", "-DGGML_OPENMP=ON",
           "-DLLAMA_OPENSSL=OFF", "-DLLAMA_BUILD_SERVER=OFF", "-DLLAMA_BUILD_UI=OFF", "-DLLAMA_BUILD_APP=OFF",
           "-DLLAMA_BUILD_TESTS=OFF", "-DLLAMA_BUILD_EXAMPLES=OFF"]
VARIANTS = {"native": "", "nofp16": "-mno-avx512fp16"}


def run(command, log):
    print("llama_cpp:", " ".join(command), flush=True)
    with open(log, "ab") as file:
        if subprocess.run(command, stdout=file, stderr=subprocess.STDOUT, check=False).returncode != 0:
            sys.exit(f"llama_cpp: failed, see {log}")


def get_source(folder, archive):
    """The folder of llama.cpp's source, downloaded and unpacked where it is not there."""
    source = os.path.join(folder, f"{PACKAGE}-{VERSION}", "vendor", "llama.cpp")
    if not os.path.exists(os.path.join(source, "CMakeLists.txt")):
        if archive is None:
            run([sys.executable, "-m", "pip", "download", "--no-deps", "--no-binary", ":all:", "--dest", folder,
                 f"{PACKAGE}=={VERSION}"], os.path.join(folder, "download.log"))
            archive = glob.glob(os.path.join(folder, f"{PACKAGE}-{VERSION}.tar.gz"))[0]
        with open(archive, "rb") as file:
            print(f"llama_cpp: {archive}: sha256 {hashlib.sha256(file.read()).hexdigest()}")
        run(["tar", "-xzf", archive, "-C", folder], os.path.join(folder, "unpack.log"))
    return source


def cpu_flags():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        for line in file:
            if line.startswith("flags"):
                return set(line.split(":", 1)[1].split())
    return set()


def build(folder=DEFAULT_FOLDER, archive=None, jobs=1):
    """Builds every variant for this CPU; returns {variant: build folder}."""
    folder = os.path.abspath(folder)
    os.makedirs(folder, exist_ok=True)
    source, result = get_source(folder, archive), {}
    for name, flags in VARIANTS.items():
        if name == "nofp16" and "avx512_fp16" not in cpu_flags():
            continue
        where = os.path.join(folder, f"build-{name}")
        log = os.path.join(folder, f"build-{name}.log")
        if not os.path.exists(os.path.join(where, "build.ninja")):
            run(["cmake", "-S", source, "-B", where, "-G", "Ninja", *OPTIONS, f"-DCMAKE_C_FLAGS={flags}",
                 f"-DCMAKE_CXX_FLAGS={flags}"], log)
        run(["ninja", "-C", where, f"-j{jobs}", "llama-bench", "llama"], log)
        result[name] = where
    return result


def build_logits_tool(folder, where):
    """Compiles llama_logits.cpp against one variant; returns its path."""
    source = os.path.join(os.path.abspath(folder), f"{PACKAGE}-{VERSION}", "vendor", "llama.cpp")
    tool = os.path.join(where, "bin", "llama_logits")
    run(["g++", "-std=c++17", "-O2", "-Wall", "-Wextra", "-fopenmp", f"-I{source}/include", f"-I{source}/ggml/include",
         os.path.join(HERE, "llama_logits.cpp"), "-o", tool, f"{where}/src/libllama.a", f"{where}/ggml/src/libggml.a",
         f"{where}/ggml/src/libggml-cpu.a", f"{where}/ggml/src/libggml-base.a", "-lpthread", "-ldl"],
        os.path.join(folder, "llama_logits.log"))
    return tool


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", default=DEFAULT_FOLDER, help="where source and builds lie (default: %(default)s)")
    parser.add_argument("--archive", help="a source archive that is here already, instead of a download")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    args = parser.parse_args()
    for name, where in build(args.folder, args.archive, args.jobs).items():
        print(f"llama_cpp: {name}: {where}/bin/llama-bench")


if __name__ == "__main__":
    main()
