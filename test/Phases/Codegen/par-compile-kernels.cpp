// Compiles only kernels for GPUs, for measurements by bench/gpu-check:
//   par-compile-kernels FILE.mlir FOLDER
// FOLDER gets a bundle's files of generated kernels (kernels.ptx and, with ptxas, kernels-sm80.cubin and others), and
// kernels.txt, which cuda-kernels-speed reads: a line for each kernel,
//   NAME SYMBOL BLOCKS THREADS {r|w|rw}:BYTES...
#include "par/Dialect/Par.h"
#include "par/Phases/Codegen/Codegen.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Parser/Parser.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"

using namespace par;

namespace {

bool write(const llvm::Twine &path, llvm::StringRef bytes) {
  std::error_code error;
  llvm::raw_fd_ostream out(path.str(), error);
  if (error) {
    llvm::errs() << "par-compile-kernels: error: cannot write " << path << ": " << error.message() << "\n";
    return false;
  }
  out << bytes;
  return true;
}

std::string lineOf(const KernelInfo &info) {
  std::string line = info.kernel + " " + info.symbol + " " + std::to_string(info.launch->grid) + " " +
                     std::to_string(info.launch->threads);
  for (const OperandInfo &operand : info.operands)
    line += (operand.access == OperandAccess::Read    ? " r:"
             : operand.access == OperandAccess::Write ? " w:"
                                                      : " rw:") +
            std::to_string(operand.bytes);
  return line + "\n";
}

bool writeAll(const CompiledKernels &kernels, const std::string &folder) {
  std::string table;
  for (const KernelInfo &info : kernels.kernels)
    table += lineOf(info);
  bool good = !llvm::sys::fs::create_directories(folder) && write(folder + "/kernels.ptx", kernels.ptx) &&
              write(folder + "/kernels.txt", table);
  for (const Cubin &cubin : kernels.cubins)
    good = good && write(folder + "/kernels-sm" + llvm::StringRef(cubin.sm).drop_front(3) + ".cubin", cubin.bytes);
  return good;
}

} // namespace

int main(int argc, char **argv) {
  if (argc != 3) {
    llvm::errs() << "usage: par-compile-kernels FILE.mlir FOLDER\n";
    return 2;
  }
  mlir::DialectRegistry registry;
  registerDialect(registry);
  mlir::MLIRContext context(registry);
  context.loadAllAvailableDialects();
  auto module = mlir::parseSourceFile<mlir::ModuleOp>(argv[1], &context);
  if (!module)
    return 1;
  CodegenOptions options;
  options.device = "cuda";
  options.isa = "all";
  llvm::FailureOr<CompiledKernels> kernels = compileKernels(*module, options);
  return succeeded(kernels) && writeAll(*kernels, argv[2]) ? 0 : 1;
}
