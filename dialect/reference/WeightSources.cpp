//===- WeightSources.cpp --------------------------------------------------===//
#include "dialect/reference/WeightSources.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using namespace kvc;

void WeightReader::read(int64_t row, double *out) {
  if (bytes) {
    dequantize(format, bytes + row * formatInfo(format).rowBytes(columnCount),
               columnCount, out);
    return;
  }
  generated.resize(formatInfo(format).rowBytes(columnCount));
  seededElements(seed, {name.data(), name.size()}, range,
                 skip + row * columnCount, columnCount, format,
                 generated.data());
  dequantize(format, generated.data(), columnCount, out);
}

llvm::Expected<llvm::StringRef> WeightSources::map(SourceOp source) {
  StringRef path = *source.getPath();
  auto &file = files[path];
  if (!file) {
    SmallString<256> resolved(path);
    if (llvm::sys::path::is_relative(path) && !directory.empty()) {
      SmallString<256> beside(directory);
      llvm::sys::path::append(beside, path);
      if (llvm::sys::fs::exists(beside))
        resolved = beside;
    }
    auto opened = llvm::MemoryBuffer::getFile(resolved, /*IsText=*/false,
                                              /*RequiresNullTerminator=*/false);
    if (!opened)
      return opError(source, "cannot read " + resolved + ": " +
                                 opened.getError().message());
    file = std::move(*opened);
  }
  if (file->getBufferSize() != *source.getSize())
    return opError(source, "the model was made from " + path + " of " +
                               Twine(*source.getSize()) +
                               " bytes, but the file has " +
                               Twine(file->getBufferSize()) +
                               ": it has changed; import it again");
  return file->getBuffer();
}

llvm::Expected<WeightReader> WeightSources::open(WeightOp weight,
                                                 int64_t layer) {
  WeightType type = weight.getWeightType();
  if (layer < 0 || layer >= type.getLayers())
    return opError(weight, "layer " + Twine(layer) + " of " +
                               Twine(type.getLayers()) + " was asked for");
  SliceAttr slice = weight.getSlice(layer);
  auto source =
      SymbolTable::lookupNearestSymbolFrom<SourceOp>(weight, slice.getSource());

  WeightReader reader;
  reader.format = static_cast<Format>(slice.getFormat());
  reader.rowCount = type.isMatrix() ? type.getRows() : 1;
  reader.columnCount = type.isMatrix() ? type.getColumns() : type.getRows();
  if (source.getSeed()) {
    reader.seed = *source.getSeed();
    reader.name = slice.getTensor();
    reader.range = {slice.getCenter(), slice.getScale()};
    reader.skip = slice.getOffset();
    return reader;
  }
  llvm::Expected<StringRef> file = map(source);
  if (!file)
    return file.takeError();
  // The verifier has checked that the slice lies in the source's size.
  reader.bytes =
      reinterpret_cast<const uint8_t *>(file->data()) + slice.getOffset();
  return reader;
}
