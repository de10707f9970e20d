#!/usr/bin/env python3
"""Writes transformers' float32 logits of kl's text, a reference that is not kvc's.

Runs in the environment that test/oracle/make_venv makes.
"""
import argparse
import os
from importlib.machinery import SourceFileLoader
from importlib.metadata import version
from importlib.util import module_from_spec, spec_from_loader

import numpy as np
import torch
from transformers import AutoModelForCausalLM, GgufConfig


def kl_module():
    """bench/kl, which has no .py in its name."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "kl")
    spec = spec_from_loader("kl", SourceFileLoader("kl", path))
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", required=True, help="SmolLM2-135M-Instruct as GGUF")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("output", help="F.npy for kl --reference")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    model = AutoModelForCausalLM.from_pretrained(
        os.path.dirname(os.path.abspath(args.model)), gguf_file=os.path.basename(args.model), dtype=torch.float32,
        quantization_config=GgufConfig(dequantize=True))
    ids = kl_module().text_ids()
    with torch.inference_mode():
        logits = model.eval()(torch.tensor([ids[:-1]])).logits[0].numpy()
    np.save(args.output, logits.astype("<f4"))
    print(f"transformers_logits: {logits.shape}, transformers {version('transformers')}, torch {version('torch')}")


if __name__ == "__main__":
    main()
