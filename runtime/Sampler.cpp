#include "runtime/Sampler.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace kvc {

// Four floats, one SSE register: the runtime is compiled for every x86-64 and
// a compiler may not turn a loop with floating-point comparisons into this.
typedef float Lanes __attribute__((vector_size(16)));
typedef int32_t Masks __attribute__((vector_size(16)));

static constexpr float Infinity = std::numeric_limits<float>::infinity();

// The largest value; false if one is NaN or plus infinity.
static bool findLargest(const float *values, int64_t count, float &largest) {
  constexpr int Registers = 4;
  constexpr int64_t Block = 4 * Registers;
  Lanes best[Registers];
  Masks wrong[Registers] = {};
  for (Lanes &lanes : best)
    lanes = Lanes{-Infinity, -Infinity, -Infinity, -Infinity};
  int64_t i = 0;
  for (; i + Block <= count; i += Block) {
    for (int r = 0; r != Registers; ++r) {
      Lanes value;
      std::memcpy(&value, values + i + 4 * r, sizeof(value));
      wrong[r] |= value != value;
      best[r] = value > best[r] ? value : best[r];
    }
  }
  float result = -Infinity;
  bool bad = false;
  for (int r = 0; r != Registers; ++r)
    for (int lane = 0; lane != 4; ++lane) {
      bad |= wrong[r][lane] != 0;
      result = std::max(result, best[r][lane]);
    }
  for (; i != count; ++i) {
    bad |= std::isnan(values[i]);
    result = values[i] > result ? values[i] : result;
  }
  largest = result;
  return !bad && result != Infinity;
}

static int64_t findFirst(const float *values, int64_t count, float wanted) {
  constexpr int64_t Block = 64;
  int64_t i = 0;
  for (; i + Block <= count; i += Block) {
    int found = 0;
    for (int64_t j = 0; j != Block; ++j)
      found |= values[i + j] == wanted;
    if (found)
      break;
  }
  while (values[i] != wanted)
    ++i;
  return i;
}

static bool checkLogits(const float *logits, int64_t count, float &largest,
                        std::string &error) {
  if (!findLargest(logits, count, largest)) {
    int64_t at = 0;
    while (!std::isnan(logits[at]) && logits[at] != Infinity)
      ++at;
    error = std::string("the model computed ") +
            (std::isnan(logits[at]) ? "NaN" : "infinity") +
            " as the logit of token " + std::to_string(at);
    return false;
  }
  if (largest == -Infinity) {
    error = "every logit is minus infinity";
    return false;
  }
  return true;
}

int32_t Sampler::chooseGreedy(const float *logits, std::string &error) const {
  float largest;
  if (!checkLogits(logits, Tokens, largest, error))
    return -1;
  return int32_t(findFirst(logits, Tokens, largest));
}

// Sorts only as many candidates as it takes to reach the probability: a few,
// mostly, out of a whole vocabulary.
void Sampler::keepTopP() {
  double total = 0;
  for (const Candidate &candidate : Candidates)
    total += candidate.Weight;
  double wanted = Options.TopP * total;
  double reached = 0;
  size_t sorted = 0;
  for (size_t step = 64; sorted != Candidates.size(); step *= 8) {
    size_t end = std::min(Candidates.size(), sorted + step);
    auto middle = Candidates.begin() + ptrdiff_t(end);
    std::partial_sort(Candidates.begin() + ptrdiff_t(sorted), middle,
                      Candidates.end(), ranksBefore);
    for (; sorted != end; ++sorted) {
      reached += Candidates[sorted].Weight;
      if (reached >= wanted) {
        Candidates.resize(sorted + 1);
        return;
      }
    }
  }
}

int32_t Sampler::choose(const float *logits, double uniform,
                        std::string &error) {
  if (Options.Temperature == 0)
    return chooseGreedy(logits, error);
  float largest;
  if (!checkLogits(logits, Tokens, largest, error))
    return -1;

  Candidates.resize(size_t(Tokens));
  for (int64_t id = 0; id != Tokens; ++id)
    Candidates[size_t(id)] = {logits[id], int32_t(id), 0};
  if (Options.TopK > 0 && Options.TopK < Tokens) {
    auto middle = Candidates.begin() + ptrdiff_t(Options.TopK);
    std::nth_element(Candidates.begin(), middle, Candidates.end(), ranksBefore);
    Candidates.erase(middle, Candidates.end());
    std::sort(Candidates.begin(), Candidates.end(), ranksBefore);
  }
  for (Candidate &candidate : Candidates)
    candidate.Weight = std::exp((double(candidate.Logit) - double(largest)) /
                                Options.Temperature);
  if (Options.TopP < 1)
    keepTopP();
  if (Options.MinP > 0)
    Candidates.erase(std::remove_if(Candidates.begin(), Candidates.end(),
                                    [this](const Candidate &candidate) {
                                      return candidate.Weight < Options.MinP;
                                    }),
                     Candidates.end());

  double total = 0;
  for (const Candidate &candidate : Candidates)
    total += candidate.Weight;
  double target = uniform * total;
  double reached = 0;
  for (const Candidate &candidate : Candidates) {
    reached += candidate.Weight;
    if (reached > target)
      return candidate.Id;
  }
  // Rounding may leave the target at the total: the last one with any weight.
  auto last = std::find_if(
      Candidates.rbegin(), Candidates.rend(),
      [](const Candidate &candidate) { return candidate.Weight > 0; });
  return last->Id;
}

} // namespace kvc
