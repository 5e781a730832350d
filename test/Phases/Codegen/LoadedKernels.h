#pragma once

#include "../../../lib/Phases/KernelCheck/LoadedCode.h"

#include "par/Phases/Codegen/Emulation.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"

#include <functional>
#include <memory>
#include <string>

/// A module of kernels, compiled and loaded.
struct LoadedKernels {
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
    handle = std::make_unique<par::kernel_check::LoadedCode>(compiled.object, errors);
    if (!*handle)
      handle = nullptr;
  }
  Function function(const par::KernelInfo &info) const {
    par::kernel_check::LoadedCode::Tiles tiles = handle->find(info);
    if (!tiles)
      return nullptr;
    return [=](void *const *pointers, const uint64_t *immediates, uint32_t first, uint32_t last) {
      ASSERT_TRUE(tiles(pointers, immediates, first, last)) << "threads wait for ever";
    };
  }

  /// Links the emulated form of the GPU's code.
  bool emulate(const Edit &edit) {
    llvm::StringMap<std::string> ir;
    for (const auto &kernel : compiled.ir) {
      std::string &edited = ir[kernel.first()] = kernel.second;
      if (edit)
        edit(edited);
    }
    llvm::FailureOr<std::string> linked = par::emulateKernels(ir, errors);
    if (failed(linked))
      return false;
    compiled.object = std::move(*linked);
    return true;
  }

  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  par::CompiledKernels compiled;
  std::unique_ptr<par::kernel_check::LoadedCode> handle;
  std::string errors;
};
