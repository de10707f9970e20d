// What a program carries besides code: its tokenizer and its packed weights,
// behind the ELF image or in a file beside it. docs/RUNTIME.md draws the
// layout. The writer is here too, so that both sides are one piece of code.
#ifndef KVC_RUNTIME_PAYLOAD_H
#define KVC_RUNTIME_PAYLOAD_H

#include <cstdint>
#include <string>

namespace kvc {

constexpr int64_t PayloadAlignment = 4096;
constexpr char PayloadMagic[8] = {'K', 'V', 'C', 'P', 'A', 'Y', 'L', 'D'};
constexpr uint32_t PayloadVersion = 1;

/// The last bytes of a file that carries a payload. Offsets count from the
/// payload's start, which is the footer's position less `PayloadBytes` and
/// always a multiple of PayloadAlignment.
struct PayloadFooter {
  char Magic[8];
  uint32_t Version;
  uint32_t FooterBytes; // sizeof(PayloadFooter)
  uint64_t PayloadBytes;
  uint64_t TokenizerOffset;
  uint64_t TokenizerBytes; // 0: the program has no tokenizer
  uint64_t WeightsOffset;  // a multiple of PayloadAlignment
  uint64_t WeightsBytes;
  uint64_t WeightsDigest; // PayloadHash of the weights
  uint64_t FooterDigest;  // PayloadHash of the fields above
};
static_assert(sizeof(PayloadFooter) == 72, "part of the file format");

/// A fast 64-bit hash of a stream of bytes, the same however the stream is cut
/// into pieces. It tells files apart; it resists accidents, not attacks.
class PayloadHash {
public:
  void update(const void *data, uint64_t bytes);
  uint64_t finish() const;

private:
  void mix(const unsigned char *block);

  uint64_t Lanes[4] = {0x6a09e667f3bcc908u, 0xbb67ae8584caa73bu,
                       0x3c6ef372fe94f82bu, 0xa54ff53a5f1d36f1u};
  unsigned char Pending[32] = {};
  uint64_t Length = 0;
};

/// Appends a payload to a file that is open for writing. Any number of write()
/// calls may follow beginWeights(); nothing is kept in memory. The caller owns
/// the descriptor, and writes beside its target and renames.
class PayloadWriter {
public:
  PayloadWriter(int descriptor, std::string path)
      : Descriptor(descriptor), Path(std::move(path)) {}

  /// Pads the file to PayloadAlignment and writes the tokenizer's blob, which
  /// may be empty.
  bool begin(const void *tokenizer, uint64_t bytes, std::string &error);
  bool write(const void *data, uint64_t bytes, std::string &error);
  /// Writes the footer; the digest is what KvcProgramInfo must record.
  bool finish(uint64_t &digest, std::string &error);

private:
  bool put(const void *data, uint64_t bytes, std::string &error);
  bool pad(std::string &error);

  int Descriptor;
  std::string Path;
  uint64_t Position = 0; // in the file
  uint64_t Start = 0;    // of the payload, in the file
  PayloadFooter Footer = {};
  PayloadHash Weights;
};

/// A payload mapped read-only and shared.
class Payload {
public:
  Payload() = default;
  Payload(const Payload &) = delete;
  Payload &operator=(const Payload &) = delete;
  ~Payload();

  /// Looks behind the running program's ELF image, then in PROG.weights.
  bool openForThisProgram(uint64_t weightsBytes, uint64_t weightsDigest,
                          std::string &error);
  /// Opens one file that must carry a payload.
  bool openFile(const std::string &path, uint64_t weightsBytes,
                uint64_t weightsDigest, std::string &error);

  const uint8_t *weights() const { return Base + Footer.WeightsOffset; }
  const uint8_t *tokenizer() const { return Base + Footer.TokenizerOffset; }
  uint64_t tokenizerBytes() const { return Footer.TokenizerBytes; }
  const std::string &path() const { return Path; }

private:
  enum class Found { Yes, NoPayload, Failed };
  Found open(const std::string &path, const std::string &name,
             uint64_t weightsBytes, uint64_t weightsDigest, std::string &error);

  std::string Path;
  PayloadFooter Footer = {};
  uint8_t *Base = nullptr;
  uint64_t MappedBytes = 0;
};

} // namespace kvc

#endif // KVC_RUNTIME_PAYLOAD_H
