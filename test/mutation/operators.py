"""Single-instruction mutations of PTX text.

parse(line) reads an instruction; mutations(parsed) lists (what, line) for all
that can be done to it. Every mutant is PTX that assembles; none is the same
instruction in other words (or for xor of disjoint bits, a hint of the cache).
"""
import collections
import re

Instruction = collections.namedtuple("Instruction", "indent guard opcode operands")

LINE = re.compile(r"^(\s*)(@!?%p\d+\s+)?([a-z][\w.:]*)(?:\s+(.*?))?\s*;\s*$")
COMPARISONS = {"lt": "le", "le": "lt", "gt": "ge", "ge": "gt", "eq": "ne", "ne": "eq", "ltu": "leu", "leu": "ltu",
               "gtu": "geu", "geu": "gtu", "equ": "neu", "neu": "equ", "nan": "num", "num": "nan"}
# Nothing that a program computes depends on these.
UNTOUCHED = ("griddepcontrol.launch_dependents", "prefetch", "nanosleep")


def split(operands):
    """Operands at commas outside of braces and brackets."""
    parts, depth, start = [], 0, 0
    for i, character in enumerate(operands):
        depth += (character in "{[") - (character in "}]")
        if character == "," and depth == 0:
            parts.append(operands[start:i].strip())
            start = i + 1
    return parts + [operands[start:].strip()] if operands.strip() else []


def parse(line):
    found = LINE.match(line)
    if not found or found.group(3).startswith("."):
        return None
    return Instruction(found.group(1), found.group(2) or "", found.group(3), split(found.group(4) or ""))


def text(parsed, opcode=None, operands=None, guard=None):
    opcode = parsed.opcode if opcode is None else opcode
    operands = parsed.operands if operands is None else operands
    guard = parsed.guard if guard is None else guard
    return f"{parsed.indent}{guard}{opcode} {', '.join(operands)};"


def swapped(operands, i, j):
    operands = list(operands)
    operands[i], operands[j] = operands[j], operands[i]
    return operands


def changed(operands, i, value):
    return [*operands[:i], value, *operands[i + 1:]]


def bytes_of(opcode):
    """Bytes of one lane's access."""
    found = re.search(r"\.(v[248])?\.?[bsuf](\d+)$", opcode)
    if not found:
        return 16
    return int(found.group(2)) // 8 * int((found.group(1) or "v1")[1:])


def constant_changes(parsed):
    """An immediate operand that is not an address."""
    for i, operand in enumerate(parsed.operands):
        if i == 0 and not parsed.opcode.startswith("cp.async.wait_group"):
            continue
        if re.fullmatch(r"-?\d+", operand):
            value = int(operand)
            # The last bit of a magic factor hardly shows, nor do the high ones of a mask.
            high = parsed.opcode.startswith("mul.hi") and abs(value) >= 1 << 16
            if parsed.opcode.startswith(("and.b", "or.b", "xor.b")) and value not in (0, -1):
                value ^= value & -value
            elif parsed.opcode.startswith("shr.s") and value == 31:
                value = 30  # more is 31
            else:
                value = value ^ 1 << (abs(value).bit_length() - 3) if high else value + 1
            yield "changed constant", text(parsed, operands=changed(parsed.operands, i, str(value)))
        elif re.fullmatch(r"0f[0-9A-Fa-f]{8}", operand):
            bits = int(operand[2:], 16)
            bits = bits ^ 0x80000000 if bits & 0x7FFFFFFF else 0x3F800000
            yield "changed constant", text(parsed, operands=changed(parsed.operands, i, f"0f{bits:08X}"))


def address_changes(parsed):
    for i, operand in enumerate(parsed.operands):
        found = re.fullmatch(r"\[(%\w+|[A-Za-z_]\w*)(?:\+(-?\d+))?\]", operand)
        if not found:
            continue
        if parsed.opcode.startswith("ld.param"):
            number = int(re.search(r"_(\d+)$", found.group(1)).group(1))
            other = number - 1 if number in (6, 9, 16, 20) else number + 1
            name = re.sub(r"_\d+$", f"_{other}", found.group(1))
            if number not in (17, 21):
                yield "wrong parameter", text(parsed, operands=changed(parsed.operands, i, f"[{name}]"))
            continue
        offset = int(found.group(2) or 0) + bytes_of(parsed.opcode)
        yield "wrong offset", text(parsed, operands=changed(parsed.operands, i, f"[{found.group(1)}+{offset}]"))


def operation_changes(parsed):
    """Another opcode for the same operands."""
    opcode, base = parsed.opcode, parsed.opcode.split(".")[0]
    # Halves are added and multiplied with one rounding only, and 0 is added exactly.
    rounded = opcode.endswith(".f32") or base == "cvt" and re.search(r"\.(f16|bf16|f16x2|bf16x2)$", opcode)
    rounded = rounded and not (base in ("add", "sub") and parsed.operands[2] in ("0f00000000", "0f80000000"))
    if base in ("add", "sub"):
        other = "sub" if base == "add" else "add"
        yield "add and sub exchanged", text(parsed, opcode.replace(base, other, 1))
    if base in ("min", "max"):
        yield "min and max exchanged", text(parsed, opcode.replace(base, "max" if base == "min" else "min", 1))
    if base in ("and", "or"):
        yield "and and or exchanged", text(parsed, opcode.replace(base, "or" if base == "and" else "and", 1))
    if base in ("shl", "shr"):
        other = "shr" if base == "shl" else "shl"
        opcode_of = re.sub(r"\.[bus](\d+)$", r".u\1" if base == "shl" else r".b\1", opcode)
        yield "shifted the other way", text(parsed, opcode_of.replace(base, other, 1))
    if ".rn." in opcode and rounded:
        yield "wrong rounding", text(parsed, opcode.replace(".rn.", ".rz.", 1))
    if base == "setp":
        comparison = opcode.split(".")[1]
        yield "off by one bound" if comparison not in ("eq", "ne", "nan", "num") else "comparison negated", \
            text(parsed, opcode.replace("." + comparison + ".", "." + COMPARISONS[comparison] + ".", 1))
    if base == "xor":
        yield "or for xor", text(parsed, opcode.replace("xor", "or", 1))
    if opcode.startswith("mul.hi"):
        yield "mul.lo for mul.hi", text(parsed, opcode.replace(".hi", ".lo"))
    if opcode.startswith("ldmatrix"):
        other = opcode.replace(".trans", "") if ".trans" in opcode else opcode.replace(".shared", ".trans.shared")
        yield "wrong .trans", text(parsed, other)
    if opcode == "not.pred":
        yield "operation left out", text(parsed, "mov.pred")
    if base in ("ex2", "rsqrt", "rcp", "neg", "lg2", "tanh", "sqrt", "abs", "mul", "div") and opcode.endswith("f32"):
        if parsed.operands[1].startswith("%"):
            yield "operation left out", text(parsed, "mov.b32", parsed.operands[:2])
    if opcode.startswith("not.b"):
        yield "operation left out", text(parsed, opcode.replace("not", "mov"))


def operand_changes(parsed):
    opcode, base, operands = parsed.opcode, parsed.opcode.split(".")[0], parsed.operands
    if base in ("sub", "div", "rem") or (base == "cvt" and len(operands) == 3):
        yield "swapped operands", text(parsed, operands=swapped(operands, 1, 2))
    if base == "selp":
        yield "swapped operands", text(parsed, operands=swapped(operands, 1, 2))
    if base == "setp" and re.match(r"setp\.(lt|le|gt|ge)", opcode) and operands[1].startswith("%"):
        yield "swapped operands", text(parsed, operands=swapped(operands, 1, 2))
    if base == "fma" or opcode.startswith("mad.lo"):
        if operands[2] != operands[3]:
            yield "swapped operands", text(parsed, operands=swapped(operands, 2, 3))
    if base == "prmt":
        yield "swapped operands", text(parsed, operands=swapped(operands, 1, 2))
    if base == "mma":
        for i, what in ((1, "A"), (2, "B")):
            registers = operands[i].strip("{} ").replace(",", " ").split()
            if registers[0] == registers[1]:
                continue
            registers[0], registers[1] = registers[1], registers[0]
            yield f"swapped registers of {what}", text(
                parsed, operands=changed(operands, i, "{" + ", ".join(registers) + "}"))
        if re.match(r"\{%", operands[3]):
            registers = operands[3].strip("{} ").replace(",", " ").split()
            if registers[0] == registers[2]:
                return
            registers[0], registers[2] = registers[2], registers[0]
            yield "swapped sums", text(parsed, operands=changed(operands, 3, "{" + ", ".join(registers) + "}"))
    if base == "mov" and operands[-1].startswith("{") and operands[-1].count(",") == 1:
        registers = operands[-1].strip("{} ").replace(",", " ").split()
        yield "swapped operands", text(parsed, operands=[operands[0], "{" + ", ".join(registers[::-1]) + "}"])
    if base == "shfl" and re.fullmatch(r"\d+", operands[2]):
        # A butterfly over other distances that reach all lanes would be the same sum.
        lane = int(operands[2])
        lane = lane // 2 if lane >= 16 else lane * 2 if ".bfly" in opcode else lane + 1
        yield "wrong lane", text(parsed, operands=changed(operands, 2, str(lane)))
    elif base == "shfl":
        yield "wrong lane", text(parsed, operands=changed(operands, 2, "0"))
    if base == "mov" and operands[-1] in ("%tid.x", "%ctaid.x", "%ctaid.y", "%nctaid.x"):
        other = {"%tid.x": "%laneid", "%ctaid.x": "%ctaid.y", "%ctaid.y": "%ctaid.x", "%nctaid.x": "%ntid.x"}
        yield "wrong register", text(parsed, operands=[operands[0], other[operands[-1]]])


def drops(parsed):
    opcode = parsed.opcode
    nothing = f"{parsed.indent}// dropped"
    if opcode.startswith(("bar.", "barrier.")):
        yield "dropped barrier", nothing
    if opcode.startswith("cp.async.wait"):
        yield "dropped wait", nothing
    if opcode.startswith("cp.async.commit"):
        yield "dropped commit", nothing
    if opcode.startswith(("cp.async.ca", "cp.async.cg")):
        yield "dropped copy", nothing
    if opcode.startswith(("fence", "membar")):
        yield "dropped fence", nothing
    if opcode.startswith("griddepcontrol.wait"):
        yield "dropped wait", nothing
    if opcode.startswith(("st.", "red.", "stmatrix")):
        yield "dropped store", nothing
    if opcode.startswith("bra"):
        yield "dropped branch", nothing
    if parsed.guard:
        guard = parsed.guard.replace("@!", "@") if "@!" in parsed.guard else parsed.guard.replace("@", "@!")
        yield "negated predicate", text(parsed, guard=guard)
        if not opcode.startswith("bra"):
            yield "dropped predicate", text(parsed, guard="")


def mutations(parsed):
    """All that can be done to an instruction, in a fixed order."""
    if parsed.opcode.startswith(UNTOUCHED):
        return []
    found = [*drops(parsed), *operand_changes(parsed), *operation_changes(parsed), *address_changes(parsed)]
    # shfl's lane is above; the member mask and the clamp of it stay. Another
    # number for a barrier or another size for a copy is no PTX or no change.
    if not parsed.opcode.startswith(("shfl", "mma", "ldmatrix", "ld.", "st.", "vote", "bar", "cp.async.c")):
        found += constant_changes(parsed)
    return found
