#!/usr/bin/env python3
"""Compiles every small model and compares each program with its record.

    check_models.py --kvc build/bin/kvc [NAME ...]

The models are the JSON specs of test/models that have a record in tiny/, and
the tiny GGUF models of tiny_gguf/, written into a temporary folder. Each is
compiled with float32 activations and cache and checked by check_program.py.
With --device=sim or cuda it is compiled for GPUs, whose activations are bf16,
and may differ from its record by a tenth of the logits' deviation.
The last line says how many models are equal; standard library only.
"""
import argparse
import concurrent.futures
import contextlib
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "tiny_gguf"))
import tiny_gguf  # noqa: E402


def run(command, timeout):
    """Returns (exit status, output)."""
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=timeout, check=False)
        return done.returncode, done.stdout.decode("utf-8", "replace").rstrip()
    except subprocess.TimeoutExpired:
        return 124, f"no end after {timeout} s"


def compile_model(name, model, program, options, args):
    """Returns (exit status, output)."""
    status, output = run([args.kvc, "compile", model, "-o", program, *options, *args.compile_arg], args.timeout)
    return status, f"{name}: kvc compile failed with status {status}: {output}"


def check(name, record, model, program, args):
    """Compiles one model and compares; returns (exit status, output)."""
    options = ["--target=cuda"] if args.device else ["--activations=f32", "--kv-type=f32"]
    status, output = compile_model(name, model, program, options, args)
    if status != 0:
        return status, output
    device = [f"--device={args.device}"] if args.device else []
    status, output = run([sys.executable, os.path.join(HERE, "check_program.py"), record, program,
                          *(["--tolerance=0.1"] if device else []), "--", *device, *args.program_arg], args.timeout)
    if not args.invariance:
        return status, output
    command = [sys.executable, os.path.join(HERE, "check_invariance.py"), "--kernels", program]
    if device:
        more, text = run([*command, "--lengths=70,9,1", "--new=4", "--device", args.device], args.timeout)
        return status or more, f"{output}\n{text}"
    more, text = run(command, args.timeout)
    status, output = status or more, f"{output}\n{text}"
    more, text = compile_model(name, model, program, ["--activations=int8", "--kv-type=f16"], args)
    if more == 0:
        more, text = run(command, args.timeout)
    return status or more, f"{output}\n{text} (int8, f16)"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kvc", required=True, help="the driver, build/bin/kvc")
    parser.add_argument("--compile-arg", action="append", default=[], metavar="ARG",
                        help="a further argument of kvc compile, such as --target-cpu=x86-64-v3")
    parser.add_argument("--program-arg", action="append", default=[], metavar="ARG",
                        help="a further argument of the programs, such as --no-cache")
    parser.add_argument("--device", choices=("sim", "cuda"), help="compile for GPUs and run there")
    parser.add_argument("--invariance", action="store_true",
                        help="check too that no kernel's rows depend on threads, batch, chunks and cache, "
                             "for float32 and for int8 activations")
    parser.add_argument("--keep", metavar="FOLDER", help="put models and programs there and leave them")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="models at once (default: %(default)s)")
    parser.add_argument("--timeout", type=float, default=300.0, help="seconds for one compilation or comparison")
    parser.add_argument("names", nargs="*", help="models; all without")
    args = parser.parse_args()

    ggufs = tiny_gguf.models()
    models = {}
    for name in sorted(os.listdir(os.path.join(HERE, "tiny"))):
        if name.endswith(".json"):
            models[name[:-5]] = (os.path.join(HERE, "tiny", name), os.path.join(HERE, "../models", name))
    for name in ggufs:
        models[name] = (os.path.join(HERE, "tiny_gguf", f"{name}.json"), None)
    unknown = [name for name in args.names if name not in models]
    if unknown:
        parser.error(f"no such model: {', '.join(unknown)}; there are {', '.join(models)}")

    def one(name):
        with contextlib.ExitStack() as stack:
            folder = args.keep or stack.enter_context(tempfile.TemporaryDirectory(prefix="kvc-models-"))
            os.makedirs(folder, exist_ok=True)
            record, model = models[name]
            if model is None:
                model = os.path.join(folder, f"{name}.gguf")
                with open(model, "wb") as file:
                    file.write(tiny_gguf.make(ggufs[name]))
            return check(name, record, model, os.path.join(folder, name), args)

    names, equal = args.names or list(models), 0
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for status, output in pool.map(one, names):
            print(output, flush=True)
            equal += status == 0
    print(f"models: {equal}/{len(names)} equal to their records")
    return 0 if equal == len(names) else 1


if __name__ == "__main__":
    sys.exit(main())
