#ifndef PAR_TEST_CODEGEN_LOADEDKERNELS_H
#define PAR_TEST_CODEGEN_LOADEDKERNELS_H

#include "par/Codegen/Codegen.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"

#include <cstdio>
#include <dlfcn.h>
#include <fcntl.h>
#include <string>
#include <unistd.h>

/// A module of kernels, compiled and loaded.
struct LoadedKernels {
  using Function = void (*)(void *const *, const uint64_t *, uint32_t, uint32_t);

  explicit LoadedKernels(const std::string &text, const std::string &isa = "") {
    mlir::DialectRegistry registry;
    par::registerDialect(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
    context.getDiagEngine().registerHandler([this](mlir::Diagnostic &diagnostic) {
      errors += diagnostic.str() + "\n";
      return mlir::failure(); // they are printed too
    });
    module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
    if (!module)
      return;
    par::CodegenOptions options;
    options.isa = isa;
    llvm::FailureOr<par::CompiledKernels> result = par::compileKernels(*module, options);
    if (failed(result))
      return;
    compiled = std::move(*result);
    std::string path = testing::TempDir() + "par-kernels-XXXXXX";
    int file = mkstemp(path.data());
    if (write(file, compiled.object.data(), compiled.object.size()) ==
        static_cast<ssize_t>(compiled.object.size()))
      handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    close(file);
    unlink(path.c_str());
  }
  ~LoadedKernels() {
    if (handle)
      dlclose(handle);
  }
  Function function(const par::KernelInfo &info) const {
    return reinterpret_cast<Function>(dlsym(handle, info.symbol.c_str()));
  }

  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  par::CompiledKernels compiled;
  void *handle = nullptr;
  std::string errors;
};

#endif
