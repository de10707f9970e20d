// The two ways to merge the characters of a text up to tokens.
#ifndef KVC_RUNTIME_TOKENIZERMERGE_H
#define KVC_RUNTIME_TOKENIZERMERGE_H

#include "runtime/TokenizerBlob.h"

namespace kvc {

// Memory that merging reuses from word to word.
struct MergeScratch {
  // A run of characters that have become one, in a list linked by position.
  struct Symbol {
    int32_t previous;
    int32_t next;
    int32_t id;    // its token; kNoToken if it has none
    int32_t begin; // its place in the text
    int32_t bytes; // 0: merged into its neighbour
  };
  // A merge that may be done, if its symbols are still what they were.
  struct Candidate {
    float score;  // higher first; SentencePiece
    int32_t rank; // lower first; byte pairs
    int32_t left; // position of its symbols; the leftmost first
    int32_t right;
    int32_t result;
    int32_t bytes; // of both together
  };
  std::vector<Symbol> symbols;
  std::vector<Candidate> heap;
};

// Merges a word's bytes by rank.
void mergeBytePairs(const TokenizerView &view, std::string_view word,
                    MergeScratch &scratch, std::vector<int32_t> &ids);

// Merges a text's characters by score; what remains without a token becomes
// bytes, or else the unknown token, one for a run of them.
void mergePieces(const TokenizerView &view, std::string_view text,
                 MergeScratch &scratch, std::vector<int32_t> &ids);

} // namespace kvc

#endif // KVC_RUNTIME_TOKENIZERMERGE_H
