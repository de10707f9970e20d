"""The sixteen prompts of the SmolLM2 record, from 1 token to about 600."""

LONG_STORY = """The lighthouse at Corran Head had been dark for eleven winters when Ines came \
to measure it. She carried a steel tape, a notebook with squared paper, and a letter from the \
county which said that the tower could be taken down if it was no longer sound. The road ended \
at a gate, and beyond the gate there was only grass, salted flat by the wind, and the white \
shape of the tower with its rusted gallery.

She began with the outside. The wall was granite to the height of a man and rendered brick above \
that. At the base it measured four metres and ten centimetres across; at the gallery, two metres \
and sixty. She wrote both numbers down, drew a small section beside them, and marked the cracks: \
three fine ones on the side of the sea, none on the side of the land. A crack on the side of the \
sea meant salt in the mortar. That could be repaired. A crack on the side of the land would have \
meant that the hill was moving, and nobody could repair the hill.

Inside, the stair went round the wall without a rail. Half way up there was a room with an iron \
stove, a table, and a shelf on which somebody had left a row of jars, each with a label in the \
same careful hand: nails, washers, wicks, string too short to use. She laughed at the last one, \
and the tower gave the laugh back to her a moment later, lower and slower, as if it had thought \
about the joke before answering.

The lamp itself was gone, but the clockwork that had turned it was still in place. The weight hung \
on its chain at the bottom of the shaft, where it had come to rest on the last night. Ines put her \
hand on the crank. It would take a hundred and twenty turns, the old keeper had told her, to lift \
the weight to the top, and then the light would turn by itself for four hours, and then a man had \
to get up and do it again. He had done this for thirty years. When she asked him whether he had \
been lonely, he had looked surprised, and said that a person who has to be somewhere every four \
hours is never lonely, only tired.

She turned the crank once, to hear the sound of it. Then she turned it again. By the time the \
afternoon had gone grey she had counted to one hundred and nineteen, and she stood with both hands \
on the iron, out of breath, and did not know whether to make the last turn or not. Below her the \
sea went in and out of the rocks. In the notebook the letter from the county waited between two \
pages, with an empty line at the bottom for her name.

On the way down she stopped at the shelf, took the last jar into the light of the window, and \
read its label again. Then she"""

CODE = '''def merge_intervals(intervals):
    """Merge overlapping intervals.

    >>> merge_intervals([(1, 3), (2, 6), (8, 10)])
    [(1, 6), (8, 10)]
    """
    if not intervals:
        return []
    intervals = sorted(intervals, key=lambda pair: pair[0])
    merged = [intervals[0]]
    for start, end in intervals[1:]:
'''

MEDIUM = """Bread needs four things: flour, water, salt and time. The flour gives starch and \
gluten; the water wakes the yeast and lets the gluten form long strands; the salt slows the yeast \
down and gives taste. Time does the rest. A dough that rises slowly in a cold room for a night \
tastes better than one that is hurried in a warm place, because the enzymes in the flour have had \
the hours they need to turn a little of the starch into sugar. When the loaf is baked, that sugar \
browns and makes the crust. The most common mistake of a beginner is therefore"""

PROMPTS = [
    "Once",
    " ",
    "The capital of France is",
    "I can't believe it's already over; they've said we'd better leave, and I'm sure you'll agree it isn't",
    "  Two leading spaces,   three inside,\ttabs\tand\n\n\nnew lines  ",
    "In 1969 there were 31415926 people, 2,718 houses and 007 spies. 12 x 12 = 144, 13 x 13 =",
    CODE,
    "for (int i = 0; i < n; ++i) {\n\tsum += a[i] * b[i];\n}\nprintf(\"%d\\n\",",
    "Party time 🎉🎉 with 👩‍👩‍👧‍👦 and 🇩🇪 flags! The weather is ☀️ so we",
    "東京は日本の首都です。人口は約1400万人で、",
    "Ĉu vi parolas Esperanton? Größe, naïve, façade, Ωμέγα, Привет, мир! Κα",
    "<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n<|im_start|>user\n"
    "Why is the sky blue?<|im_end|>\n<|im_start|>assistant\n",
    "<|im_start|>user\nWrite three short rules for a safe kitchen.<|im_end|>\n"
    "<|im_start|>assistant\n1.",
    "a<|im_end|>b <|endoftext|> c<repo_name>kvc <|not_a_token|> <file_sep>main.c",
    MEDIUM,
    LONG_STORY,
]
