//===- Npy.h - Writes numpy's files -----------------------------*- C++ -*-===//
#ifndef KVC_DIALECT_REFERENCE_NPY_H
#define KVC_DIALECT_REFERENCE_NPY_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <string>
#include <vector>

namespace kvc {

/// An array of float64 to write, row-major. Refers to the values.
struct NpyArray {
  std::string name; // in an .npz
  std::vector<int64_t> shape;
  llvm::ArrayRef<double> values;
};

/// Writes a .npy file, beside the target first so that a failure leaves what
/// was there.
llvm::Error writeNpy(llvm::StringRef path, const NpyArray &array);

/// Writes a .npz file: an uncompressed zip of .npy files.
llvm::Error writeNpz(llvm::StringRef path, llvm::ArrayRef<NpyArray> arrays);

} // namespace kvc

#endif // KVC_DIALECT_REFERENCE_NPY_H
