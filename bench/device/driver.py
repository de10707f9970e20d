"""The few calls of the CUDA driver's API that run a PTX text with buffers, by ctypes alone."""
import ctypes

from common import Failure


class Gpu:
    """GPU 0 and its primary context. A fault in a kernel spoils the context: `broken` is set."""

    def __init__(self):
        try:
            self.library = ctypes.CDLL("libcuda.so.1")
        except OSError as error:
            raise Failure(f"no CUDA driver: {error}") from error
        self.broken = False
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self.call("cuInit", ctypes.c_uint(0))
        self.call("cuDeviceGet", ctypes.byref(device), ctypes.c_int(0))
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.call("cuCtxSetCurrent", context)

    def call(self, name, *arguments):
        result = getattr(self.library, name)(*arguments)
        if result != 0:
            text = ctypes.c_char_p()
            self.library.cuGetErrorString(result, ctypes.byref(text))
            # What a launch or a module refuses leaves the context whole; other errors come back for ever.
            self.broken |= name in ("cuCtxSynchronize", "cuMemcpyDtoH_v2")
            raise Failure(f"{name}: error {result}, {text.value.decode() if text.value else 'unknown'}")

    def module(self, ptx):
        """A module of PTX text; the assembler's words are in the Failure."""
        module = ctypes.c_void_p()
        log = ctypes.create_string_buffer(4096)
        options = (ctypes.c_int * 2)(5, 6)  # CU_JIT_ERROR_LOG_BUFFER and its size
        values = (ctypes.c_void_p * 2)(ctypes.cast(log, ctypes.c_void_p), len(log))
        try:
            self.call("cuModuleLoadDataEx", ctypes.byref(module), ctypes.c_char_p(ptx.encode()), ctypes.c_uint(2),
                      options, values)
        except Failure as error:
            said = " ".join(log.value.decode("utf-8", "replace").split())[:300]
            raise Failure(f"{error}: {said}") from error
        return module

    def launch(self, module, kernel, grid, block, shared, parameters):
        """Runs a kernel to its end. Parameters are bytes objects (values) and bytearrays, which stand for buffers of
        the GPU: they go in before and come back after it."""
        function, buffers, storage = ctypes.c_void_p(), [], []
        self.call("cuModuleGetFunction", ctypes.byref(function), module, ctypes.c_char_p(kernel.encode()))
        if shared > 48 << 10:
            self.call("cuFuncSetAttribute", function, ctypes.c_int(8), ctypes.c_int(shared))
        try:
            for parameter in parameters:
                if isinstance(parameter, bytearray):
                    address = ctypes.c_uint64()
                    self.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(max(1, len(parameter))))
                    buffers.append((address, parameter))
                    data = (ctypes.c_char * len(parameter)).from_buffer(parameter)
                    self.call("cuMemcpyHtoD_v2", address, data, ctypes.c_size_t(len(parameter)))
                    storage.append(address)
                else:
                    storage.append(ctypes.create_string_buffer(parameter, max(1, len(parameter))))
            pointers = (ctypes.c_void_p * max(1, len(storage)))(
                *[ctypes.cast(ctypes.pointer(value), ctypes.c_void_p) for value in storage])
            sizes = [ctypes.c_uint(value) for value in (*grid, *block, shared)]
            self.call("cuLaunchKernel", function, *sizes, None, pointers, None)
            self.call("cuCtxSynchronize")
            for address, parameter in buffers:
                data = (ctypes.c_char * len(parameter)).from_buffer(parameter)
                self.call("cuMemcpyDtoH_v2", data, address, ctypes.c_size_t(len(parameter)))
        finally:
            if not self.broken:
                for address, _ in buffers:
                    self.call("cuMemFree_v2", address)

    def unload(self, module):
        self.call("cuModuleUnload", module)
