/* Has a function that is chosen by code when it is loaded: must be refused. */
static int plain(int x) { return x; }
static int (*choose(void))(int) { return plain; }
int chosen(int x) __attribute__((ifunc("choose")));
