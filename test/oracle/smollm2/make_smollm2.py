#!/usr/bin/env python3
"""Makes record.json: what SmolLM2 writes greedily, by transformers in float32.

transformers reads the GGUF file itself, so its weights are the dequantised
blocks of the same file. The prompt ids come from the `tokenizers` package with
the vocabulary and merges of the file and the published pre-tokenizer of SmolLM
(every digit alone, then the byte-level expression of GPT-2); transformers'
own reading of the file leaves the digits' rule out, so its ids are only
compared.

Runs in the environment that ../make_venv makes.
"""
import argparse
import hashlib
import json
import os
import sys
from importlib.metadata import version

import gguf
import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import AutoModelForCausalLM, AutoTokenizer, DynamicCache, GgufConfig

from prompts import PROMPTS


def gguf_value(reader, key):
    field = reader.fields.get(key)
    return None if field is None else field.contents()


def make_tokenizer(reader):
    """A byte-level BPE tokenizer from the lists in the GGUF file."""
    if gguf_value(reader, "tokenizer.ggml.pre") != "smollm":
        sys.exit("make_smollm2: the file's pre-tokenizer is not smollm")
    tokens = gguf_value(reader, "tokenizer.ggml.tokens")
    types = gguf_value(reader, "tokenizer.ggml.token_type")
    merges = gguf_value(reader, "tokenizer.ggml.merges")
    vocab = {token: index for index, token in enumerate(tokens)}
    tokenizer = Tokenizer(models.BPE(vocab, [tuple(m.split(" ", 1)) for m in merges]))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Digits(individual_digits=True),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
    ])
    tokenizer.decoder = decoders.ByteLevel()
    control, user_defined = 3, 4
    tokenizer.add_special_tokens([
        AddedToken(token, special=True, normalized=False)
        for token, kind in zip(tokens, types) if kind in (control, user_defined)
    ])
    return tokenizer


def greedy(model, prompt_ids, steps):
    """Greedy ids with the two largest logits of every step."""
    ids, top2 = [], []
    cache, feed = DynamicCache(), torch.tensor([prompt_ids])
    with torch.inference_mode():
        for _ in range(steps):
            out = model(feed, cache=cache, use_cache=True, logits_to_keep=1)
            value, index = torch.topk(out.logits[0, -1].float(), 2)
            ids.append(int(index[0]))
            top2.append([int(index[0]), round(float(value[0]), 5),
                         int(index[1]), round(float(value[1]), 5)])
            feed = torch.tensor([[ids[-1]]])
    return ids, top2


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", required=True, help="SmolLM2-135M-Instruct as GGUF")
    parser.add_argument("--steps", type=int, default=48)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("-o", "--output",
                        default=os.path.join(os.path.dirname(__file__), "record.json"))
    args = parser.parse_args()
    torch.set_num_threads(args.threads)

    versions = {name: version(name) for name in ("torch", "transformers", "tokenizers", "gguf")}
    print("make_smollm2:", versions)
    reader = gguf.GGUFReader(args.model)
    tokenizer = make_tokenizer(reader)
    add_bos = bool(gguf_value(reader, "tokenizer.ggml.add_bos_token"))
    bos = [int(gguf_value(reader, "tokenizer.ggml.bos_token_id"))] if add_bos else []

    where = {"pretrained_model_name_or_path": os.path.dirname(os.path.abspath(args.model)),
             "gguf_file": os.path.basename(args.model)}
    model = AutoModelForCausalLM.from_pretrained(**where, dtype=torch.float32,
                                                 quantization_config=GgufConfig(dequantize=True))
    model.eval()
    assert all(p.dtype == torch.float32 for p in model.parameters())
    other = AutoTokenizer.from_pretrained(**where)

    sequences = []
    for prompt in PROMPTS:
        prompt_ids = bos + tokenizer.encode(prompt, add_special_tokens=False).ids
        same = prompt_ids == other(prompt, add_special_tokens=False).input_ids
        ids, top2 = greedy(model, prompt_ids, args.steps)
        gap = min(row[1] - row[3] for row in top2)
        text = tokenizer.decode(ids, skip_special_tokens=False)
        print(f"{len(prompt_ids):4} tokens, closest pair {gap:.4f}, transformers' ids "
              f"{'equal' if same else 'differ'}: {text[:60]!r}")
        sequences.append({"prompt": prompt, "prompt_ids": prompt_ids, "ids": ids, "top2": top2})

    with open(args.model, "rb") as file:
        digest = hashlib.sha256(file.read()).hexdigest()
    record = {
        "name": "smollm2",
        "made_by": "test/oracle/smollm2/make_smollm2.py",
        "versions": versions,
        "arithmetic": "float32 activations and KV, dequantised weights",
        "model_sha256": digest,
        "tie": {"logit_gap": 0.02, "most": 2},
        "sequences": sequences,
    }
    with open(args.output, "w", encoding="utf-8") as file:
        lines = ",\n".join(json.dumps(s, ensure_ascii=True) for s in record.pop("sequences"))
        head = json.dumps(record, indent=1)[:-2]
        file.write(f'{head},\n "sequences": [\n{lines}\n ]\n}}\n')
    with open(args.output, encoding="utf-8") as file:
        json.load(file)


if __name__ == "__main__":
    main()
