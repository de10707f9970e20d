"""Compares what kernels wrote (a program's --trace) among runs of one model. Standard library only."""
import json
import os


class Differs(RuntimeError):
    """A row's bits depend on how it was computed."""


class Rows:
    """The bits that each kernel wrote, in every run so far, by the tokens up to the row's own."""

    def __init__(self):
        self.prefixes, self.bits = {}, {}

    def add(self, path, sequences):
        """Takes the trace of a run of `sequences`, each all its tokens."""
        names = []
        for tokens in sequences:
            names.append([])
            for token in tokens:
                before = names[-1][-1] if names[-1] else None
                names[-1].append(self.prefixes.setdefault((before, token), len(self.prefixes)))
        with open(path, encoding="utf-8") as file:
            for line in file:
                row = json.loads(line)
                key = names[row["sequence"]][row["position"]], row["kernel"], row["layer"], row["write"]
                if self.bits.setdefault(key, row["hash"]) != row["hash"]:
                    raise Differs(f"kernel {row['kernel']} of layer {row['layer']} writes other bits for position "
                                  f"{row['position']} in a {row['phase']} step than in another run")
        os.remove(path)
