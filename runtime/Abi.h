// The contract between a compiled program and the runtime that steps it: plain
// C structs and few functions. docs/RUNTIME.md says who owns what.
//
// Code generation writes these structs' field offsets into the program, so any
// change to a struct here is a new KVC_ABI_VERSION; the runtime compares the
// program's version and struct sizes with its own before it runs anything.
#ifndef KVC_RUNTIME_ABI_H
#define KVC_RUNTIME_ABI_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define KVC_ABI_VERSION 2

// Rows that share one attention tile: consecutive rows of one sequence.
typedef struct KvcRowTile {
  int32_t sequence;  // index into the page table
  int32_t first_row; // index into tokens and positions
  int32_t rows;      // 1 .. KvcProgramInfo::attention_rows
  int32_t unused;
} KvcRowTile;

// One step: new rows of several sequences, ragged. Owned by the runtime,
// constant while a step runs.
//
// A row is one token of one sequence. Rows of a sequence are consecutive and
// ascending in position; a decode step has exactly one row a sequence.
typedef struct KvcBatch {
  int64_t rows;                // rows of this step
  int64_t sequences;           // sequences of this step
  int64_t outputs;             // rows whose logits are wanted
  int64_t tiles;               // entries of row_tiles
  const int32_t *tokens;       // [rows] token ids, each < vocab
  const int32_t *positions;    // [rows] absolute position of the row
  const int32_t *row_sequence; // [rows] the row's sequence, index into pages
  const int32_t *output_rows;  // [outputs] ascending row indices
  const KvcRowTile *row_tiles; // [tiles] covers every row once
  const int32_t *pages;        // [sequences][pages_stride] page indices
  int64_t pages_stride;        // entries a sequence has in `pages`
  const float *rope;           // [rows][rope_floats]: for each table of the
                               // program, dims/2 pairs (cos, sin)
} KvcBatch;

// The memory a program works on. Owned by the runtime; base addresses are
// 64-byte aligned and do not change while a program is loaded.
//
// A workspace slot of a program lies at rows_arena + offset * max_rows and has
// `offset`, a multiple of 64, from the plan; likewise outputs_arena with
// max_outputs; worker_arena slots belong to one worker each: worker w's base is
// worker_arena + w * worker_bytes * max_rows.
typedef struct KvcArenas {
  const uint8_t *weights; // packed weights, read only
  uint8_t *kv;            // pages of KvcProgramInfo::page_bytes each
  uint8_t *rows_arena;    // rows_bytes * max_rows
  uint8_t *outputs_arena; // outputs_bytes * max_outputs
  uint8_t *worker_arena;  // workers * worker_bytes * max_rows
  float *logits;          // [max_outputs][vocab], row i is output i
  int64_t max_rows;       // most rows a step may have
  int64_t max_outputs;    // most outputs a step may have
} KvcArenas;

// Every worker of the team calls the program once a step, with its own number.
// `team` is handed back to kvc_barrier.
typedef void (*KvcStepFunction)(const KvcBatch *batch, const KvcArenas *arenas,
                                void *team, int64_t worker, int64_t workers);

// Waits until every worker of the team has arrived. `kernel` is the plan's
// number of the dispatch that ends here: the profile charges the time since
// the last barrier to it. Defined by the runtime, called by programs.
void kvc_barrier(void *team, int64_t worker, int64_t kernel);

// What a program for GPUs carries instead of the two functions: PTX text whose
// kernels are launched from a list, layer after layer. The table grows with the
// depth of a model, the code does not.

// What counts the blocks of a launch, or decides on it.
typedef enum KvcExtent {
  KVC_FIXED = 0,     // nothing of the step
  KVC_ROWS = 1,      // KvcBatch::rows
  KVC_OUTPUTS = 2,   // KvcBatch::outputs
  KVC_TILES = 3,     // KvcBatch::tiles
  KVC_SEQUENCES = 4, // KvcBatch::sequences
  KVC_POSITIONS = 5  // the longest sequence's length after the step, rounded up
} KvcExtent;

typedef struct KvcLaunch {
  const char *kernel;    // name of the PTX entry
  int32_t id;            // the plan's kernel number in its phase
  int32_t layer;         // the last kernel parameter
  int32_t threads;       // of a block
  int32_t shared_bytes;  // dynamic shared memory
  int32_t extent[3];     // KvcExtent of the grid's x, y, z
  int32_t per[3];        // blocks: FIXED: per itself, else ceil(value / per)
  int32_t blocks_per_sm; // x is at most this times the processors; 0: no limit
  int32_t when;          // KvcExtent: launched only where
  int32_t at_least;      // at_least <= its value <= at_most; FIXED: always
  int32_t at_most;
} KvcLaunch;

// The head of a step on the device: the kernels' parameter `step`.
typedef struct KvcGpuStep {
  int64_t rows;
  int64_t sequences;
  int64_t outputs;
  int64_t tiles;
} KvcGpuStep;

// How one output's token is chosen on the device.
typedef struct KvcSampling {
  float inverse_temperature; // 0: the largest logit
  int32_t top_k;             // 0: all
  float top_p;               // 1: all
  float min_p;               // 0: all
  float uniform;             // of [0, 1)
  int32_t tokens;            // ids from here on are never chosen
} KvcSampling;

// Makes the device of a GPU program; an opaque kvc::Device, or null with one
// line in `error`. Defined by the runtime's GPU library, which only programs
// that name it are linked with.
typedef void *(*KvcCreateDevice)(const struct KvcDeviceCode *code,
                                 const void *options, void *error);

typedef struct KvcDeviceCode {
  const char *chip;  // "sm_90": what the code was made for
  const char *ptx;   // text with a zero at its end
  int64_t ptx_bytes; // without that zero
  const void *cubin; // machine code of `chip`; null where ptxas was not found
  int64_t cubin_bytes;
  const KvcLaunch *prefill; // in order, every layer's
  int64_t prefill_count;
  const KvcLaunch *decode;
  int64_t decode_count;
  const KvcLaunch *choose; // run after a step whose ids are wanted
  int64_t choose_count;
  int64_t stage_bytes;         // of a row that a kernel leaves for the next one
  int64_t partial_bytes;       // of attention, a row and split
  int64_t split;               // positions of a split
  int64_t counters_per_row;    // i32 each, zero between steps
  int64_t programmatic_launch; // 1: kernels wait for their predecessors
                               // themselves (griddepcontrol)
  KvcCreateDevice create;
} KvcDeviceCode;

void *kvc_create_gpu_device(const KvcDeviceCode *code, const void *options,
                            void *error);

// What a range of the weights arena holds, for programs without weights.
typedef enum KvcWeightKind {
  KVC_WEIGHT_F32 = 0,
  KVC_WEIGHT_F16 = 1,
  KVC_WEIGHT_BF16 = 2,
  KVC_WEIGHT_CODES16 = 3, // codes among 16-bit scales
  KVC_WEIGHT_CODES8 = 4   // codes among 8-bit exponents
} KvcWeightKind;

typedef struct KvcWeightRange {
  int64_t offset;
  int64_t bytes;
  int64_t kind; // KvcWeightKind
} KvcWeightRange;

// What a program exports, as the symbol `kvc_program`.
typedef struct KvcProgramInfo {
  uint32_t abi_version;   // KVC_ABI_VERSION
  uint32_t batch_bytes;   // sizeof(KvcBatch)
  uint32_t arenas_bytes;  // sizeof(KvcArenas)
  uint32_t info_bytes;    // sizeof(KvcProgramInfo)
  const char *target_cpu; // what --target-cpu was resolved to
  const char *isa;        // required features, comma separated: "avx2,f16c,fma"
  const char *plan_json;  // the plan: see docs/RUNTIME.md for its schema
  KvcStepFunction prefill; // any number of rows a sequence; null on GPUs
  KvcStepFunction decode;  // one row a sequence; null on GPUs
  int64_t weights_bytes;   // size of the weights arena
  uint64_t weights_digest; // must equal the payload's
  int64_t page_bytes;      // bytes of one KV page, all layers
  int64_t page_tokens;     // positions a page holds
  int64_t rows_bytes;      // workspace bytes a row of a step
  int64_t outputs_bytes;   // workspace bytes an output row
  int64_t worker_bytes;    // private workspace bytes a row and worker
  int64_t attention_rows;  // most rows of a KvcRowTile
  int64_t vocab;           // columns of the logits
  int64_t max_context;     // positions the model was made for
  int64_t rope_floats;     // floats a row has in KvcBatch::rope
  int64_t rope_tables;     // entries of rope_table
  const struct KvcRopeTable *rope_table;
  const KvcDeviceCode *device_code; // null on the CPU
  // Not 0: the program has no weights, its arena's ranges are filled with
  // numbers that mean nothing when it is loaded. For measurements.
  int64_t random_ranges;
  const KvcWeightRange *random_range;
} KvcProgramInfo;

// The angles of one rotary embedding: pair i of a row at position p is
// (cos, sin) of p * inv_freq[i], both times `scale`, computed in double.
typedef struct KvcRopeTable {
  int64_t pairs;          // dims / 2
  double scale;           // attention factor of the rope scaling, 1 without
  const double *inv_freq; // [pairs]
} KvcRopeTable;

extern const KvcProgramInfo kvc_program;

#ifdef __cplusplus
}
#endif

#endif // KVC_RUNTIME_ABI_H
