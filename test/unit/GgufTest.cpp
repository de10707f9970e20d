// What lit cannot see of the GGUF reader: its typed access, and files cut or
// changed at every byte. The messages are test/frontend's; they are compared
// here too, so that a reader without its tool is tested.
#include "frontend/Gguf.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <unistd.h>

using namespace kvc;
namespace fs = std::filesystem;

namespace {

std::string messageOf(llvm::Error error) {
  return llvm::toString(std::move(error));
}

template <typename Value> std::string messageOf(llvm::Expected<Value> value) {
  return value ? std::string("no error") : messageOf(value.takeError());
}

// Appends GGUF's pieces; test/frontend/ggufwriter.py is the full writer.
struct Bytes {
  std::vector<uint8_t> bytes;

  template <typename Number> Bytes &add(Number number) {
    uint8_t raw[sizeof(Number)];
    std::memcpy(raw, &number, sizeof(Number));
    bytes.insert(bytes.end(), raw, raw + sizeof(Number));
    return *this;
  }
  Bytes &text(llvm::StringRef text) {
    add<uint64_t>(text.size());
    bytes.insert(bytes.end(), text.begin(), text.end());
    return *this;
  }
  Bytes &key(llvm::StringRef name, GgufType type) {
    return text(name).add(static_cast<uint32_t>(type));
  }
  Bytes &array(llvm::StringRef name, GgufType type, uint64_t count) {
    return key(name, GgufType::Array)
        .add(static_cast<uint32_t>(type))
        .add(count);
  }
};

std::vector<uint8_t> goodFile(uint32_t version = 3) {
  Bytes file;
  file.bytes = {'G', 'G', 'U', 'F'};
  file.add(version).add<uint64_t>(2).add<uint64_t>(13);
  file.key("general.alignment", GgufType::U32).add<uint32_t>(64);
  file.key("u64", GgufType::U64).add<uint64_t>(UINT64_MAX);
  file.key("i8", GgufType::I8).add<int8_t>(-5);
  file.key("u16", GgufType::U16).add<uint16_t>(65535);
  file.key("i32", GgufType::I32).add<int32_t>(7);
  file.key("f32", GgufType::F32).add(1.5f);
  file.key("f64", GgufType::F64).add(-0.1);
  file.key("bool", GgufType::Bool).add<uint8_t>(1);
  file.key("string", GgufType::String).text({"a\0b", 3});
  file.array("strings", GgufType::String, 3).text("x").text("").text("yz");
  file.array("i16s", GgufType::I16, 2).add<int16_t>(-2).add<int16_t>(300);
  file.array("f64s", GgufType::F64, 1).add(2.25);
  file.array("none", GgufType::U64, 0);
  file.text("w").add<uint32_t>(2).add<uint64_t>(32).add<uint64_t>(3);
  file.add<uint32_t>(3).add<uint64_t>(0); // q4_1
  file.text("scalar").add<uint32_t>(0).add<uint32_t>(0).add<uint64_t>(64);
  while (file.bytes.size() % 64)
    file.bytes.push_back(0);
  for (int i = 0; i < 64 + 4; ++i)
    file.bytes.push_back(static_cast<uint8_t>(i));
  return file.bytes;
}

std::unique_ptr<GgufFile> parseGood(const std::vector<uint8_t> &bytes) {
  auto file = GgufFile::parse("good.gguf", bytes);
  if (!file) {
    ADD_FAILURE() << messageOf(file.takeError());
    return nullptr;
  }
  return std::move(*file);
}

TEST(Gguf, ReadsBothVersions) {
  for (uint32_t version : {2u, 3u}) {
    std::vector<uint8_t> bytes = goodFile(version);
    auto file = parseGood(bytes);
    ASSERT_TRUE(file);
    EXPECT_EQ(file->version(), version);
    EXPECT_EQ(file->alignment(), 64u);
    EXPECT_EQ(file->keys().size(), 13u);
    EXPECT_EQ(file->keys().back(), "none");
    ASSERT_EQ(file->tensors().size(), 2u);
    const GgufTensor &tensor = **file->getTensor("w");
    EXPECT_EQ(tensor.format, Format::Q4_1);
    EXPECT_EQ(tensor.columns(), 32);
    EXPECT_EQ(tensor.rows(), 3);
    EXPECT_EQ(tensor.bytes, 60u);
    EXPECT_EQ(tensor.offset, bytes.size() - 68);
    EXPECT_EQ(file->header().size(), tensor.offset);
    EXPECT_EQ(file->data(tensor)[59], 59);
    const GgufTensor &scalar = **file->getTensor("scalar");
    EXPECT_EQ(scalar.bytes, 4u);
    EXPECT_EQ(file->data(scalar)[0], 64);
  }
}

TEST(Gguf, TypedAccess) {
  std::vector<uint8_t> bytes = goodFile();
  auto file = parseGood(bytes);
  ASSERT_TRUE(file);
  EXPECT_EQ(*file->getU64("u64"), UINT64_MAX);
  EXPECT_EQ(*file->getU64("u16"), 65535u);
  EXPECT_EQ(*file->getU64("i32"), 7u);
  EXPECT_EQ(*file->getF64("f32"), 1.5);
  EXPECT_EQ(*file->getF64("f64"), -0.1);
  EXPECT_EQ(*file->getBool("bool"), true);
  EXPECT_EQ(*file->getString("string"), llvm::StringRef("a\0b", 3));
  std::vector<std::string> strings;
  for (llvm::StringRef text : file->getStrings("strings")->strings())
    strings.push_back(text.str());
  EXPECT_EQ(strings, (std::vector<std::string>{"x", "", "yz"}));
  EXPECT_EQ(file->getIntegers("i16s")->integer(0), -2);
  EXPECT_EQ(file->getIntegers("i16s")->integer(1), 300);
  EXPECT_EQ(file->getNumbers("f64s")->number(0), 2.25);
  EXPECT_EQ(file->getIntegers("none")->size(), 0u);
  EXPECT_EQ(*file->findU64("nowhere"), std::nullopt);
  EXPECT_EQ(*file->findString("nowhere"), std::nullopt);
  EXPECT_FALSE(file->has("nowhere"));

  EXPECT_EQ(messageOf(file->getU64("i8")),
            "good.gguf: key 'i8': found -5, rule: the value is not negative");
  EXPECT_EQ(messageOf(file->findU64("f32")),
            "good.gguf: key 'f32': found a value of type f32, rule: the value "
            "is an integer");
  EXPECT_EQ(messageOf(file->getStrings("i16s")),
            "good.gguf: key 'i16s': found a value of type array of i16, rule: "
            "the value is an array of strings");
  EXPECT_EQ(messageOf(file->getString("nowhere")),
            "good.gguf: key 'nowhere': found no such key, rule: the file must "
            "have it, as a string");
  EXPECT_EQ(messageOf(file->getTensor("b'ad")),
            "good.gguf: tensor 'b\\'ad': found no such tensor, rule: the file "
            "must have it");
}

TEST(Gguf, EveryCutIsRefused) {
  std::vector<uint8_t> bytes = goodFile();
  for (size_t size = 0; size < bytes.size(); ++size) {
    // An allocation of the exact size, so that a sanitizer sees one byte more.
    std::vector<uint8_t> cut(bytes.begin(), bytes.begin() + size);
    std::string message = messageOf(GgufFile::parse("cut.gguf", cut));
    ASSERT_EQ(message.find("cut.gguf: "), 0u) << size;
    ASSERT_NE(message.find(", rule: "), std::string::npos) << size;
    ASSERT_EQ(message.find('\n'), std::string::npos) << size;
  }
}

TEST(Gguf, EveryChangedByteIsReadOrRefused) {
  std::vector<uint8_t> bytes = goodFile();
  size_t headerBytes = bytes.size() - 68;
  for (size_t at = 0; at < headerBytes; ++at)
    for (int change : {1, 2, 4, 8, 16, 32, 64, 128, 255}) {
      std::vector<uint8_t> changed = bytes;
      changed[at] = static_cast<uint8_t>(changed[at] ^ change);
      auto file = GgufFile::parse("changed.gguf", changed);
      if (!file) {
        ASSERT_EQ(messageOf(file.takeError()).find("changed.gguf: "), 0u);
        continue;
      }
      for (const GgufTensor &tensor : (*file)->tensors())
        ASSERT_LE(tensor.offset + tensor.bytes, changed.size());
    }
}

// Each script gguf-*.py of test/frontend writes a broken file, and its CHECK
// line is the message. One Python process runs them all.
TEST(Gguf, BrokenFilesOfTestFrontend) {
  fs::path tests = fs::path(KVC_SOURCE_DIR) / "test";
  fs::path folder =
      fs::path(testing::TempDir()) / ("kvc-gguf-" + std::to_string(::getpid()));
  std::string command = std::string(KVC_PYTHON) + " -B '" +
                        (tests / "fuzz" / "make_corpus.py").string() + "' '" +
                        folder.string() + "'";
  ASSERT_EQ(std::system(command.c_str()), 0) << command;
  int scripts = 0;
  for (const fs::directory_entry &entry :
       fs::directory_iterator(tests / "frontend")) {
    std::string name = entry.path().stem().string();
    if (name.rfind("gguf-", 0) != 0 || entry.path().extension() != ".py")
      continue;
    ++scripts;
    const std::string tag = "# CHECK: gguf: ";
    std::ifstream script(entry.path());
    std::string line, expected;
    while (std::getline(script, line))
      if (line.rfind(tag, 0) == 0)
        expected = line.substr(tag.size());
    ASSERT_FALSE(expected.empty()) << name;
    std::string path = (folder / name).string();
    EXPECT_EQ(messageOf(GgufFile::open(path)).find(path + ": " + expected), 0u)
        << name << "\n  says    " << messageOf(GgufFile::open(path))
        << "\n  expects " << expected;
  }
  EXPECT_GE(scripts, 24);
  for (const char *right : {"values", "weights"})
    EXPECT_EQ(messageOf(GgufFile::open((folder / right).string())), "no error");
  fs::remove_all(folder);
}

TEST(Gguf, NoPermission) {
  std::string path = (fs::path(testing::TempDir()) /
                      ("kvc-secret-" + std::to_string(::getpid()) + ".gguf"))
                         .string();
  std::ofstream(path) << "GGUF";
  fs::permissions(path, fs::perms::none);
  // Permissions do not bind root, so root becomes somebody else meanwhile.
  bool root = ::geteuid() == 0;
  if (root)
    ASSERT_EQ(::seteuid(65534), 0);
  std::string message = messageOf(GgufFile::open(path));
  if (root)
    ASSERT_EQ(::seteuid(0), 0);
  EXPECT_EQ(message, path + ": cannot open the file: Permission denied");
  fs::remove(path);
}

TEST(Gguf, WhatIsNoFile) {
  EXPECT_EQ(messageOf(GgufFile::open("/nowhere/model.gguf")),
            "/nowhere/model.gguf: cannot open the file: No such file or "
            "directory");
  EXPECT_EQ(messageOf(GgufFile::open("/tmp")),
            "/tmp: found a directory, rule: a GGUF model is a file");
  EXPECT_EQ(messageOf(GgufFile::open("/dev/null")),
            "/dev/null: found something that is no regular file, rule: a GGUF "
            "model is a file");
}

TEST(Gguf, LongNamesAreShortened) {
  EXPECT_EQ(ggufQuoted("a\nb\x80"), "'a\\x0ab\\x80'");
  std::string text = ggufQuoted(std::string(100000, 'k'));
  EXPECT_LT(text.size(), 100u);
  EXPECT_NE(text.find("..."), std::string::npos);
}

} // namespace
