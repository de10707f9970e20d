"""Reads .npy files of float32 or float64 with the standard library alone."""
import array
import ast
import struct
import sys


class NpyError(ValueError):
    """The file is not a .npy file that this reader knows."""


def read(path):
    """Returns (shape, values): values is a flat array.array in row-major order."""
    with open(path, "rb") as file:
        data = file.read()
    if data[:6] != b"\x93NUMPY" or len(data) < 12:
        raise NpyError(f"{path}: no .npy file")
    if data[6] == 1:
        start, (length,) = 10, struct.unpack_from("<H", data, 8)
    elif data[6] in (2, 3):
        start, (length,) = 12, struct.unpack_from("<I", data, 8)
    else:
        raise NpyError(f"{path}: .npy version {data[6]} is unknown")
    try:
        header = ast.literal_eval(data[start:start + length].decode("latin-1"))
        descr, order, shape = header["descr"], header["fortran_order"], header["shape"]
    except (ValueError, SyntaxError, KeyError, TypeError) as error:
        raise NpyError(f"{path}: unreadable .npy header: {error}") from error
    code = {"<f4": "f", "<f8": "d"}.get(descr)
    if code is None or order:
        raise NpyError(f"{path}: dtype {descr!r}, fortran_order {order}; wanted <f4 or <f8, row-major")
    count = 1
    for extent in shape:
        count *= extent
    values = array.array(code)
    body = data[start + length:]
    if len(body) != count * values.itemsize:
        raise NpyError(f"{path}: {len(body)} bytes of data, shape {shape} needs {count * values.itemsize}")
    values.frombytes(body)
    if sys.byteorder == "big":
        values.byteswap()
    return tuple(shape), values
