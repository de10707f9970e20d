"""A small GGUF file of architecture llama, right in all its parts, for tests that change one."""

from ggufwriter import F32, Gguf

HIDDEN, LAYERS, HEADS, KV_HEADS, FFN, VOCAB = 64, 2, 4, 2, 96, 40


def llama(keys={}, tensors={}, head_dim=16, without=(), extra=()):
    """`keys` and `tensors` replace or add, with None they remove; `tensors` maps a name to
    (dims, type) or (dims, type, data); `without` and `extra` are names of tensors (extra ones
    are vectors of HIDDEN values)."""
    all_keys = {
        "general.architecture": "llama",
        "general.name": "A tiny Model",
        "llama.block_count": LAYERS,
        "llama.context_length": 256,
        "llama.embedding_length": HIDDEN,
        "llama.feed_forward_length": FFN,
        "llama.attention.head_count": HEADS,
        "llama.attention.head_count_kv": KV_HEADS,
        "llama.attention.layer_norm_rms_epsilon": 1e-5,
        **keys,
    }
    q_rows, kv_rows = HEADS * head_dim, KV_HEADS * head_dim
    all_tensors = {"token_embd.weight": ([HIDDEN, VOCAB], F32), "output_norm.weight": ([HIDDEN], F32)}
    for n in range(LAYERS):
        for name, dims in {
            "attn_norm": [HIDDEN], "ffn_norm": [HIDDEN],
            "attn_q": [HIDDEN, q_rows], "attn_k": [HIDDEN, kv_rows], "attn_v": [HIDDEN, kv_rows],
            "attn_output": [q_rows, HIDDEN],
            "ffn_gate": [HIDDEN, FFN], "ffn_up": [HIDDEN, FFN], "ffn_down": [FFN, HIDDEN],
        }.items():  # fmt: skip
            all_tensors[f"blk.{n}.{name}.weight"] = (dims, F32)
    all_tensors.update(tensors)
    for name in extra:
        all_tensors[name] = ([HIDDEN], F32)
    model = Gguf()
    for name, value in all_keys.items():
        if value is not None:
            model.key(name, value)
    for name, entry in all_tensors.items():
        if name not in without:
            model.tensor(name, *entry)
    return model
