#include "runtime/Payload.h"
#include "runtime/Plan.h"

#include <cstddef>
#include <cstring>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <vector>

using namespace kvc;

namespace {

// A file that goes away with the test.
class TemporaryFile {
public:
  TemporaryFile() : Path(testing::TempDir() + "kvc-payload-XXXXXX") {
    Descriptor = mkstemp(Path.data());
    EXPECT_GE(Descriptor, 0);
  }
  ~TemporaryFile() {
    close(Descriptor);
    unlink(Path.c_str());
  }
  void append(const std::string &bytes) {
    lseek(Descriptor, 0, SEEK_END);
    EXPECT_EQ(write(Descriptor, bytes.data(), bytes.size()),
              ssize_t(bytes.size()));
  }
  int64_t size() const { return lseek(Descriptor, 0, SEEK_END); }

  std::string Path;
  int Descriptor;
};

const std::string Tokenizer = "a tokenizer's blob";
const std::string Weights = [] {
  std::string bytes;
  for (int i = 0; i != 10001; ++i)
    bytes += char(i * 7 + i / 100);
  return bytes;
}();

uint64_t writePayload(TemporaryFile &file) {
  std::string error;
  uint64_t digest = 0;
  PayloadWriter writer(file.Descriptor, file.Path);
  EXPECT_TRUE(writer.begin(Tokenizer.data(), Tokenizer.size(), error));
  EXPECT_TRUE(writer.write(Weights.data(), 5000, error));
  EXPECT_TRUE(writer.write(Weights.data() + 5000, 5001, error));
  EXPECT_TRUE(writer.finish(digest, error));
  return digest;
}

std::string openError(const TemporaryFile &file, uint64_t bytes,
                      uint64_t digest) {
  Payload payload;
  std::string error;
  EXPECT_FALSE(payload.openFile(file.Path, bytes, digest, error));
  EXPECT_EQ(error.substr(0, file.Path.size() + 2), file.Path + ": ");
  return error.substr(std::min(error.size(), file.Path.size() + 2));
}

} // namespace

TEST(RuntimePayload, RoundTripBehindAnything) {
  for (size_t before : {0u, 1u, 4095u, 4096u, 12345u}) {
    TemporaryFile file;
    file.append(std::string(before, 'x'));
    uint64_t digest = writePayload(file);
    Payload payload;
    std::string error;
    ASSERT_TRUE(payload.openFile(file.Path, Weights.size(), digest, error))
        << error;
    EXPECT_EQ(std::string(reinterpret_cast<const char *>(payload.tokenizer()),
                          payload.tokenizerBytes()),
              Tokenizer);
    EXPECT_EQ(uintptr_t(payload.weights()) % 4096, 0u);
    EXPECT_EQ(std::memcmp(payload.weights(), Weights.data(), Weights.size()),
              0);
  }
}

TEST(RuntimePayload, DigestDoesNotDependOnPieces) {
  PayloadHash whole;
  whole.update(Weights.data(), Weights.size());
  for (size_t piece : {1u, 3u, 31u, 32u, 33u, 1000u}) {
    PayloadHash hash;
    for (size_t i = 0; i < Weights.size(); i += piece)
      hash.update(Weights.data() + i, std::min(piece, Weights.size() - i));
    EXPECT_EQ(hash.finish(), whole.finish());
  }
  std::string changed = Weights;
  for (size_t at : {size_t(0), size_t(5000), Weights.size() - 1}) {
    changed[at] ^= 1;
    PayloadHash hash;
    hash.update(changed.data(), changed.size());
    EXPECT_NE(hash.finish(), whole.finish());
    changed[at] ^= 1;
  }
  PayloadHash zero, longer;
  longer.update("\0", 1);
  EXPECT_NE(zero.finish(), longer.finish());
}

TEST(RuntimePayload, RefusesWhatIsNotWhole) {
  TemporaryFile file;
  uint64_t digest = writePayload(file);
  int64_t size = file.size();
  EXPECT_EQ(openError(file, 77, digest),
            "carries 10001 bytes of weights, the program was compiled for 77");
  EXPECT_EQ(openError(file, Weights.size(), digest + 1),
            "the weights are not those the program was compiled for (their "
            "digests differ)");

  ASSERT_EQ(ftruncate(file.Descriptor, size - 1), 0);
  EXPECT_EQ(openError(file, Weights.size(), digest),
            "no weights at the end of its " + std::to_string(size - 1) +
                " bytes");
  ASSERT_EQ(ftruncate(file.Descriptor, 10), 0);
  EXPECT_EQ(openError(file, Weights.size(), digest),
            "no weights at the end of its 10 bytes");
}

TEST(RuntimePayload, RefusesDamagedFooters) {
  TemporaryFile good;
  uint64_t digest = writePayload(good);
  int64_t size = good.size();
  std::vector<char> bytes(static_cast<size_t>(size));
  ASSERT_EQ(pread(good.Descriptor, bytes.data(), bytes.size(), 0), size);
  std::string footer(bytes.end() - sizeof(PayloadFooter), bytes.end());
  // Every byte of the footer matters.
  for (size_t i = 0; i != footer.size(); ++i) {
    TemporaryFile file;
    std::vector<char> copy = bytes;
    copy[copy.size() - sizeof(PayloadFooter) + i] ^= 0x40;
    file.append(std::string(copy.begin(), copy.end()));
    openError(file, Weights.size(), digest);
  }
  // A middle piece is missing: the ranges no longer fit.
  TemporaryFile cut;
  cut.append(std::string(bytes.begin(), bytes.begin() + 4096) + footer);
  EXPECT_NE(openError(cut, Weights.size(), digest).find("the file was cut"),
            std::string::npos);
}

TEST(RuntimePayload, MissingAndUnreadableFiles) {
  Payload payload;
  std::string error;
  EXPECT_FALSE(payload.openFile("/nonexistent/weights", 1, 1, error));
  EXPECT_EQ(error,
            "/nonexistent/weights: cannot open: No such file or directory");
  EXPECT_FALSE(payload.openFile("/tmp", 1, 1, error));
  EXPECT_EQ(error, "/tmp: not a regular file");
}

TEST(RuntimePayload, PastTwoGigabytes) {
  constexpr int64_t size = int64_t(5) << 30;
  TemporaryFile file;
  // A hole stands for the weights.
  ASSERT_EQ(ftruncate(file.Descriptor, size), 0);
  ASSERT_EQ(pwrite(file.Descriptor, "end", 3, size - 3), 3);
  PayloadFooter footer = {};
  std::memcpy(footer.Magic, PayloadMagic, sizeof(footer.Magic));
  footer.Version = PayloadVersion;
  footer.FooterBytes = sizeof(footer);
  footer.PayloadBytes = footer.WeightsBytes = uint64_t(size) - 8192;
  footer.WeightsDigest = 42;
  PayloadHash hash;
  hash.update(&footer, offsetof(PayloadFooter, FooterDigest));
  footer.FooterDigest = hash.finish();
  file.append(std::string(reinterpret_cast<char *>(&footer), sizeof(footer)));
  Payload payload;
  std::string error;
  ASSERT_TRUE(payload.openFile(file.Path, footer.WeightsBytes, 42, error))
      << error;
  EXPECT_EQ(std::memcmp(payload.weights() + footer.WeightsBytes - 3, "end", 3),
            0);
}

TEST(RuntimePlan, ReadsWhatIsThere) {
  Plan plan;
  std::string error;
  ASSERT_TRUE(parsePlan("{}", plan, error)) << error;
  EXPECT_EQ(plan.kernelNumbers(), 0);
  ASSERT_TRUE(parsePlan(R"({"model": "m", "eos": [2, 5], "max_context": 8,
      "kv": {"layers": 30, "type": "f16", "page": 64},
      "kernels": [{"id": 4, "phase": "prefill", "name": "k", "layers": 30,
                   "bytes_fixed": 3000000000}],
      "slots": [{"arena": "worker", "offset": 64, "bytes": 128}],
      "future": [1]})",
                        plan, error))
      << error;
  EXPECT_EQ(plan.Model, "m");
  EXPECT_EQ(plan.StopIds, (std::vector<int32_t>{2, 5}));
  EXPECT_EQ(plan.Cache.PageTokens, 64);
  EXPECT_EQ(plan.kernelNumbers(), 5);
  EXPECT_EQ(plan.Kernels[0].BytesFixed, 3000000000);
  EXPECT_EQ(plan.Slots[0].In, PlanSlot::Arena::Worker);
}

TEST(RuntimePlan, NamesWhatIsWrong) {
  auto errorOf = [](const char *text) {
    Plan plan;
    std::string error;
    EXPECT_FALSE(parsePlan(text, plan, error)) << text;
    EXPECT_EQ(error.find('\n'), std::string::npos);
    return error;
  };
  EXPECT_EQ(errorOf("{").substr(0, 30), "the program's plan is not JSON");
  EXPECT_EQ(errorOf(nullptr).substr(0, 30), "the program's plan is not JSON");
  EXPECT_EQ(errorOf("[]"), "the program's plan:  must be an object");
  EXPECT_EQ(errorOf(R"({"model": 1})"),
            "the program's plan: model is 1, it must be a string");
  EXPECT_EQ(errorOf(R"({"eos": [-1]})"),
            "the program's plan: eos.id is -1, it must be an integer of 0 to "
            "2147483647");
  EXPECT_EQ(errorOf(R"({"kernels": [{"id": 1e9}]})").substr(0, 36),
            "the program's plan: kernels[0].id is");
  EXPECT_EQ(errorOf(R"({"kernels": [{"id": 65537}]})"),
            "the program's plan: kernels[0].id is 65537, it must be an integer "
            "of 0 to 65536");
  EXPECT_EQ(errorOf(R"({"kernels": [{"bytes_fixed": 18446744073709551615}]})")
                .substr(0, 42),
            "the program's plan: kernels[0].bytes_fixed");
  EXPECT_EQ(errorOf(R"({"kernels": [{"phase": "both"}]})"),
            "the program's plan: kernels[0].phase is 'both', it must be "
            "prefill or decode");
  EXPECT_EQ(errorOf(R"({"kernels": [{"writes": [{}, {"arena": "kv"}]}]})"),
            "the program's plan: kernels[0].writes[1].arena is 'kv', it must "
            "be rows, outputs or logits");
  EXPECT_EQ(errorOf(R"({"kernels": [{"writes": [{"element": "f64"}]}]})"),
            "the program's plan: kernels[0].writes[0].element is 'f64', it "
            "must be f32, bf16, f16 or q8");
  EXPECT_EQ(errorOf(R"({"kernels": {}})"),
            "the program's plan: kernels must be an array");
}
