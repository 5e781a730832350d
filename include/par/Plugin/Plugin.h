// Plugins: libraries that add passes, ops and optimizers to par-opt and par-compile (docs/plugins.md).
#pragma once

#include "par/format/Version.h"

#include "mlir/IR/DialectRegistry.h"
#include "mlir/Pass/PassManager.h"

#include "llvm/Config/llvm-config.h"
#include "llvm/Support/Error.h"

#include <memory>
#include <string>
#include <vector>

namespace par {

/// Additions of one plugin, which its function PAR_PLUGIN fills in.
struct Plugin {
  std::string file;
  /// Adds its dialects, with their ops.
  void (*registerDialects)(mlir::DialectRegistry &) = nullptr;
  /// Makes its passes known to par-opt.
  void (*registerPasses)() = nullptr;

  /// Passes that par-compile runs before a phase of docs/design.md §2, on what the phase before it leaves.
  struct Before {
    std::string phase;
    void (*build)(mlir::OpPassManager &);
  };
  std::vector<Before> passes;
};

using Plugins = std::vector<std::shared_ptr<const Plugin>>;

/// Loads the library `file`, which stays loaded. Fails if it is no plugin, or one of another version of Par or LLVM;
/// no code of such a library has run then.
llvm::Expected<std::shared_ptr<const Plugin>> loadPlugin(const std::string &file);

} // namespace par

/// Versions that a plugin is compiled against: read before it is loaded.
#define PAR_PLUGIN_VERSIONS "Par " PAR_VERSION " and LLVM " LLVM_VERSION_STRING
#define PAR_PLUGIN_SECTION ".par.plugin"

/// Begins the one function of a plugin: PAR_PLUGIN(plugin) { plugin.registerDialects = ...; }
#define PAR_PLUGIN(plugin)                                                                                             \
  extern "C" __attribute__((section(PAR_PLUGIN_SECTION), used, visibility("default")))                                 \
  const char parPluginVersions[] = PAR_PLUGIN_VERSIONS;                                                                \
  extern "C" __attribute__((visibility("default"))) void parDescribePlugin(::par::Plugin &plugin)
