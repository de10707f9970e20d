//===- Npy.cpp ------------------------------------------------------------===//
#include "dialect/reference/Npy.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CRC.h"
#include "llvm/Support/EndianStream.h"
#include "llvm/Support/raw_ostream.h"

#include <limits>

using namespace kvc;
using llvm::StringRef;
using llvm::support::endian::Writer;

/// The bytes before an array's values.
static std::string npyHeader(const NpyArray &array) {
  std::string dictionary;
  llvm::raw_string_ostream out(dictionary);
  out << "{'descr': '<f8', 'fortran_order': False, 'shape': (";
  for (int64_t dim : array.shape)
    out << dim << ",";
  out << "), }";
  // Magic, version and length are 10 bytes; values start at a multiple of 64.
  dictionary.resize(llvm::alignTo(10 + dictionary.size() + 1, 64) - 11, ' ');
  dictionary += '\n';

  std::string header;
  llvm::raw_string_ostream stream(header);
  stream << "\x93NUMPY" << '\1' << '\0';
  Writer(stream, llvm::endianness::little)
      .write<uint16_t>(static_cast<uint16_t>(dictionary.size()));
  stream << dictionary;
  return header;
}

static void writeValues(llvm::raw_ostream &out, llvm::ArrayRef<double> values) {
  Writer writer(out, llvm::endianness::little);
  for (double value : values)
    writer.write<double>(value);
}

llvm::Error kvc::writeNpy(StringRef path, const NpyArray &array) {
  return llvm::writeToOutput(path, [&](llvm::raw_ostream &out) {
    out << npyHeader(array);
    writeValues(out, array.values);
    return llvm::Error::success();
  });
}

//===----------------------------------------------------------------------===//
// Zip
//===----------------------------------------------------------------------===//

namespace {
struct ZipEntry {
  std::string name;
  uint32_t crc;
  uint32_t size;
  uint32_t offset;
};
} // namespace

/// The fields that a local header and a directory entry share: version 2.0,
/// stored, dated 1980-01-01.
static void writeCommon(Writer &writer, const ZipEntry &entry) {
  writer.write<uint16_t>(20);
  writer.write<uint16_t>(0);
  writer.write<uint16_t>(0);
  writer.write<uint16_t>(0);
  writer.write<uint16_t>(0x21);
  writer.write<uint32_t>(entry.crc);
  writer.write<uint32_t>(entry.size);
  writer.write<uint32_t>(entry.size);
  writer.write<uint16_t>(static_cast<uint16_t>(entry.name.size()));
  writer.write<uint16_t>(0);
}

static void writeDirectory(llvm::raw_ostream &out,
                           llvm::ArrayRef<ZipEntry> entries) {
  Writer writer(out, llvm::endianness::little);
  uint64_t start = out.tell();
  for (const ZipEntry &entry : entries) {
    writer.write<uint32_t>(0x02014b50);
    writer.write<uint16_t>(20);
    writeCommon(writer, entry);
    writer.write<uint16_t>(0); // comment
    writer.write<uint16_t>(0); // disk
    writer.write<uint16_t>(0); // internal attributes
    writer.write<uint32_t>(0); // external attributes
    writer.write<uint32_t>(entry.offset);
    out << entry.name;
  }
  uint64_t size = out.tell() - start;
  writer.write<uint32_t>(0x06054b50);
  writer.write<uint16_t>(0);
  writer.write<uint16_t>(0);
  writer.write<uint16_t>(static_cast<uint16_t>(entries.size()));
  writer.write<uint16_t>(static_cast<uint16_t>(entries.size()));
  writer.write<uint32_t>(static_cast<uint32_t>(size));
  writer.write<uint32_t>(static_cast<uint32_t>(start));
  writer.write<uint16_t>(0);
}

llvm::Error kvc::writeNpz(StringRef path, llvm::ArrayRef<NpyArray> arrays) {
  uint64_t total = 0;
  for (const NpyArray &array : arrays)
    total += array.values.size() * sizeof(double) + 1024;
  if (total > std::numeric_limits<uint32_t>::max() ||
      arrays.size() > std::numeric_limits<uint16_t>::max())
    return llvm::createStringError(
        path + ": " + llvm::Twine(arrays.size()) + " arrays of " +
        llvm::Twine(total) +
        " bytes do not fit a zip file of 65,535 files and 4 GiB");
  return llvm::writeToOutput(path, [&](llvm::raw_ostream &out) {
    std::vector<ZipEntry> entries;
    for (const NpyArray &array : arrays) {
      std::string bytes = npyHeader(array);
      llvm::raw_string_ostream content(bytes);
      writeValues(content, array.values);
      entries.push_back({array.name + ".npy",
                         llvm::crc32(llvm::arrayRefFromStringRef(bytes)),
                         static_cast<uint32_t>(bytes.size()),
                         static_cast<uint32_t>(out.tell())});
      Writer writer(out, llvm::endianness::little);
      writer.write<uint32_t>(0x04034b50);
      writeCommon(writer, entries.back());
      out << entries.back().name << bytes;
    }
    writeDirectory(out, entries);
    return llvm::Error::success();
  });
}
