# REQUIRES: kvc-translate
# RUN: %python %s %source %t.json
# One wrong thing in a spec at a time; each refusal is one line that names the file and the key.
import json
import os
import subprocess
import sys

source, path = sys.argv[1:]
with open(source + "/test/models/partial_rotary_small.json") as file:
    right = json.load(file)


def text(**changes):
    spec = {**right, **changes}
    return json.dumps({key: value for key, value in spec.items() if value is not None})


rotary = right["positions"]["rotary"]
norm = right["norm"]
cases = [
    (text(layers=None), "key 'layers': found nothing, rule: must be given"),
    (text(layers=0), "key 'layers': found 0, rule: a whole number, 1 to 4096"),
    (text(layers=2.5), "key 'layers': found 2.5, rule: a whole number, 1 to 4096"),
    (text(layers="two"), "key 'layers': found \"two\", rule: a whole number, 1 to 4096"),
    (text(hidden=-64), "key 'hidden': found -64, rule: a whole number, 1 to 16777216"),
    (text(vocab=10**30), "key 'vocab': found 1e+30, rule: a whole number, 1 to 16777216"),
    (text(kv_heads=3), "key 'kv_heads': found 3, rule: divides heads, which are 4"),
    (text(heads=2**20, head_dim=64), "key 'head_dim': found 64, rule: heads * head_dim is at most 16777216"),
    (text(heads=3, kv_heads=None, head_dim=None), "key 'head_dim': found nothing, rule: must be given"),
    (text(colour="red"), "key 'colour': found an unknown key, rule: one of name, vocab, hidden,"),
    (text(norm={**norm, "size": 1}), "key 'norm.size': found an unknown key, rule: one of kind, bias, eps"),
    (text(norm={**norm, "bias": True}), "key 'norm.bias': found true, rule: false for rms_norm"),
    (text(norm={**norm, "eps": "small"}), "key 'norm.eps': found \"small\", rule: a number, 0.0 to 1.0"),
    (text(norm=[]), "key 'norm': found [], rule: an object"),
    (text(activation="relu"), "key 'activation': found \"relu\", rule: one of gelu, gelu_tanh, swiglu"),
    (text(positions="alibi"), "key 'positions': found \"alibi\", rule: none, learned or {\"rotary\": ...}"),
    (text(positions={"rotary": {**rotary, "dims": 21}}), "key 'positions.rotary.dims': found 21, rule: a whole number, 1 to 20"),
    (text(positions={"rotary": {**rotary, "dims": 7}}), "key 'positions.rotary.dims': found 7, rule: an even number"),
    (text(positions={"rotary": {**rotary, "theta": 0}}), "key 'positions.rotary.theta': found 0, rule: a number, 1e-09 to 1e+18"),
    (text(positions={"rotary": {**rotary, "llama3": {"factor": 8, "low": 4, "high": 4, "context": 64}}}),
     "key 'positions.rotary.llama3.high': found 4.0, rule: above low, which is 4.0"),
    (text(positions={"rotary": {**rotary, "llama3": {"factor": 0.5, "low": 1, "high": 4, "context": 64}}}),
     "key 'positions.rotary.llama3.factor': found 0.5, rule: a number, 1.0 to 1000000000.0"),
    (text(positions={"rotary": {**rotary, "llama3": 8}}), "key 'positions.rotary.llama3': found 8, rule: an object"),
    (text(weights={"seed": 1, "format": "q4_0"}), "key 'weights.format': found \"q4_0\", rule: one of f32, f16, bf16"),
    (text(weights={"gguf": "a", "format": "f16"}), "key 'weights.format': found \"f16\", rule: only with a seed"),
    (text(qkv="both"), "key 'qkv': found \"both\", rule: one of separate, fused"),
    (text(bias={"qkv": 1, "output": True, "ffn": True}), "key 'bias.qkv': found 1, rule: true or false"),
    (text(logit_cap=0), "key 'logit_cap': found 0, rule: a number, 0.001 to 1000000.0"),
    (text(tied="no"), "key 'tied': found \"no\", rule: true or false"),
    (text(eos=[113]), "key 'eos': found 113, rule: ids below vocab, which is 113"),
    (text(eos=2), "key 'eos': found 2, rule: a list of ids"),
    (text(weights={}), "key 'weights': found {}, rule: either a seed or a gguf file"),
    (text(weights={"seed": -1}), "key 'weights.seed': found -1, rule: a whole number, 0 to 2^64 - 1"),
    (text(weights={"seed": 1, "gguf": "a"}), "key 'weights': found {\"gguf\":\"a\",\"seed\":1}, rule: either a seed or a gguf file"),
    (text(weights={"gguf": "", "names": {}}), "key 'weights.gguf': found \"\", rule: the path of a file"),
    (text(name=7), "key 'name': found 7, rule: text"),
    (text()[:-1] + ', "layers": 3}', "key 'layers': found twice, rule: once"),
    (text()[:-9], "found something that is not JSON at byte "),
    ("", "found something that is not JSON at byte "),
    ("[" * 100000, "found nesting deeper than 32"),
    ("[]", "found no JSON object, rule: a spec is one"),
    (text(name="\ud800"), "found something that is not JSON at byte "),
]
for content, message in cases:
    with open(path, "w") as file:
        file.write(content)
    output = path + ".mlir"
    run = subprocess.run(["kvc-translate", "--import-spec", path, "-o", output], capture_output=True, text=True)
    lines = run.stderr.splitlines()
    right_answer = run.returncode == 1 and len(lines) == 1 and lines[0].startswith(f"kvc: {path}: {message}")
    if not right_answer or os.path.exists(output):
        sys.exit(f"expected: kvc: {path}: {message}\nfound ({run.returncode}): {run.stderr}")
print(len(cases), "specs refused")
