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
typedef uint32_t Bits __attribute__((vector_size(16)));

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

//===----------------------------------------------------------------------===//
// Sampling
//===----------------------------------------------------------------------===//

// exp(x) for x <= 0 to about 1e-7, zero below the smallest normal float:
// 2^n times a polynomial of the rest, whose coefficients are Taylor's.
static Lanes expOfNegative(Lanes x) {
  constexpr float LeastExponent = -87.0f;
  constexpr float Rounder = 12582912.0f; // 1.5 * 2^23: leaves n in the low bits
  const Lanes least = {LeastExponent, LeastExponent, LeastExponent,
                       LeastExponent};
  Masks vanishes = x < least;
  x = vanishes ? least : x;
  Lanes shifted = x * 1.44269504f + Rounder;
  Lanes n = shifted - Rounder;
  Lanes r = x - n * 0.693359375f; // ln 2 in two parts, the first one exact
  r = r - n * -2.12194440e-4f;
  Lanes p = r * (1.0f / 720) + 1.0f / 120;
  p = p * r + 1.0f / 24;
  p = p * r + 1.0f / 6;
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  Bits exponent;
  std::memcpy(&exponent, &shifted, sizeof(exponent));
  Bits bits;
  std::memcpy(&bits, &p, sizeof(bits));
  bits += exponent << 23;
  bits &= Bits(~vanishes);
  Lanes result;
  std::memcpy(&result, &bits, sizeof(result));
  return result;
}

// Zero times it must stay zero, so it is never infinite.
static float inverseTemperature(double temperature) {
  return float(
      std::min(1 / temperature, double(std::numeric_limits<float>::max())));
}

// Keeps the `count` largest logits in a heap with the smallest on top. Most
// blocks hold nothing above that one and are passed at the speed of memory.
void Sampler::selectLargest(const float *logits, int64_t count) {
  constexpr int64_t Block = 16;
  Candidates.clear();
  int64_t id = 0;
  for (; id != count; ++id)
    Candidates.push_back({logits[id], int32_t(id), 0});
  std::make_heap(Candidates.begin(), Candidates.end(), ranksBefore);
  auto offer = [&](int64_t id) {
    // An equal logit has the higher id and loses.
    if (!(logits[id] > Candidates.front().Logit))
      return;
    std::pop_heap(Candidates.begin(), Candidates.end(), ranksBefore);
    Candidates.back() = {logits[id], int32_t(id), 0};
    std::push_heap(Candidates.begin(), Candidates.end(), ranksBefore);
  };
  for (; id + Block <= Tokens; id += Block) {
    int above = 0;
    float least = Candidates.front().Logit;
    for (int64_t i = 0; i != Block; ++i)
      above |= logits[id + i] > least;
    if (above)
      for (int64_t i = 0; i != Block; ++i)
        offer(id + i);
  }
  for (; id != Tokens; ++id)
    offer(id);
  std::sort_heap(Candidates.begin(), Candidates.end(), ranksBefore);
}

void Sampler::weighCandidates(float largest) {
  float inverse = inverseTemperature(Options.Temperature);
  for (Candidate &candidate : Candidates) {
    Lanes x = {(candidate.Logit - largest) * inverse, 0, 0, 0};
    candidate.Weight = expOfNegative(x)[0];
  }
}

// The total is summed in four lanes, a fixed order.
void Sampler::weighAll(const float *logits, float largest) {
  float inverse = inverseTemperature(Options.Temperature);
  Weights.resize(size_t(Tokens));
  double lanes[4] = {};
  auto weigh = [&](const float *from, float *to) {
    Lanes x;
    std::memcpy(&x, from, sizeof(x));
    Lanes weights = expOfNegative((x - largest) * inverse);
    std::memcpy(to, &weights, sizeof(weights));
    for (int lane = 0; lane != 4; ++lane)
      lanes[lane] += double(weights[lane]);
  };
  int64_t whole = Tokens / 4 * 4;
  for (int64_t id = 0; id != whole; id += 4)
    weigh(logits + id, Weights.data() + id);
  float rest[4] = {-Infinity, -Infinity, -Infinity, -Infinity};
  float restWeights[4];
  std::copy(logits + whole, logits + Tokens, rest);
  weigh(rest, restWeights);
  std::copy(restWeights, restWeights + (Tokens - whole),
            Weights.data() + whole);
  TotalWeight = (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]);
}

// Drops the candidates behind the one with which the weights reach `wanted`;
// false if all of them together do not.
bool Sampler::keepReaching(double wanted) {
  double reached = 0;
  for (size_t i = 0; i != Candidates.size(); ++i) {
    reached += double(Candidates[i].Weight);
    if (reached >= wanted) {
      Candidates.resize(i + 1);
      return true;
    }
  }
  return false;
}

// Draws from `count` weights with at least `least`, or -1 if rounding left the
// target at the very end.
template <typename WeightAt>
static int64_t draw(int64_t count, double least, double target,
                    WeightAt weightAt) {
  double reached = 0;
  for (int64_t i = 0; i != count; ++i) {
    double weight = weightAt(i);
    if (weight < least)
      continue;
    reached += weight;
    if (reached > target)
      return i;
  }
  return -1;
}

int32_t Sampler::drawCandidate(double uniform) {
  // In rank order, so min-p cuts off the end; the first one always stays.
  while (double(Candidates.back().Weight) < Options.MinP)
    Candidates.pop_back();
  double total = 0;
  for (const Candidate &candidate : Candidates)
    total += double(candidate.Weight);
  int64_t chosen =
      draw(int64_t(Candidates.size()), 0, uniform * total,
           [this](int64_t i) { return double(Candidates[size_t(i)].Weight); });
  return Candidates[size_t(std::max<int64_t>(0, chosen))].Id;
}

int32_t Sampler::drawFromAll(double uniform, int32_t likeliest) {
  double total = TotalWeight;
  if (Options.MinP > 0) {
    total = 0;
    for (float weight : Weights)
      total += double(weight) < Options.MinP ? 0.0 : double(weight);
  }
  int64_t chosen =
      draw(Tokens, Options.MinP, uniform * total,
           [this](int64_t id) { return double(Weights[size_t(id)]); });
  return chosen < 0 ? likeliest : int32_t(chosen);
}

int32_t Sampler::choose(const float *logits, double uniform,
                        std::string &error) {
  if (Options.Temperature == 0)
    return chooseGreedy(logits, error);
  float largest;
  if (!checkLogits(logits, Tokens, largest, error))
    return -1;

  if (Options.TopK > 0 && Options.TopK < Tokens) {
    selectLargest(logits, Options.TopK);
    weighCandidates(largest);
    double total = 0;
    for (const Candidate &candidate : Candidates)
      total += double(candidate.Weight);
    if (Options.TopP < 1)
      keepReaching(Options.TopP * total);
    return drawCandidate(uniform);
  }
  weighAll(logits, largest);
  if (Options.TopP == 1)
    return drawFromAll(uniform, int32_t(findFirst(logits, Tokens, largest)));
  // A few candidates reach the probability, mostly: no need to sort them all.
  for (int64_t count = 64;; count *= 8) {
    count = std::min(count, Tokens);
    selectLargest(logits, count);
    weighCandidates(largest);
    if (keepReaching(Options.TopP * TotalWeight) || count == Tokens)
      return drawCandidate(uniform);
  }
}

} // namespace kvc
