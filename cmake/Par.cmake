# How Par's compiler libraries are built: one static library a phase, one precompiled header for all,
# linked against the shared MLIR and LLVM libraries only.
find_package(MLIR 22.1 REQUIRED CONFIG HINTS /usr/lib/llvm-22/lib/cmake/mlir)
list(APPEND CMAKE_MODULE_PATH ${MLIR_CMAKE_DIR} ${LLVM_CMAKE_DIR})
include(TableGen)
include(AddLLVM)
include(AddMLIR)
separate_arguments(PAR_LLVM_DEFINITIONS NATIVE_COMMAND "${LLVM_DEFINITIONS}")

# mlir-tblgen looks where the directory's includes point.
include_directories(SYSTEM ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS})
include_directories(${PROJECT_SOURCE_DIR}/include ${PROJECT_BINARY_DIR}/include)

add_library(par_flags INTERFACE)
target_include_directories(par_flags SYSTEM INTERFACE ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS})
target_include_directories(par_flags INTERFACE ${PROJECT_SOURCE_DIR}/include ${PROJECT_BINARY_DIR}/include)
target_compile_definitions(par_flags INTERFACE ${PAR_LLVM_DEFINITIONS})
target_compile_options(par_flags INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-fno-exceptions -Wall -Wno-unused-parameter -Wno-deprecated-declarations>)

file(WRITE ${PROJECT_BINARY_DIR}/pch.cpp.in "")
configure_file(${PROJECT_BINARY_DIR}/pch.cpp.in ${PROJECT_BINARY_DIR}/pch.cpp COPYONLY)
# What is fuzzed is instrumented; the dialect and what follows are linked as they are, which keeps the build short.
set(PAR_FUZZED ParOnnx ParImport ParPlan)
set(PAR_FUZZ_FLAGS -O1 -gline-tables-only -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize=vptr,function
  -fno-sanitize-recover=all)

# par_precompiled(NAME flags...): the precompiled header as code with these flags reads it.
function(par_precompiled name)
  add_library(${name} OBJECT ${PROJECT_BINARY_DIR}/pch.cpp)
  target_link_libraries(${name} PRIVATE par_flags)
  target_compile_options(${name} PRIVATE ${ARGN})
  target_precompile_headers(${name} PRIVATE
    <mlir/IR/Builders.h> <mlir/IR/BuiltinOps.h> <mlir/IR/BuiltinTypes.h> <mlir/IR/BuiltinAttributes.h>
    <mlir/IR/PatternMatch.h> <mlir/IR/SymbolTable.h> <mlir/IR/OpImplementation.h> <mlir/IR/DialectImplementation.h>
    <mlir/IR/IRMapping.h> <mlir/IR/Matchers.h>
    <mlir/Interfaces/SideEffectInterfaces.h> <mlir/Interfaces/InferTypeOpInterface.h>
    <mlir/Interfaces/FunctionInterfaces.h> <mlir/Interfaces/CallInterfaces.h>
    <mlir/Pass/Pass.h> <mlir/Pass/PassManager.h> <mlir/Transforms/GreedyPatternRewriteDriver.h>
    <llvm/ADT/DenseMap.h> <llvm/ADT/MapVector.h> <llvm/ADT/SetVector.h> <llvm/ADT/STLExtras.h>
    <llvm/ADT/StringExtras.h> <llvm/ADT/TypeSwitch.h> <llvm/Support/FormatVariadic.h>
    # Nearly every file reads the ops' classes, 3 s of each; the loops' dialects are few files', but 5 to 10 s of each.
    <par/Dialect/Par.h>
    <mlir/Dialect/Arith/IR/Arith.h> <mlir/Dialect/Func/IR/FuncOps.h> <mlir/Dialect/Linalg/IR/Linalg.h>
    <mlir/Dialect/LLVMIR/LLVMDialect.h> <mlir/Dialect/Math/IR/Math.h> <mlir/Dialect/SCF/IR/SCF.h>
    <mlir/Dialect/Tensor/IR/Tensor.h>)
  add_dependencies(${name} ParDialectTablegen)
endfunction()
par_precompiled(par_pch)
if(PAR_FUZZ)
  par_precompiled(par_fuzz_pch ${PAR_FUZZ_FLAGS})
endif()

# par_reads_precompiled(NAME): a program that is compiled with the phases' precompiled header, and so with its flags.
function(par_reads_precompiled name)
  target_compile_options(${name} PRIVATE -fPIC)
  target_precompile_headers(${name} REUSE_FROM par_pch)
endfunction()

# par_library(NAME [LIBS libraries...]): a static library of every .cpp in this folder and the folders below it.
function(par_library name)
  cmake_parse_arguments(ARG "" "" "LIBS" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  add_library(${name} STATIC ${sources})
  target_link_libraries(${name} PUBLIC par_flags ${ARG_LIBS})
  if(PAR_FUZZ AND name IN_LIST PAR_FUZZED)
    target_compile_options(${name} PRIVATE ${PAR_FUZZ_FLAGS})
    target_precompile_headers(${name} REUSE_FROM par_fuzz_pch)
  else()
    target_precompile_headers(${name} REUSE_FROM par_pch)
  endif()
  get_property(tablegen GLOBAL PROPERTY PAR_TABLEGEN)
  if(tablegen)
    add_dependencies(${name} ${tablegen})
  endif()
endfunction()

# par_phase(Name [LIBS ...]): the library Par<Name> of a room, lib/<Name> or lib/Phases/<Name>; if it has a Passes.td
# below include/par, its declarations are generated as Passes.h.inc beside it and its registration is found by par-opt.
function(par_phase name)
  cmake_parse_arguments(ARG "" "" "LIBS" ${ARGN})
  par_library(Par${name} LIBS ${ARG_LIBS})
  set_property(GLOBAL APPEND PROPERTY PAR_LIBRARIES Par${name})
endfunction()

# par_reads_files(NAME files...): these files of a library open what users name, with the runtime's par/format. The
# others do not see its headers.
function(par_reads_files name)
  set_source_files_properties(${ARGN} PROPERTIES INCLUDE_DIRECTORIES ${PROJECT_SOURCE_DIR}/runtime/include)
  target_link_libraries(${name} INTERFACE $<LINK_ONLY:par_format>)
endfunction()
