/* Runs when loaded: must be refused. Volatile, so that the compiler cannot run it instead. */
volatile int state;
__attribute__((constructor)) static void start(void) { state = 1; }
