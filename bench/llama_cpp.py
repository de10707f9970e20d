#!/usr/bin/env python3
"""Builds llama.cpp from the source archive of PyPI's llama-cpp-python.

All for the CPU it runs on (-march=native), in variants that differ in the flags
of its tensor library alone; peers are compared with the best of them:
  noamx   without AMX: GCC 12 removes stores into the tile configuration, so
          that AMX as built by default dies of an illegal instruction
  nofp16  without AVX512-FP16 either: with it the compiler makes attention much
          slower at head sizes of 64
  amx     AMX with the pass that breaks it turned off, without AVX512-FP16
  native  nothing turned off, where the CPU has neither
Nothing of it is committed or linked with kvc.
"""
import argparse
import glob
import hashlib
import os
import shutil
import subprocess
import sys

PACKAGE, VERSION = "llama_cpp_python", "0.3.36"
HERE = os.path.dirname(os.path.abspath(__file__))
DEFAULT_FOLDER = os.path.join(HERE, "../.cache/llama.cpp")
OPTIONS = ["-DCMAKE_BUILD_TYPE=Release", "-DBUILD_SHARED_LIBS=OFF", "-DGGML_NATIVE=ON", "-DGGML_OPENMP=ON",
           "-DLLAMA_OPENSSL=OFF", "-DLLAMA_BUILD_SERVER=OFF", "-DLLAMA_BUILD_UI=OFF", "-DLLAMA_BUILD_APP=OFF",
           "-DLLAMA_BUILD_TESTS=OFF", "-DLLAMA_BUILD_EXAMPLES=OFF"]
NO_AMX = "-mno-amx-tile -mno-amx-int8 -mno-amx-bf16"
NO_FP16 = "-mno-avx512fp16"
NO_DSE = "-fno-tree-dse -fno-dse"


def variants():
    """{name: flags} for this CPU."""
    flags = cpu_flags()
    amx, fp16 = "amx_tile" in flags, "avx512_fp16" in flags
    if amx and fp16:
        return {"noamx": NO_AMX, "nofp16": f"{NO_AMX} {NO_FP16}", "amx": f"{NO_FP16} {NO_DSE}"}
    if amx:
        return {"noamx": NO_AMX, "amx": NO_DSE}
    return {"native": "", "nofp16": NO_FP16} if fp16 else {"native": ""}


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


def build(folder=DEFAULT_FOLDER, archive=None, jobs=1, names=None):
    """Builds variants, all or those named; returns {variant: folder with llama-bench and llama_logits}."""
    folder = os.path.abspath(folder)
    os.makedirs(folder, exist_ok=True)
    source, where, result = get_source(folder, archive), os.path.join(folder, "build"), {}
    unknown = set(names or ()) - set(variants())
    if unknown:
        sys.exit(f"llama_cpp: no such variant for this CPU: {', '.join(sorted(unknown))}; there are "
                 f"{', '.join(variants())}")
    for name, flags in variants().items():
        if names and name not in names:
            continue
        result[name] = os.path.join(folder, name)
        if os.path.exists(os.path.join(result[name], "llama_logits")):
            continue
        log = os.path.join(folder, f"{name}.log")
        run(["cmake", "-S", source, "-B", where, "-G", "Ninja", *OPTIONS, f"-DKVC_GGML_FLAGS={flags}",
             f"-DCMAKE_PROJECT_ggml_INCLUDE={HERE}/ggml_flags.cmake"], log)
        run(["ninja", "-C", where, f"-j{jobs}", "llama-bench", "llama"], log)
        os.makedirs(result[name], exist_ok=True)
        shutil.copy2(os.path.join(where, "bin", "llama-bench"), result[name])
        run(["g++", "-std=c++17", "-O2", "-Wall", "-Wextra", "-fopenmp", f"-I{source}/include",
             f"-I{source}/ggml/include", os.path.join(HERE, "llama_logits.cpp"), "-o",
             os.path.join(result[name], "llama_logits"), f"{where}/src/libllama.a", f"{where}/ggml/src/libggml.a",
             f"{where}/ggml/src/libggml-cpu.a", f"{where}/ggml/src/libggml-base.a", "-lpthread", "-ldl"], log)
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", default=DEFAULT_FOLDER, help="where source and builds lie (default: %(default)s)")
    parser.add_argument("--archive", help="a source archive that is here already, instead of a download")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    args = parser.parse_args()
    for name, where in build(args.folder, args.archive, args.jobs).items():
        print(f"llama_cpp: {name}: {where}/llama-bench")


if __name__ == "__main__":
    main()
