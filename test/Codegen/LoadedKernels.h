#ifndef PAR_TEST_CODEGEN_LOADEDKERNELS_H
#define PAR_TEST_CODEGEN_LOADEDKERNELS_H

#include "EmulatedKernels.h"

#include "par/Codegen/Codegen.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"

#include <cstdio>
#include <dlfcn.h>
#include <fcntl.h>
#include <functional>
#include <string>
#include <unistd.h>

/// A module of kernels, compiled and loaded.
struct LoadedKernels {
  using Tiles = void (*)(void *const *, const uint64_t *, uint32_t, uint32_t);
  using Function = std::function<void(void *const *, const uint64_t *, uint32_t, uint32_t)>;

  /// `edit` changes the LLVM IR of kernels for a GPU before they are made to run here.
  using Edit = std::function<void(std::string &)>;

  explicit LoadedKernels(const std::string &text, const std::string &isa = "", Edit edit = nullptr) {
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
    if (llvm::StringRef(isa).starts_with("sm_")) {
      options.device = "cuda";
      options.keepIR = true;
    }
    llvm::FailureOr<par::CompiledKernels> result = par::compileKernels(*module, options);
    if (failed(result))
      return;
    compiled = std::move(*result);
    if (options.device == "cuda" && !emulate(edit))
      return;
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
    void *symbol = dlsym(handle, info.symbol.c_str());
    if (!symbol)
      return nullptr;
    if (!info.launch)
      return reinterpret_cast<Tiles>(symbol);
    *static_cast<emulated_gpu::Calls *>(dlsym(handle, (info.symbol + ".calls").c_str())) =
        emulated_gpu::Block::calls();
    void *shared = dlsym(handle, (info.symbol + ".shared").c_str());
    size_t bytes = sharedBytes(info.symbol);
    return [=, launch = *info.launch](void *const *pointers, const uint64_t *immediates, uint32_t, uint32_t) {
      emulated_gpu::run(reinterpret_cast<emulated_gpu::Block::Body>(symbol), pointers, immediates, launch.grid,
                        launch.threads, shared, bytes);
    };
  }

  /// Links what the GPU's code is on this machine.
  bool emulate(const Edit &edit) {
    std::vector<std::string> objects;
    for (const auto &ir : compiled.ir) {
      std::string edited = ir.second;
      if (edit)
        edit(edited);
      llvm::FailureOr<std::string> object = emulated_gpu::compileForHost(edited, ir.first().str(), errors);
      if (failed(object))
        return false;
      objects.push_back(std::move(*object));
    }
    objects.push_back(*par::cpu::compileSupport("x86-64-v3"));
    llvm::FailureOr<std::string> linked = par::cpu::linkObjects(objects, errors);
    if (failed(linked))
      return false;
    compiled.object = std::move(*linked);
    return true;
  }

  /// "@par_k0.shared = internal addrspace(3) global [512 x i8] undef".
  size_t sharedBytes(const std::string &symbol) const {
    llvm::StringRef ir = compiled.ir.find(symbol)->second, rest = ir.split(symbol + ".shared = ").second;
    size_t bytes = 0;
    rest.split('[').second.consumeInteger(10, bytes);
    return bytes;
  }

  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  par::CompiledKernels compiled;
  void *handle = nullptr;
  std::string errors;
};

#endif
