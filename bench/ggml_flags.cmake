# Included by llama.cpp's tensor library when llama_cpp.py builds it: compiler
# flags for it alone, so that the rest is built once for all variants.
separate_arguments(flags UNIX_COMMAND "${KVC_GGML_FLAGS}")
add_compile_options(${flags})
