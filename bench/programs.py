"""Runs kvc's compiled programs, and says what machine they ran on."""
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
REPOSITORY = os.path.dirname(HERE)


def output_of(command, timeout=3600):
    """stdout of a command that must succeed."""
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              timeout=timeout, check=False)
    except OSError as error:
        sys.exit(f"{command[0]}: {error}")
    except subprocess.TimeoutExpired:
        sys.exit(f"no end after {timeout} s: {' '.join(command)[:300]}")
    if done.returncode != 0:
        sys.stderr.write(done.stderr.decode("utf-8", "replace")[-2000:])
        sys.exit(f"exit status {done.returncode}: {' '.join(command)[:300]}")
    return done.stdout.decode("utf-8", "replace")


def compile_model(kvc, model, program, *options):
    """Compiles; returns the command as text."""
    command = [kvc, "compile", model, "-o", program, *options]
    output_of(command)
    return " ".join(command)


def generate(program, prompt_ids, new_tokens, *options):
    """One sequence's JSON object."""
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
        json.dump({"prompt_ids": prompt_ids}, file)
        file.write("\n")
        file.flush()
        lines = output_of([program, "--prompts", file.name, "--max-new-tokens", str(new_tokens), "--temperature", "0",
                           "--ignore-eos", "--json", *options]).splitlines()
    return json.loads(lines[-1])


def weight_bytes(program):
    """Bytes of weights, which decoding one token reads once, as --info says."""
    match = re.search(r"^weights\s+(\d+) bytes", output_of([program, "--info"]), re.MULTILINE)
    if not match:
        sys.exit(f"{program}: --info names no bytes of weights")
    return int(match.group(1))


def bandwidth(mebibytes, threads, seconds=1.0):
    """Read bandwidth in GB/s by bandwidth.c."""
    with tempfile.TemporaryDirectory() as folder:
        tool = os.path.join(folder, "bandwidth")
        output_of(["cc", "-O3", "-march=native", "-pthread", "-o", tool, os.path.join(HERE, "bandwidth.c")])
        return float(output_of([tool, str(mebibytes), str(threads), str(seconds)]).split()[0])


def machine():
    """What a figure needs beside it to mean something."""
    facts = {"date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()), "kernel": platform.release(),
             "cores": len(os.sched_getaffinity(0)), "load_before": os.getloadavg()[0]}
    wanted = ("model name", "cpu family", "model", "stepping", "cache size")
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        for line in file:
            key, _, value = line.partition(":")
            if key.strip() in wanted:
                facts.setdefault(key.strip(), value.strip())
            elif key.strip() == "flags":
                flags = set(value.split())
                facts["isa"] = sorted(flags & {"avx2", "fma", "f16c", "avx512f", "avx512vl", "avx512_vnni", "avx_vnni",
                                               "avx512_bf16", "avx512_fp16", "amx_int8"})
                break
    commit = subprocess.run(["git", "-C", REPOSITORY, "describe", "--always", "--dirty"], stdout=subprocess.PIPE,
                            stderr=subprocess.DEVNULL, check=False)
    facts["kvc"] = commit.stdout.decode().strip() or "unknown"
    return facts


def print_machine(facts):
    print(f"machine: {facts.get('model name', 'unknown CPU')} (family {facts.get('cpu family')}, model "
          f"{facts.get('model')}), {facts['cores']} cores, {' '.join(facts.get('isa', []))}; {facts['date']}; "
          f"kvc {facts['kvc']}")
    if facts["load_before"] > 0.5 * facts["cores"]:
        print(f"machine: the load is {facts['load_before']:.1f} before the run: other work spoils the figures")
