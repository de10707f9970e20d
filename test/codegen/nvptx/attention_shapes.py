"""Writes a module of both phases' attention: attention_shapes.py HEADS KV_HEADS
HEAD_DIM TYPE."""

import sys


def program(phase, tensor, element, stride):
    return f"""  kvc.program @{phase}(%tokens: tensor<?xi32, #kvc.rows>, %batch: !kvc.batch) attributes {{phase = #kvc.phase<{phase}>, rows_bytes = {2 * stride} : i64}} {{
    kvc.dispatch "attention" 0 {{
      %q = kvc.read slot<rows, offset = 0, stride = {stride}, {element}> : {tensor}
      %c = kvc.attention %q, @kv, %batch {{scale = 0.125 : f64}} : {tensor}
      %r = kvc.round %c to bf16 : {tensor}
      kvc.write %r, slot<rows, offset = {stride}, stride = {stride}, bf16> : {tensor}
    }}
    kvc.return
  }}
"""


def main(heads, kv_heads, head_dim, element):
    stride = (heads * head_dim * 2 + 63) // 64 * 64
    tensor = f"tensor<?x{heads}x{head_dim}xf32, #kvc.rows>"
    print(
        f"""kvc.model @m attributes {{max_context = 512 : i64, target = #kvc.target<arch = "cuda", cpu = "sm_90", features = "", vector_width = 128>}} {{
  kvc.cache @kv : !kvc.cache<layers = 1, kv_heads = {kv_heads}, head_dim = {head_dim}, type = {element}, page = 64, split = 64>"""
    )
    for phase in ("prefill", "decode"):
        print(program(phase, tensor, element, stride), end="")
    print("}")


main(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
