/* par.h - the runtime as a C ABI: libpar-runtime.so
 *
 * Trains, evaluates and predicts with a bundle, a batch a call. The caller keeps the loop:
 *
 *     const char *arguments[] = {"model.par", "--init", "--set=lr=0.1"};
 *     ParOpenOptions options = {sizeof options, arguments, 3, 0, NULL};
 *     ParJob *job = par_open(&options);
 *     if (par_error(job))
 *       puts(par_error(job)->text);
 *     par_feed(job, "x", x, PAR_F32, shape, 2);
 *     par_run(job, "train");
 *     size_t count;
 *     const ParScalar *scalars = par_scalars(job, 0, &count);
 *     par_close(job);
 *
 * Functions that return int return 0, or the code of the error that par_error() then tells: 1 an input or a file is
 * wrong, 2 the call is wrong, 3 the bundle is refused, 4 a rank died, 5 a loss is not finite; PAR_BUSY. No exception
 * leaves the library, and it does not end the process.
 *
 * Threads: a job may be called from any thread, one call at a time: a call beside another one on the same job returns
 * PAR_BUSY and does nothing. Jobs are independent. A job belongs to the process that opened it, not to its forks.
 *
 * Strings are UTF-8 and end in NUL. A pointer that a job returns is valid until the next
 * call on that job.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PAR_RUNTIME_ABI 1

/* Another thread is in a call on this job; par_error() and all that was returned before belong to that thread. */
#define PAR_BUSY 64

typedef struct ParJob ParJob;

typedef enum ParType {
  PAR_F32,
  PAR_F64,
  PAR_F16,
  PAR_BF16,
  PAR_I64,
  PAR_I32,
  PAR_I16,
  PAR_I8,
  PAR_U8,
  PAR_BOOL /* one byte, 0 or 1 */
} ParType;

/* Flags of ParOpenOptions, ored. */
enum {
  PAR_ISOLATED = 1 /* one rank, too, is a process of its own: a crash of it leaves the caller alive */
};

/* Fields may be added at the end; `size` tells which of them the caller knows. */
typedef struct ParOpenOptions {
  size_t size; /* sizeof(ParOpenOptions) */
  /* The bundle and the flags of par-run (docs/plan.md 3.2), without those of data, length and results. */
  const char *const *arguments;
  size_t argument_count;
  unsigned flags;
  const char *worker; /* the program par-rank; NULL: ../bin/par-rank beside this library's folder */
} ParOpenOptions;

typedef struct ParError {
  int code;
  const char *place;   /* a file, an input, "step 12"; "" where the call itself is wrong */
  const char *message; /* one sentence in lower case */
  const char *notes;   /* where it comes from and what to do, a line each; "" for none */
  const char *text;    /* all of it, as the tools print it */
} ParError;

typedef struct ParScalar {
  const char *name; /* "loss", "grad_norm", a scalar output of the model */
  double value;
} ParScalar;

/* A dense, row-major array. */
typedef struct ParArray {
  ParType type;
  size_t dims;
  const int64_t *shape;
  const void *data;
} ParArray;

typedef struct ParPosition {
  uint64_t step;    /* optimizer steps done */
  uint64_t skipped; /* of these, steps that overflowed under a loss scale and wrote nothing */
  uint64_t rows;    /* samples seen */
} ParPosition;

/* PAR_RUNTIME_ABI of the library: compare before the first call. It stays where functions are added. */
unsigned par_runtime_abi(void);

/* Opens a bundle: proves it, starts its ranks, gives them their first values. One rank runs in this process, several
 * in processes of their own, and under torchrun, mpirun or srun this process leads its own rank. NULL only where there
 * is no memory for a job; where opening failed, par_error() says why, and only par_close() works. */
ParJob *par_open(const ParOpenOptions *options);

/* Ends the ranks; a save that is being written is made whole. The job is gone, but where PAR_BUSY is returned. */
int par_close(ParJob *job);

/* The error of the last call on the job; NULL where that succeeded. */
const ParError *par_error(const ParJob *job);

/* JSON: bundle, ranks, batch (rows of a call of train), entries, inputs, outputs, tensors, hyperparameters. */
const char *par_facts(ParJob *job);

/* Gives an input its array for the next par_run(). Nothing is copied before that: the memory must stay as it is until
 * par_run() has returned. Narrower integers and floats are widened. After an error all that was fed is forgotten. */
int par_feed(ParJob *job, const char *input, const void *data, ParType type, const int64_t *shape, size_t dims);

/* After par_feed(): gives an input its array for the run after the next one. After the next par_run() these arrays are
 * the fed ones: the par_run() that follows takes them, a par_feed() forgets them all. If every input of the entry has
 * one, ranks read them beside the compute of the run before. The memory must stay as it is until the run that takes
 * them has returned, or they are forgotten. Results are those of par_feed(). */
int par_feed_ahead(ParJob *job, const char *input, const void *data, ParType type, const int64_t *shape, size_t dims);

/* Forgets all that was fed, ahead too, as after an error: the next par_feed() begins another batch. */
int par_forget(ParJob *job);

/* Runs "train", "eval" or "predict" on the arrays that were fed, all inputs, and forgets them, also where it fails. */
int par_run(ParJob *job, const char *entry);

/* The scalar outputs of the last par_run(); of a call of train that makes several optimizer steps, those of step
 * `call` of it. NULL from the last of these on. Scalars of eval have their weights beside them, which "mean" of
 * par_facts() names: "count(loss)" is the number of labels that count. */
const ParScalar *par_scalars(ParJob *job, uint64_t call, size_t *count);

/* A result of the last par_run() that is no scalar, whole. */
int par_result(ParJob *job, const char *output, ParArray *result);

/* Sets a hyperparameter for the steps that follow: "lr", "clip". A rate that is set replaces the plan's schedule. */
int par_set(ParJob *job, const char *name, double value);

/* The hyperparameter's value in the next step. */
int par_get(ParJob *job, const char *name, double *value);

/* Copies a tensor of the state, whole, in the shape that par_facts() tells, to memory of exactly `bytes` bytes. */
int par_read(ParJob *job, const char *tensor, void *to, size_t bytes);

/* Gives a tensor of the state its value. Floats of other widths are converted. */
int par_write(ParJob *job, const char *tensor, const void *from, ParType type, const int64_t *shape, size_t dims);

/* Gives all weights the values of files, as --weights; the optimizer's state stays. */
int par_load(ParJob *job, const char *const *paths, size_t count);

/* Goes on from a save, as --resume: weights, the optimizer's state, step and rows. */
int par_resume(ParJob *job, const char *path);

/* Saves the state into a folder, or into that of --save where it is NULL; the `keep` newest saves stay, 0: all.
 * par_text() names the save, which par-run goes on from, too. */
int par_save(ParJob *job, const char *folder, uint64_t keep);

/* Locks a folder that par_save() is to save to, and looks through it, as the first save there does otherwise: a folder
 * that cannot be written, or holds another job's saves, is refused before there is anything to lose. */
int par_open_folder(ParJob *job, const char *folder, uint64_t keep);

/* Writes the weights to a .safetensors file, or the model with them to an .onnx file. */
int par_export(ParJob *job, const char *path);

int par_position(ParJob *job, ParPosition *position);

/* The text of the last call: of par_save() the save's path; "" of others. */
const char *par_text(ParJob *job);

/* The next line for the user (a warning, a save that has begun), oldest first; NULL where there is no more. */
const char *par_event(ParJob *job);

#ifdef __cplusplus
}
#endif
