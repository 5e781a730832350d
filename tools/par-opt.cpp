// The tool of pass developers: every pass, pipeline and gate on IR from a file or stdin.
#include "par/AllPasses.h.inc"
#include "par/Dialect/Par.h"

#include "mlir/IR/DialectRegistry.h"
#include "mlir/InitAllDialects.h"
#include "mlir/InitAllExtensions.h"
#include "mlir/Transforms/Passes.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  par::registerDialect(registry);
  mlir::registerAllDialects(registry);
  mlir::registerAllExtensions(registry);
  mlir::registerCanonicalizerPass();
  mlir::registerCSEPass();
  registerAllParPasses();
  return mlir::failed(mlir::MlirOptMain(argc, argv, "Par's pass driver\n", registry)) ? 1 : 0;
}
