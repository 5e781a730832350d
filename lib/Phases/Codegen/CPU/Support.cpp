#include "NativeCode.h"

#include "llvm/AsmParser/Parser.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;

namespace par::cpu {

// Plain loops over bytes; "no-builtins" keeps them from becoming calls of themselves.
static const char *const memoryFunctions = R"(
define hidden ptr @memcpy(ptr noalias returned %to, ptr noalias %from, i64 %n) #0 {
entry:
  %any = icmp ne i64 %n, 0
  br i1 %any, label %loop, label %done
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %p = getelementptr i8, ptr %from, i64 %i
  %q = getelementptr i8, ptr %to, i64 %i
  %byte = load i8, ptr %p
  store i8 %byte, ptr %q
  %next = add nuw i64 %i, 1
  %more = icmp ult i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  ret ptr %to
}
define hidden ptr @memset(ptr returned %to, i32 %value, i64 %n) #0 {
entry:
  %byte = trunc i32 %value to i8
  %any = icmp ne i64 %n, 0
  br i1 %any, label %loop, label %done
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %q = getelementptr i8, ptr %to, i64 %i
  store i8 %byte, ptr %q
  %next = add nuw i64 %i, 1
  %more = icmp ult i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  ret ptr %to
}
attributes #0 = { noinline "no-builtins" }
)";

// Below SSE 4.1 LLVM calls the C library to round. FLOAT is the type, INT one that holds all its integers
// below WHOLE, from which on every number of the type is whole (NaN compares false and comes back as it is).
static const char *const roundFunctions = R"(
define hidden FLOAT @floorSUFFIX(FLOAT %x) #0 {
entry:
  %magnitude = call FLOAT @llvm.fabs.WIDTH(FLOAT %x)
  %fraction = fcmp olt FLOAT %magnitude, WHOLE
  br i1 %fraction, label %round, label %same
round:
  %integer = fptosi FLOAT %x to INT
  %toZero = sitofp INT %integer to FLOAT
  %above = fcmp ogt FLOAT %toZero, %x
  %below = fsub FLOAT %toZero, 1.0
  %floor = select i1 %above, FLOAT %below, FLOAT %toZero
  %signed = call FLOAT @llvm.copysign.WIDTH(FLOAT %floor, FLOAT %x)
  ret FLOAT %signed
same:
  ret FLOAT %x
}
define hidden FLOAT @ceilSUFFIX(FLOAT %x) #0 {
  %minus = fneg FLOAT %x
  %floor = call FLOAT @floorSUFFIX(FLOAT %minus)
  %ceil = fneg FLOAT %floor
  ret FLOAT %ceil
}
declare FLOAT @llvm.fabs.WIDTH(FLOAT)
declare FLOAT @llvm.copysign.WIDTH(FLOAT, FLOAT)
)";

// LLVM rounds a bf16 that it computes by itself (a choice between two, a sum that it forms) with a call. To nearest
// even.
static const char *const formatFunctions = R"(
define hidden bfloat @__truncsfbf2(float %x) #0 {
  %bits = bitcast float %x to i32
  %high = lshr i32 %bits, 16
  %odd = and i32 %high, 1
  %half = add i32 %odd, 32767
  %sum = add i32 %bits, %half
  %rounded = lshr i32 %sum, 16
  %quiet = or i32 %high, 64
  %isNan = fcmp uno float %x, %x
  %chosen = select i1 %isNan, i32 %quiet, i32 %rounded
  %low = trunc i32 %chosen to i16
  %result = bitcast i16 %low to bfloat
  ret bfloat %result
}
)";

static std::string replaced(std::string text, StringRef word, StringRef by) {
  for (size_t at = 0; (at = text.find(word.data(), at, word.size())) != std::string::npos; at += by.size())
    text.replace(at, word.size(), by.data(), by.size());
  return text;
}

static std::string roundingOf(StringRef type, StringRef integer, StringRef suffix, StringRef width, StringRef whole) {
  std::string text = roundFunctions;
  text = replaced(std::move(text), "FLOAT", type);
  text = replaced(std::move(text), "INT", integer);
  text = replaced(std::move(text), "SUFFIX", suffix);
  text = replaced(std::move(text), "WIDTH", width);
  return replaced(std::move(text), "WHOLE", whole);
}

FailureOr<std::string> compileSupport(StringRef isa) {
  std::string text = memoryFunctions;
  text += formatFunctions;
  text += roundingOf("float", "i32", "f", "f32", "8388608.0");          // 2^23
  text += roundingOf("double", "i64", "", "f64", "4503599627370496.0"); // 2^52
  llvm::LLVMContext context;
  llvm::SMDiagnostic diagnostic;
  std::unique_ptr<llvm::Module> module = llvm::parseAssemblyString(text, diagnostic, context);
  if (!module)
    return failure();
  return emitObject(*module, isa);
}

} // namespace par::cpu
