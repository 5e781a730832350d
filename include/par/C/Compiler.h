/*===- Compiler.h - the compiler as a C ABI: libpar-compiler.so
 *
 * Part of Par, under the Apache License v2.0 with LLVM Exceptions.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 *===----------------------------------------------------------------------===
 *
 * par-compile for any language that can call C. Every call gives a ParResult, which holds the exit
 * code of docs/plan.md 3, the text that the tool would print, and every error and warning with its place.
 *
 *     ParCompileOptions options = {sizeof(ParCompileOptions), "m.onnx"};
 *     ParResult *result = par_compile(&options);
 *     for (size_t i = 0; i < par_result_finding_count(result); ++i)
 *       puts(par_result_finding(result, i)->message);
 *     par_result_free(result);
 *
 * Strings are UTF-8 and end in NUL; those of a result live until par_result_free. The library keeps nothing
 * between calls: several threads may compile at once. It prints nothing and does not end the process for
 * anything that a model or a plan holds.
 */
#pragma once

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PAR_COMPILER_ABI 3

/* An error or a warning and its place. Fields that do not apply are zero or NULL. */
typedef struct ParFinding {
  int warning;         /* 1: a warning, 0: an error */
  const char *file;    /* a plan, the model, the bundle or "--set K=V"; NULL: the call itself is wrong */
  unsigned line;       /* of the file, from 1 */
  unsigned column;     /* of the line, from 1 */
  const char *message; /* one sentence in lower case */
  const char *shown;   /* the line and a caret below the column, each with its newline */
  const char *const *notes;
  size_t note_count;
} ParFinding;

/* Flags of a compilation, ored. */
enum {
  PAR_CHECK = 1,        /* all but writing the bundle: plan, memory bound, proof, prediction */
  PAR_CHECK_PHASES = 2, /* interprets the program before and after every phase and compares */
  PAR_WITH_WEIGHTS = 4  /* a copy of the model's weights goes into the bundle */
};

/* The job of a call. Fields may be added at the end; `size` tells which of them the caller knows. */
typedef struct ParCompileOptions {
  size_t size;                 /* sizeof(ParCompileOptions) */
  const char *model;           /* .onnx or .onnx.gz */
  const char *const *plans;    /* plan files, left to right */
  size_t plan_count;           /* 0: the empty plan */
  const char *const *settings; /* "KEY=VALUE", as --set of par-compile, after the files */
  size_t setting_count;
  const char *output; /* the bundle's folder; NULL: the model's name + ".par" in the working directory */
  unsigned flags;
  const char *const *plugins; /* libraries that add ops, optimizers and passes (docs/plugins.md); they stay loaded */
  size_t plugin_count;
} ParCompileOptions;

typedef struct ParResult ParResult;

/* PAR_COMPILER_ABI of the library: compare before the first call. */
unsigned par_compiler_abi(void);

/* Compiles a model under plans, proves the bundle and writes it. The text is par-compile's summary. */
ParResult *par_compile(const ParCompileOptions *options);

/* The plan as completed for the model, each key with where it was said; the model may be NULL, which leaves
 * open what depends on it. Writes nothing. The text is a plan. */
ParResult *par_complete_plan(const ParCompileOptions *options);

/* Searches the best plan for so many devices, "8xh100-sxm", as par-compile --fit; what the options' plan says is
 * fixed. Writes nothing. The text is --fit's, the report has the facts. */
ParResult *par_fit(const ParCompileOptions *options, const char *gpus);

/* Compiles the plan without and with further settings, "KEY=VALUE" each, as par-compile --what-if. Writes nothing. The
 * text is its table, the report has the facts of both plans. */
ParResult *par_what_if(const ParCompileOptions *options, const char *const *changes, size_t change_count);

/* The names that a plan can use. `kind`: "params", "modules", "nodes" or "inputs"; NULL: all. */
ParResult *par_list(const char *model, const char *kind);

/* 0 done, 1 the input is wrong, 2 the call is wrong, 3 it cannot be (memory limit, proof), 70 a bug in Par.
 */
int par_result_code(const ParResult *result);

/* The standard output of the tool. */
const char *par_result_text(const ParResult *result);

/* All facts of the compilation as JSON: docs/report.md. NULL if nothing was to be compiled. */
const char *par_result_report(const ParResult *result);

/* The folder that was written; NULL: none was. */
const char *par_result_bundle(const ParResult *result);

size_t par_result_finding_count(const ParResult *result);

/* NULL from the count on. In the order of the tool. */
const ParFinding *par_result_finding(const ParResult *result, size_t index);

/* Frees a result and all its strings; NULL is fine. */
void par_result_free(ParResult *result);

#ifdef __cplusplus
}
#endif
