"""What the stages of bench/device share: commands with limits, carried programs, results that survive a kill."""
import array
import base64
import importlib.util
import json
import os
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
REPOSITORY = os.path.dirname(os.path.dirname(HERE))
START = time.monotonic()


def load_npy_reader():
    """test/oracle/npy.py, which the tests use too."""
    path = os.path.join(REPOSITORY, "test", "oracle", "npy.py")
    spec = importlib.util.spec_from_file_location("npy", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


npy = load_npy_reader()


class Failure(Exception):
    """One step came to nothing; the message is one line."""


def last_lines(data, count=4, most=600):
    lines = [line for line in data.decode("utf-8", "replace").splitlines() if line.strip()]
    return " | ".join(lines[-count:])[-most:]


def kill_tree(root):
    """Ends a process of ours with all that it started: tools that wrap programs leave them behind otherwise."""
    children = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as file:
                    parent = int(file.read().rpartition(")")[2].split()[1])
            except (OSError, ValueError, IndexError):
                continue
            children.setdefault(parent, []).append(int(name))
    doomed = [root]
    for pid in doomed:
        doomed += children.get(pid, [])
    for pid in doomed:
        try:
            os.kill(pid, signal.SIGKILL)
        except OSError:
            pass


def execute(command, timeout, environment=None, accepted=(0,)):
    """(stdout, stderr, exit status) of a command, or Failure naming what it said last."""
    what = " ".join(os.path.basename(word) if index == 0 else word for index, word in enumerate(command))[:160]
    try:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   env={**os.environ, **environment} if environment else None)
    except OSError as error:
        raise Failure(f"{command[0]}: {error}") from error
    try:
        out, err = process.communicate(timeout=max(1, timeout))
    except subprocess.TimeoutExpired as error:
        kill_tree(process.pid)
        said = last_lines(process.communicate()[1] or b"", 2, 200)
        raise Failure(f"no end after {timeout:.0f} s: {what}{': ' + said if said else ''}") from error
    if accepted is not None and process.returncode not in accepted:
        raise Failure(f"exit status {process.returncode}: {what}: {last_lines(err) or last_lines(out)}")
    return out, err, process.returncode


class Results:
    """A stage's JSON object, written again after every change: a stage that is killed leaves what it has."""

    def __init__(self, path):
        self.path, self.values = path, {"failures": []}

    def set(self, key, value):
        self.values[key] = value
        self.write()

    def fail(self, what, error):
        text = f"{what}: {error}"
        print(f"FAILED {text}", flush=True)
        self.values["failures"].append(text)
        self.write()

    def write(self):
        part = f"{self.path}.part"
        with open(part, "w", encoding="utf-8") as file:
            json.dump(self.values, file)
        os.replace(part, self.path)


class Deadline:
    """The time that a stage has."""

    def __init__(self, seconds):
        self.end = time.monotonic() + seconds

    def left(self):
        return self.end - time.monotonic()

    def limit(self, seconds):
        """`seconds`, or what is left where that is less; Failure where nothing is."""
        left = self.left()
        if left < 2:
            raise Failure("no time left")
        return min(seconds, left)


def stage_parser(parser):
    """Options that `run` hands to every stage."""
    parser.add_argument("--folder", required=True, help="where the carried files were unpacked")
    parser.add_argument("--output", required=True, help="the stage's JSON file")
    parser.add_argument("--limit", type=float, default=300.0, help="seconds for the whole stage")
    parser.add_argument("--backend", default="cuda", choices=("cuda", "sim"))
    parser.add_argument("--programs", help="only these programs, separated by commas")
    parser.add_argument("--jobs", type=int, default=6, help="programs at once")
    return parser


def manifest(folder):
    with open(os.path.join(folder, "manifest.json"), encoding="utf-8") as file:
        return json.load(file)


def programs_of(args, role):
    """The manifest's entries of a role, as --programs wants them."""
    entries = [entry for entry in manifest(args.folder)["programs"] if role in entry["roles"]]
    if args.programs:
        wanted = args.programs.split(",")
        entries = [entry for entry in entries if entry["name"] in wanted]
    return entries


def floats(text):
    """An array of float32 from base64 of little-endian bytes."""
    values = array.array("f")
    values.frombytes(base64.b64decode(text))
    if sys.byteorder == "big":
        values.byteswap()
    return values


def base64_floats(values):
    out = array.array("f", values)
    if sys.byteorder == "big":
        out.byteswap()
    return base64.b64encode(out.tobytes()).decode("ascii")


class Batch:
    """One run's answers: an object of --json for each sequence, and its logits as an array of float32."""

    def __init__(self, results, logits, stderr):
        self.results, self.logits, self.stderr = results, logits, stderr

    @property
    def stats(self):
        return self.results[0]["stats"]


def run_batch(program, prompts, new_tokens, folder, timeout, options=(), environment=None, logits=False, greedy=True,
              wrapper=()):
    """Runs prompts of ids in one batch; `folder` is for files of this call alone."""
    os.makedirs(folder, exist_ok=True)
    path, prefix = os.path.join(folder, "prompts.jsonl"), os.path.join(folder, "logits")
    with open(path, "w", encoding="utf-8") as file:
        for prompt in prompts:
            file.write(json.dumps({"prompt_ids": prompt}) + "\n")
    command = [*wrapper, program, "--prompts", path, "--max-new-tokens", str(new_tokens), "--ignore-eos", "--json"]
    command += ["--temperature", "0"] if greedy else []
    command += ["--logits", prefix] if logits else []
    out, err, _ = execute(command + list(options), timeout, environment)
    lines = out.decode("utf-8", "replace").splitlines()[-len(prompts):]
    try:
        results = [json.loads(line) for line in lines]
        arrays = None
        if logits:
            names = [f"{prefix}.{index}.npy" for index in range(len(prompts))]
            arrays = [npy.read(name)[1] for name in names]
            for name in names:
                os.remove(name)
    except (ValueError, OSError) as error:
        raise Failure(f"{os.path.basename(program)}: {error}") from error
    if len(results) != len(prompts):
        raise Failure(f"{os.path.basename(program)}: {len(results)} JSON results, wanted {len(prompts)}")
    return Batch(results, arrays, err.decode("utf-8", "replace"))


def prompt_ids(length, number, vocab):
    """Some ids below `vocab`, others for another number."""
    return [(37 * i * i + 11 * i + 101 * number + length) % vocab for i in range(length)]


def note(text):
    print(f"[{time.monotonic() - START:6.1f} s] {text}", flush=True)


def read_record(folder, entry):
    with open(os.path.join(folder, entry["record"]), encoding="utf-8") as file:
        return json.load(file)
