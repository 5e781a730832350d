/* Calls what it does not hold: must be refused. */
int elsewhere(int);
int here(int x) { return elsewhere(x); }
