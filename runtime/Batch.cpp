#include "runtime/Batch.h"

#include <algorithm>
#include <cmath>

namespace kvc {

BatchBuilder::BatchBuilder(const KvcProgramInfo &program, int64_t maxRows,
                           int64_t maxOutputs)
    : Program(program) {
  Tokens.reserve(size_t(maxRows));
  Positions.reserve(size_t(maxRows));
  RowSequence.reserve(size_t(maxRows));
  Tiles.reserve(size_t(maxRows));
  OutputRows.reserve(size_t(maxOutputs));
  Rope.reserve(size_t(maxRows * program.rope_floats));
}

void BatchBuilder::clear() {
  Tokens.clear();
  Positions.clear();
  RowSequence.clear();
  OutputRows.clear();
  Tiles.clear();
  PageTables.clear();
  Pages.clear();
  Rope.clear();
}

void BatchBuilder::addAngles(int64_t position) {
  for (int64_t i = 0; i != Program.rope_tables; ++i) {
    const KvcRopeTable &table = Program.rope_table[i];
    for (int64_t pair = 0; pair != table.pairs; ++pair) {
      double angle = double(position) * table.inv_freq[pair];
      Rope.push_back(float(std::cos(angle) * table.scale));
      Rope.push_back(float(std::sin(angle) * table.scale));
    }
  }
}

void BatchBuilder::add(const int32_t *tokens, int64_t count, int64_t first,
                       const std::vector<int32_t> &pages, Outputs outputs) {
  int32_t sequence = int32_t(PageTables.size());
  PageTables.push_back(&pages);
  int64_t firstRow = rows();
  for (int64_t i = 0; i != count; ++i) {
    Tokens.push_back(tokens[i]);
    Positions.push_back(int32_t(first + i));
    RowSequence.push_back(sequence);
    addAngles(first + i);
    if (outputs == Outputs::All || (outputs == Outputs::Last && i + 1 == count))
      OutputRows.push_back(int32_t(firstRow + i));
  }
  for (int64_t i = 0; i < count; i += Program.attention_rows)
    Tiles.push_back({sequence, int32_t(firstRow + i),
                     int32_t(std::min(Program.attention_rows, count - i)), 0});
}

const KvcBatch &BatchBuilder::batch() {
  size_t stride = 1;
  for (const std::vector<int32_t> *table : PageTables)
    stride = std::max(stride, table->size());
  // Entries past a sequence's end are no pages; a program that read them
  // would leave its arena, where a guard page waits.
  Pages.assign(stride * PageTables.size(), -1);
  for (size_t i = 0; i != PageTables.size(); ++i)
    std::copy(PageTables[i]->begin(), PageTables[i]->end(),
              Pages.begin() + ptrdiff_t(i * stride));

  Batch.rows = rows();
  Batch.sequences = int64_t(PageTables.size());
  Batch.outputs = outputs();
  Batch.tiles = int64_t(Tiles.size());
  Batch.tokens = Tokens.data();
  Batch.positions = Positions.data();
  Batch.row_sequence = RowSequence.data();
  Batch.output_rows = OutputRows.data();
  Batch.row_tiles = Tiles.data();
  Batch.pages = Pages.data();
  Batch.pages_stride = int64_t(stride);
  Batch.rope = Rope.data();
  return Batch;
}

} // namespace kvc
