// Checks that the sanitizers leave out. LLVM's allocators mark their memory in instrumented code and fill it in shared
// libraries, which are not instrumented. Memory that a process holds to its end is no leak.
extern "C" const char *__asan_default_options() { return "allow_user_poisoning=0:detect_leaks=0"; }
