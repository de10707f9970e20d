#include "runtime/Payload.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace kvc {

static uint64_t rotateLeft(uint64_t value, int bits) {
  return (value << bits) | (value >> (64 - bits));
}

// Odd, so that each multiplication is a bijection.
static constexpr uint64_t LaneFactor = 0x9fb21c651e98df25u;
static constexpr uint64_t FinalFactor = 0xd6e8feb86659fd93u;

void PayloadHash::mix(const unsigned char *block) {
  for (int lane = 0; lane != 4; ++lane) {
    uint64_t word;
    std::memcpy(&word, block + 8 * lane, 8);
    Lanes[lane] = (rotateLeft(Lanes[lane], 29) + word) * LaneFactor;
  }
}

void PayloadHash::update(const void *data, uint64_t bytes) {
  const auto *next = static_cast<const unsigned char *>(data);
  uint64_t pending = Length % 32;
  Length += bytes;
  if (pending != 0) {
    uint64_t taken = std::min(bytes, 32 - pending);
    std::memcpy(Pending + pending, next, taken);
    next += taken;
    bytes -= taken;
    if (pending + taken != 32)
      return;
    mix(Pending);
  }
  for (; bytes >= 32; bytes -= 32, next += 32)
    mix(next);
  if (bytes != 0)
    std::memcpy(Pending, next, bytes);
}

uint64_t PayloadHash::finish() const {
  PayloadHash last = *this;
  uint64_t pending = Length % 32;
  if (pending != 0) {
    std::memset(last.Pending + pending, 0, 32 - pending);
    last.mix(last.Pending);
  }
  uint64_t result = Length * FinalFactor; // tells trailing zeros apart
  for (uint64_t lane : last.Lanes) {
    result = (rotateLeft(result, 23) ^ lane) * FinalFactor;
    result ^= result >> 32;
  }
  return result;
}

static uint64_t footerDigest(const PayloadFooter &footer) {
  PayloadHash hash;
  hash.update(&footer, offsetof(PayloadFooter, FooterDigest));
  return hash.finish();
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

bool PayloadWriter::put(const void *data, uint64_t bytes, std::string &error) {
  const auto *next = static_cast<const unsigned char *>(data);
  while (bytes != 0) {
    size_t piece = size_t(std::min<uint64_t>(bytes, uint64_t(1) << 30));
    ssize_t written = ::write(Descriptor, next, piece);
    if (written < 0 && errno == EINTR)
      continue;
    if (written <= 0) {
      error =
          Path + ": cannot write: " + std::strerror(written < 0 ? errno : EIO);
      return false;
    }
    next += written;
    bytes -= uint64_t(written);
    Position += uint64_t(written);
  }
  return true;
}

bool PayloadWriter::pad(std::string &error) {
  static const char zeros[PayloadAlignment] = {};
  uint64_t excess = Position % uint64_t(PayloadAlignment);
  return excess == 0 || put(zeros, uint64_t(PayloadAlignment) - excess, error);
}

bool PayloadWriter::begin(const void *tokenizer, uint64_t bytes,
                          std::string &error) {
  off_t end = lseek(Descriptor, 0, SEEK_END);
  if (end < 0) {
    error = Path + ": cannot seek: " + std::strerror(errno);
    return false;
  }
  Position = uint64_t(end);
  if (!pad(error))
    return false;
  Start = Position;
  Footer.TokenizerBytes = bytes;
  if (!put(tokenizer, bytes, error) || !pad(error))
    return false;
  Footer.WeightsOffset = Position - Start;
  return true;
}

bool PayloadWriter::write(const void *data, uint64_t bytes,
                          std::string &error) {
  Weights.update(data, bytes);
  return put(data, bytes, error);
}

bool PayloadWriter::finish(uint64_t &digest, std::string &error) {
  digest = Weights.finish();
  std::memcpy(Footer.Magic, PayloadMagic, sizeof(PayloadMagic));
  Footer.Version = PayloadVersion;
  Footer.FooterBytes = sizeof(PayloadFooter);
  Footer.PayloadBytes = Position - Start;
  Footer.WeightsBytes = Footer.PayloadBytes - Footer.WeightsOffset;
  Footer.WeightsDigest = digest;
  Footer.FooterDigest = footerDigest(Footer);
  return put(&Footer, sizeof(Footer), error);
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

Payload::~Payload() {
  if (Base)
    munmap(Base, MappedBytes);
}

namespace {
// Closes a descriptor at the end of a scope.
struct FileCloser {
  int Descriptor;
  ~FileCloser() { close(Descriptor); }
};
} // namespace

// Whether every range a footer states lies where the layout says.
static bool isConsistent(const PayloadFooter &footer, uint64_t footerPosition) {
  constexpr uint64_t alignment = PayloadAlignment;
  return footer.PayloadBytes <= footerPosition &&
         (footerPosition - footer.PayloadBytes) % alignment == 0 &&
         footer.TokenizerOffset <= footer.PayloadBytes &&
         footer.TokenizerBytes <=
             footer.PayloadBytes - footer.TokenizerOffset &&
         footer.WeightsOffset % alignment == 0 &&
         footer.WeightsOffset <= footer.PayloadBytes &&
         footer.WeightsBytes == footer.PayloadBytes - footer.WeightsOffset;
}

Payload::Found Payload::open(const std::string &path, const std::string &name,
                             uint64_t weightsBytes, uint64_t weightsDigest,
                             std::string &error) {
  int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) {
    int reason = errno;
    error = name + ": cannot open: " + std::strerror(reason);
    return reason == ENOENT ? Found::NoPayload : Found::Failed;
  }
  FileCloser closer{descriptor};
  struct stat status;
  if (fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) {
    error = name + ": not a regular file";
    return Found::Failed;
  }
  uint64_t size = uint64_t(status.st_size);
  error = name + ": no weights at the end of its " + std::to_string(size) +
          " bytes";
  if (size < sizeof(PayloadFooter))
    return Found::NoPayload;

  PayloadFooter footer;
  uint64_t position = size - sizeof(footer);
  if (pread(descriptor, &footer, sizeof(footer), off_t(position)) !=
      ssize_t(sizeof(footer))) {
    error = name + ": cannot read: " + std::strerror(errno);
    return Found::Failed;
  }
  if (std::memcmp(footer.Magic, PayloadMagic, sizeof(PayloadMagic)) != 0)
    return Found::NoPayload;
  if (footer.Version != PayloadVersion ||
      footer.FooterBytes != sizeof(PayloadFooter)) {
    error = name + ": payload version " + std::to_string(footer.Version) +
            ", this runtime reads version " + std::to_string(PayloadVersion);
    return Found::Failed;
  }
  if (footer.FooterDigest != footerDigest(footer) ||
      !isConsistent(footer, position)) {
    error = name + ": the payload's footer is damaged or the file was cut: " +
            std::to_string(footer.PayloadBytes) +
            " bytes of payload do not fit its " + std::to_string(size) +
            " bytes";
    return Found::Failed;
  }
  if (footer.WeightsBytes != weightsBytes) {
    error = name + ": carries " + std::to_string(footer.WeightsBytes) +
            " bytes of weights, the program was compiled for " +
            std::to_string(weightsBytes);
    return Found::Failed;
  }
  if (footer.WeightsDigest != weightsDigest) {
    error = name + ": the weights are not those the program was compiled for "
                   "(their digests differ)";
    return Found::Failed;
  }
  if (footer.PayloadBytes != 0) {
    void *mapping = mmap(nullptr, footer.PayloadBytes, PROT_READ, MAP_SHARED,
                         descriptor, off_t(position - footer.PayloadBytes));
    if (mapping == MAP_FAILED) {
      error = name + ": cannot map " + std::to_string(footer.PayloadBytes) +
              " bytes: " + std::strerror(errno);
      return Found::Failed;
    }
    // Reading ahead is advice: a kernel that declines only makes a cold start
    // slower.
    (void)madvise(mapping, footer.PayloadBytes, MADV_WILLNEED);
    Base = static_cast<uint8_t *>(mapping);
    MappedBytes = footer.PayloadBytes;
  }
  Footer = footer;
  Path = name;
  error.clear();
  return Found::Yes;
}

bool Payload::openFile(const std::string &path, uint64_t weightsBytes,
                       uint64_t weightsDigest, std::string &error) {
  return open(path, path, weightsBytes, weightsDigest, error) == Found::Yes;
}

bool Payload::openForThisProgram(uint64_t weightsBytes, uint64_t weightsDigest,
                                 std::string &error) {
  char name[4096];
  ssize_t length = readlink("/proc/self/exe", name, sizeof(name) - 1);
  std::string program(name, size_t(std::max<ssize_t>(length, 0)));
  Found found =
      open("/proc/self/exe", program, weightsBytes, weightsDigest, error);
  if (found == Found::NoPayload) {
    std::string missing = error;
    std::string sidecar = program + ".weights";
    found = open(sidecar, sidecar, weightsBytes, weightsDigest, error);
    if (found == Found::NoPayload) {
      bool exists = access(sidecar.c_str(), F_OK) == 0;
      error = exists ? error + ": was it cut?"
                     : missing + " (" + std::to_string(weightsBytes) +
                           " bytes belong there) and no " + sidecar +
                           ": was the program stripped or cut, or moved "
                           "without its .weights file?";
    }
  }
  return found == Found::Yes;
}

} // namespace kvc
