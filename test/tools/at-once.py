"""Starts `kvc run` of one model twice at the same moment: both must work, one compiles."""
import os
import subprocess
import sys

cache, model = sys.argv[1:]
os.makedirs(cache)
environment = {**os.environ, "XDG_CACHE_HOME": cache}
command = ["kvc", "run", model, "--prompt-ids", "10,20", "--max-new-tokens", "4"]
runs = [
    subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    for _ in range(2)
]
outputs = [run.communicate() for run in runs]
assert [run.returncode for run in runs] == [0, 0], outputs
assert outputs[0][0] == outputs[1][0] != "", outputs
assert sum("generating code" in error for _, error in outputs) == 1, outputs
