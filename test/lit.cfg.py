# The lit suite of everything under test/: run it with `ninja check-kvc`, or a
# part of it with `lit build/test --filter=frontend`.
import os

import shutil

import lit.formats

config.name = "kvc"
config.test_format = lit.formats.ShTest(execute_external=False)
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.kvc_binary_dir, "test")
config.suffixes = [".mlir", ".test"]
config.excludes = ["oracle", "Inputs"]

config.environment["PATH"] = os.path.pathsep.join(
    [config.kvc_tools_dir, config.llvm_tools_dir, os.environ["PATH"]]
)
# NVIDIA's assembler: scripts/setup says how it comes here.
for folder in (os.path.join(config.kvc_source_dir, ".cache/ptxas/bin"), "/usr/local/cuda/bin"):
    config.environment["PATH"] += os.pathsep + folder
if shutil.which("ptxas", path=config.environment["PATH"]):
    config.available_features.add("ptxas")
# Scripts that make test files share their writers.
config.environment["PYTHONPATH"] = os.path.join(config.test_source_root, "frontend")
config.environment["PYTHONDONTWRITEBYTECODE"] = "1"
# The tests of SmolLM2 itself are skipped where KVC_SMOLLM2 names no file;
# KVC_FULL=1 runs all of the matrix of generated code.
for name in ("KVC_SMOLLM2", "KVC_FULL", "CUDA_HOME", "CUDA_PATH", "ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS"):
    if name in os.environ:
        config.environment[name] = os.environ[name]

config.substitutions.append(("%python", config.python))
config.substitutions.append(("%source", config.kvc_source_dir))
# A CUDA driver without a GPU, which fails in the ways that FAKE_CUDA names.
config.substitutions.append(("%kvc_fake_cuda", os.path.join(config.kvc_binary_dir, "fake-cuda")))

# REQUIRES: kvc-opt, kvc-translate, kvc; sanitized when built with sanitizers.
config.available_features.update(config.kvc_tools)
# The checks of machine code for GPUs. scripts/setup sees to it that ptxas is there.
for folder in os.environ["PATH"].split(os.path.pathsep) + [
    os.path.join(os.environ.get(name) or "/nonexistent", "bin") for name in ("CUDA_HOME", "CUDA_PATH")
] + [os.path.join(config.kvc_source_dir, ".cache", "ptxas", "bin"), "/usr/local/cuda/bin"]:
    ptxas = os.path.join(folder, "ptxas")
    if os.access(ptxas, os.X_OK):
        config.available_features.add("ptxas")
        config.substitutions.append(("%ptxas", ptxas))
        break
else:
    lit_config.warning("no ptxas is found: scripts/ptxas obtains it; tests of machine code are left out")
if config.sanitize:
    config.available_features.add("sanitized")
if os.geteuid() == 0:
    config.available_features.add("root")
