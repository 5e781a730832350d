// An MPI that is none, for tests of what --comm mpi refuses. PAR_STUB_MPI_VERSION is what it calls itself;
// PAR_STUB_MPI_FAILS lets MPI_Init_thread fail. Its world has one rank.
#include <stdlib.h>
#include <string.h>

int ompi_mpi_comm_world, ompi_mpi_byte, ompi_mpi_errors_return;

int MPI_Get_library_version(char *text, int *length) {
  const char *version = getenv("PAR_STUB_MPI_VERSION");
  strcpy(text, version ? version : "Open MPI v4.1.4, package: stub");
  *length = (int)strlen(text);
  return 0;
}
int MPI_Init_thread(int *argc, char ***argv, int wanted, int *given) {
  *given = wanted;
  return getenv("PAR_STUB_MPI_FAILS") ? 16 : 0;
}
int MPI_Finalize(void) { return 0; }
int MPI_Comm_set_errhandler(void *comm, void *handler) { return 0; }
int MPI_Comm_rank(void *comm, int *rank) {
  *rank = 0;
  return 0;
}
int MPI_Comm_size(void *comm, int *size) {
  *size = 1;
  return 0;
}
int MPI_Issend(const void *from, int n, void *type, int rank, int tag, void *comm, void **request) { return 1; }
int MPI_Irecv(void *to, int n, void *type, int rank, int tag, void *comm, void **request) { return 1; }
int MPI_Testsome(int n, void **requests, int *done, int *indices, void *statuses) { return 1; }
int MPI_Error_string(int code, char *text, int *length) {
  strcpy(text, "MPI_ERR_OTHER: known error not in list");
  *length = (int)strlen(text);
  return 0;
}
