// Writes the logits that llama.cpp computes for given tokens, to compare with
// kvc's. Linked with the llama.cpp that bench/llama_cpp.py builds.
//
//   llama_logits MODEL.gguf IDS.txt FIRST OUT.f32 KV(f32|f16) THREADS BATCH
//
// IDS.txt holds token ids with white space between them. The logits after each
// token from number FIRST on go to OUT.f32 as raw float32 rows.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "llama.h"

static int fail(const std::string &message) {
  std::fprintf(stderr, "llama_logits: %s\n", message.c_str());
  return 1;
}

int main(int argc, char **argv) {
  if (argc != 8)
    return fail("usage: llama_logits MODEL IDS FIRST OUT KV THREADS BATCH");
  std::ifstream in(argv[2]);
  std::vector<llama_token> ids;
  for (llama_token id; in >> id;)
    ids.push_back(id);
  size_t first = size_t(std::atoll(argv[3]));
  std::string kv = argv[5];
  int threads = std::atoi(argv[6]), most = std::atoi(argv[7]);
  if (ids.empty() || first >= ids.size() || most < 1 || threads < 1 ||
      (kv != "f32" && kv != "f16"))
    return fail("no ids, or an argument out of range");

  llama_log_set([](ggml_log_level, const char *, void *) {}, nullptr);
  llama_backend_init();
  std::unique_ptr<llama_model, decltype(&llama_model_free)> model(
      llama_model_load_from_file(argv[1], llama_model_default_params()),
      llama_model_free);
  if (!model)
    return fail(std::string(argv[1]) + ": llama.cpp does not load it");
  llama_context_params params = llama_context_default_params();
  params.n_ctx = uint32_t((ids.size() + 255) / 256 * 256);
  params.n_batch = params.n_ubatch = uint32_t(most);
  params.n_threads = params.n_threads_batch = threads;
  params.type_k = params.type_v = kv == "f32" ? GGML_TYPE_F32 : GGML_TYPE_F16;
  // A float32 cache is asked for to be exact; flash attention would round.
  params.flash_attn_type =
      kv == "f32" ? LLAMA_FLASH_ATTN_TYPE_DISABLED : LLAMA_FLASH_ATTN_TYPE_AUTO;
  std::unique_ptr<llama_context, decltype(&llama_free)> context(
      llama_init_from_model(model.get(), params), llama_free);
  if (!context)
    return fail("llama.cpp makes no context");
  int vocab = llama_vocab_n_tokens(llama_model_get_vocab(model.get()));

  std::FILE *out = std::fopen(argv[4], "wb");
  if (!out)
    return fail(std::string(argv[4]) + ": cannot write");
  llama_batch batch = llama_batch_init(most, 0, 1);
  for (size_t done = 0; done < ids.size();) {
    batch.n_tokens = 0;
    while (batch.n_tokens < most &&
           done + size_t(batch.n_tokens) < ids.size()) {
      int i = batch.n_tokens++;
      size_t position = done + size_t(i);
      batch.token[i] = ids[position];
      batch.pos[i] = llama_pos(position);
      batch.n_seq_id[i] = 1;
      batch.seq_id[i][0] = 0;
      batch.logits[i] = position >= first;
    }
    if (llama_decode(context.get(), batch) != 0)
      return fail("llama_decode failed");
    for (int i = 0; i < batch.n_tokens; ++i)
      if (batch.logits[i] &&
          std::fwrite(llama_get_logits_ith(context.get(), i), sizeof(float),
                      size_t(vocab), out) != size_t(vocab))
        return fail(std::string(argv[4]) + ": cannot write");
    done += size_t(batch.n_tokens);
  }
  llama_batch_free(batch);
  if (std::fclose(out) != 0)
    return fail(std::string(argv[4]) + ": cannot write");
  std::printf("llama_logits: %zu rows of %d\n", ids.size() - first, vocab);
  return 0;
}
