// The entry points of Open MPI, as far as they are used. Opened when a job needs them, so that a build and a machine
// without MPI work. Open MPI's handles are addresses of objects that its library exports, and these objects are looked
// up like functions; its statuses are not read. The library says its version before it is used, and any other MPI,
// whose handles are numbers, is refused.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

namespace par::comm {

using MpiComm = struct MpiCommObject *;
using MpiType = struct MpiTypeObject *;
using MpiRequest = struct MpiRequestObject *;
using MpiErrorHandler = struct MpiErrorHandlerObject *;
using MpiStatus = struct MpiStatusObject *;

/// Members of mpi.h that Open MPI 3 to 5 have alike.
inline constexpr int mpiOk = 0, mpiThreadFunneled = 1, mpiMaxText = 256, mpiMaxVersionText = 256;

#define PAR_MPI_ENTRIES(M)                                                                                             \
  M(libraryVersion, int, "MPI_Get_library_version", (char *, int *length))                                             \
  M(initThread, int, "MPI_Init_thread", (int *argc, char ***argv, int wanted, int *given))                             \
  M(finalize, int, "MPI_Finalize", ())                                                                                 \
  M(setErrorHandler, int, "MPI_Comm_set_errhandler", (MpiComm, MpiErrorHandler))                                       \
  M(rankOf, int, "MPI_Comm_rank", (MpiComm, int *))                                                                    \
  M(sizeOf, int, "MPI_Comm_size", (MpiComm, int *))                                                                    \
  M(send, int, "MPI_Issend", (const void *, int n, MpiType, int rank, int tag, MpiComm, MpiRequest *))                 \
  M(receive, int, "MPI_Irecv", (void *, int n, MpiType, int rank, int tag, MpiComm, MpiRequest *))                     \
  M(testSome, int, "MPI_Testsome", (int n, MpiRequest[], int *done, int indices[], MpiStatus))                         \
  M(errorText, int, "MPI_Error_string", (int, char *, int *length))

class Mpi {
public:
  /// Throws std::runtime_error where it is missing, or none that is known.
  Mpi();
#define PAR_MPI_MEMBER(NAME, RESULT, SYMBOL, PARAMETERS) RESULT(*NAME) PARAMETERS = nullptr;
  PAR_MPI_ENTRIES(PAR_MPI_MEMBER)
#undef PAR_MPI_MEMBER
  MpiComm world = nullptr;
  MpiType byte = nullptr;
  MpiErrorHandler errorsReturn = nullptr;

  /// "Open MPI 4.1.4".
  const std::string &version() const { return name; }
  /// Throws std::runtime_error where `result` is an error of the call `what`.
  void check(int result, const char *what) const;

private:
  void *find(const char *symbol) const;

  std::shared_ptr<void> library;
  std::string path, name;
};

} // namespace par::comm
