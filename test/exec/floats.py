"""floats.py FILE NUMBERS...: writes float32 values, for the weights of a test."""
import array
import sys

values = array.array("f", map(float, sys.argv[2:]))
if sys.byteorder == "big":
    values.byteswap()
with open(sys.argv[1], "wb") as file:
    values.tofile(file)
