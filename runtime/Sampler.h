// Chooses a token from logits.
//
// The order is fixed: temperature, top-k, top-p, min-p, draw. Every default is
// off, and temperature 0, the default, is greedy. All ties go to the lowest id.
//
// Probabilities come from a written-out exponential in plain SSE2 arithmetic,
// not from the C library, whose last bits differ from CPU to CPU: a seed gives
// the same tokens on every machine.
#ifndef KVC_RUNTIME_SAMPLER_H
#define KVC_RUNTIME_SAMPLER_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace kvc {

struct SamplingOptions {
  double Temperature = 0; // logits are divided by it; 0: take the largest
  int64_t TopK = 0;       // keep the k largest; 0: keep all
  double TopP = 1;        // keep the fewest that reach this probability,
                          // with the one that crosses it; 1: keep all
  double MinP = 0;        // keep those with at least this share of the
                          // largest one's probability; 0: keep all
};

class Sampler {
public:
  /// Tokens from `tokens` on are padding and never chosen.
  Sampler(const SamplingOptions &options, int64_t tokens)
      : Options(options), Tokens(tokens) {}

  /// The token, or -1 with an error when a logit is NaN or infinity, or every
  /// logit is minus infinity. `uniform` is a number of [0, 1).
  int32_t choose(const float *logits, double uniform, std::string &error);

  /// The largest logit's token whatever the options; -1 as above.
  int32_t chooseGreedy(const float *logits, std::string &error) const;

private:
  struct Candidate {
    float Logit;
    int32_t Id;
    float Weight; // exp of the scaled distance to the largest logit
  };
  static bool ranksBefore(const Candidate &a, const Candidate &b) {
    return a.Logit != b.Logit ? a.Logit > b.Logit : a.Id < b.Id;
  }
  void selectLargest(const float *logits, int64_t count);
  void weighCandidates(float largest);
  void weighAll(const float *logits, float largest);
  bool keepReaching(double wanted);
  int32_t drawCandidate(double uniform);
  int32_t drawFromAll(double uniform, int32_t likeliest);

  SamplingOptions Options;
  int64_t Tokens;
  std::vector<Candidate> Candidates; // in rank order
  std::vector<float> Weights;        // of every token
  double TotalWeight = 0;            // of every token
};

} // namespace kvc

#endif // KVC_RUNTIME_SAMPLER_H
