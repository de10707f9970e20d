// Arithmetic on sizes that says so when it overflows: no allocation of the
// runtime is computed any other way.
#ifndef KVC_RUNTIME_CHECKED_H
#define KVC_RUNTIME_CHECKED_H

#include <cstdint>

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

} // namespace kvc

#endif // KVC_RUNTIME_CHECKED_H
