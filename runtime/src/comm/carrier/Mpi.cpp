// The entry points of Open MPI.
#include "Mpi.h"
#include "par/messages/CommMessages.h"

#include <array>
#include <cstdlib>
#include <dlfcn.h>
#include <stdexcept>

using namespace par::comm;

namespace {

/// "Open MPI 4.1.4" of "Open MPI v4.1.4, package: Debian OpenMPI, ...", "" of another library.
std::string versionIn(std::string_view text) {
  constexpr std::string_view prefix = "Open MPI v";
  if (!text.starts_with(prefix))
    return "";
  std::string_view number = text.substr(prefix.size());
  return "Open MPI " + std::string(number.substr(0, number.find_first_not_of("0123456789.")));
}

} // namespace

Mpi::Mpi() {
  const char *given = std::getenv("PAR_MPI_LIBRARY");
  path = given && *given ? given : "libmpi.so.40";
  // Open MPI's plugins look for its symbols among those of the process.
  library = {dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL), [](void *handle) {
               if (handle)
                 dlclose(handle);
             }};
  if (!library) {
    const char *why = dlerror();
    throw std::runtime_error(say(Sentence::noMpi, path, why ? why : ""));
  }
  libraryVersion = reinterpret_cast<decltype(libraryVersion)>(find("MPI_Get_library_version"));
  std::array<char, mpiMaxVersionText + 1> text{};
  int length = 0;
  libraryVersion(text.data(), &length);
  name = versionIn(text.data());
  if (!name.starts_with("Open MPI 4."))
    throw std::runtime_error(say(Sentence::otherMpi, path, std::string_view(text.data()).substr(0, 60)));
#define PAR_MPI_FIND(NAME, RESULT, SYMBOL, PARAMETERS) NAME = reinterpret_cast<decltype(NAME)>(find(SYMBOL));
  PAR_MPI_ENTRIES(PAR_MPI_FIND)
#undef PAR_MPI_FIND
  world = static_cast<MpiComm>(find("ompi_mpi_comm_world"));
  byte = static_cast<MpiType>(find("ompi_mpi_byte"));
  errorsReturn = static_cast<MpiErrorHandler>(find("ompi_mpi_errors_return"));
}

void *Mpi::find(const char *symbol) const {
  void *address = dlsym(library.get(), symbol);
  if (!address)
    throw std::runtime_error(say(Sentence::otherMpi, path, std::string("no ") + symbol));
  return address;
}

void Mpi::check(int result, const char *what) const {
  if (result == mpiOk)
    return;
  std::array<char, mpiMaxText + 1> text{};
  int length = 0;
  errorText(result, text.data(), &length);
  throw std::runtime_error(say(Sentence::mpiFailed, what, text.data()));
}
