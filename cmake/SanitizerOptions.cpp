// Options of the sanitizers for programs that use LLVM, compiled into them.

// LLVM's allocators poison memory that they have not handed out. Their code in
// headers does so here, but libLLVM.so, which is not instrumented, hands the
// same memory out without lifting the poison.
extern "C" const char *__asan_default_options();
const char *__asan_default_options() { return "allow_user_poisoning=0"; }
