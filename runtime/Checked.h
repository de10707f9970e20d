// Arithmetic on sizes that says so when it overflows: no allocation of the
// runtime is computed any other way.
#ifndef KVC_RUNTIME_CHECKED_H
#define KVC_RUNTIME_CHECKED_H

#include <cstdint>
#include <initializer_list>
#include <string>

namespace kvc {

/// A non-negative byte count that remembers whether it ever overflowed.
class CheckedSize {
public:
  CheckedSize(int64_t value) : Value(value), Valid(value >= 0) {}

  CheckedSize operator*(CheckedSize other) const {
    CheckedSize result(0);
    result.Valid = !__builtin_mul_overflow(Value, other.Value, &result.Value) &&
                   Valid && other.Valid;
    return result;
  }
  CheckedSize operator+(CheckedSize other) const {
    CheckedSize result(0);
    result.Valid = !__builtin_add_overflow(Value, other.Value, &result.Value) &&
                   Valid && other.Valid;
    return result;
  }

  bool valid() const { return Valid; }
  int64_t value() const { return Value; }

private:
  int64_t Value;
  bool Valid;
};

/// The smallest multiple of `unit` that holds `count`, counted in units.
inline int64_t divideUp(int64_t count, int64_t unit) {
  return count / unit + (count % unit != 0);
}

/// A number of a program, and the range that it must be in.
struct NamedRange {
  const char *Name;
  int64_t Value, Least, Most;
};

/// Whether all are in their ranges; else `error` is "WHAT NAME is VALUE, it
/// must be LEAST to MOST" of the first that is not.
inline bool checkRanges(const std::string &what,
                        std::initializer_list<NamedRange> ranges,
                        std::string &error) {
  for (const NamedRange &range : ranges) {
    if (range.Value >= range.Least && range.Value <= range.Most)
      continue;
    error = what + " " + range.Name + " is " + std::to_string(range.Value) +
            ", it must be " + std::to_string(range.Least) + " to " +
            std::to_string(range.Most);
    return false;
  }
  return true;
}

} // namespace kvc

#endif // KVC_RUNTIME_CHECKED_H
