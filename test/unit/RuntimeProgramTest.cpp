// The generated program from the outside: its command line, its streams, its
// files and its exit status.
#include "FakeProgram.h"
#include "runtime/Payload.h"
#include "runtime/TokenizerData.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sstream>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace kvc;
using nlohmann::json;

namespace {

constexpr int32_t Tokens = 30; // the model has 37 columns

std::string readFile(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream content;
  content << file.rdbuf();
  return content.str();
}

void writeFile(const std::string &path, const std::string &content) {
  std::ofstream(path, std::ios::binary) << content;
}

// Letters, a stop token in place of h, a space, and the two bytes of an e with
// an acute accent.
std::string tokenizerBlob() {
  TokenizerSource source;
  source.model = "gpt2";
  source.pre = "smollm";
  for (char letter = 'a'; letter <= 'z'; ++letter)
    source.tokens.push_back(std::string(1, letter));
  source.tokens[fake::StopId] = "<|end|>";
  source.tokens.push_back("\u0120"); // space
  source.tokens.push_back("\u00c3"); // byte C3
  source.tokens.push_back("\u00a9"); // byte A9
  source.tokens.push_back("ab");
  source.merges = {"a b"};
  source.types.assign(source.tokens.size(), int32_t(TokenType::Normal));
  source.types[fake::StopId] = int32_t(TokenType::Control);
  source.special.eos = fake::StopId;
  TokenizerData data;
  std::string error;
  EXPECT_TRUE(buildTokenizerData(source, data, error)) << error;
  EXPECT_EQ(int32_t(data.tokens.size()), Tokens);
  std::vector<uint8_t> blob = serialize(data);
  return std::string(blob.begin(), blob.end());
}

std::string pieceOf(int32_t id) {
  if (id < 26)
    return id == fake::StopId ? "" : std::string(1, char('a' + id));
  return std::vector<std::string>{" ", "\xC3", "\xA9", "ab"}[size_t(id - 26)];
}

struct Outcome {
  int Status = -1;
  std::string Out;
  std::string Err;
  std::vector<json> objects() const {
    std::vector<json> result;
    std::istringstream lines(Out);
    for (std::string line; std::getline(lines, line);)
      result.push_back(json::parse(line));
    return result;
  }
};

class RuntimeProgram : public testing::Test {
protected:
  RuntimeProgram() {
    Folder = testing::TempDir() + "kvc-program-XXXXXX";
    EXPECT_NE(mkdtemp(Folder.data()), nullptr);
  }
  ~RuntimeProgram() override {
    std::string command = "rm -rf '" + Folder + "'";
    EXPECT_EQ(std::system(command.c_str()), 0);
  }

  std::string path(const std::string &name) const {
    return Folder + "/" + name;
  }

  // A program with its payload behind it, or beside it.
  void makeProgram(const std::string &tokenizer, bool sidecar = false) {
    writeFile(path("prog"), readFile(KVC_FAKE_PROGRAM));
    chmod(path("prog").c_str(), 0755);
    std::string target = path(sidecar ? "prog.weights" : "prog");
    int file = open(target.c_str(), O_WRONLY | O_CREAT, 0644);
    ASSERT_GE(file, 0);
    std::string error;
    std::vector<uint8_t> weights = fake::weights();
    PayloadWriter writer(file, target);
    uint64_t digest;
    EXPECT_TRUE(writer.begin(tokenizer.data(), tokenizer.size(), error));
    EXPECT_TRUE(writer.write(weights.data(), weights.size(), error));
    EXPECT_TRUE(writer.finish(digest, error)) << error;
    EXPECT_EQ(digest, kvc_program.weights_digest);
    close(file);
  }

  Outcome run(const std::string &arguments,
              const std::string &environment = "") const {
    std::string command = "cd '" + Folder + "' && " + environment + " ./prog " +
                          arguments + " >out 2>err";
    Outcome outcome;
    int status = std::system(command.c_str());
    outcome.Status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    outcome.Out = readFile(path("out"));
    outcome.Err = readFile(path("err"));
    return outcome;
  }

  std::string Folder;
};

// Greedy over the tokenizer's ids only.
std::vector<int32_t> expectedIds(std::vector<int32_t> tokens, size_t count,
                                 bool ignoreStop = false) {
  std::vector<int32_t> result;
  while (result.size() != count) {
    std::vector<float> values = fake::logits(tokens);
    int32_t id =
        int32_t(std::max_element(values.begin(), values.begin() + Tokens) -
                values.begin());
    tokens.push_back(id);
    result.push_back(id);
    if (id == fake::StopId && !ignoreStop)
      break;
  }
  return result;
}

std::string textOf(const std::vector<int32_t> &ids) {
  std::string text;
  for (int32_t id : ids)
    text += pieceOf(id);
  return text;
}

} // namespace

TEST_F(RuntimeProgram, StreamsText) {
  makeProgram(tokenizerBlob());
  Outcome outcome =
      run("--prompt 'cab x' --max-new-tokens 20 --ignore-eos --threads 2");
  EXPECT_EQ(outcome.Status, 0) << outcome.Err;
  EXPECT_EQ(outcome.Out, textOf(expectedIds({2, 29, 26, 23}, 20, true)) + "\n");
  EXPECT_EQ(outcome.Err.substr(0, 43),
            "4 prompt tokens, 20 generated, length; time");
  EXPECT_EQ(std::count(outcome.Err.begin(), outcome.Err.end(), '\n'), 1);
}

TEST_F(RuntimeProgram, JsonAndLogits) {
  makeProgram(tokenizerBlob());
  Outcome outcome = run("--prompt 'cab x' --max-new-tokens 8 --json "
                        "--logits l.npy --seed 18446744073709551615",
                        "KVC_POISON=1");
  ASSERT_EQ(outcome.Status, 0) << outcome.Err;
  EXPECT_EQ(outcome.Err, "");
  std::vector<json> objects = outcome.objects();
  ASSERT_EQ(objects.size(), 1u);
  const json &object = objects[0];
  std::vector<int32_t> prompt = {2, 29, 26, 23};
  std::vector<int32_t> ids = expectedIds(prompt, 8);
  EXPECT_EQ(object["prompt_ids"], json(prompt));
  EXPECT_EQ(object["ids"], json(ids));
  EXPECT_EQ(object["finish_reason"],
            ids.back() == fake::StopId ? "stop" : "length");
  EXPECT_FALSE(object.contains("chosen_ids"));
  const json &stats = object["stats"];
  EXPECT_EQ(stats["prompt_tokens"], 4);
  EXPECT_EQ(stats["generated_tokens"], ids.size());
  EXPECT_EQ(stats["projected_rows"], 4 + ids.size() - 1);
  EXPECT_EQ(stats["seed"], UINT64_MAX);
  EXPECT_EQ(stats["isa"], "sse2");
  for (const char *name :
       {"load_ms", "ttft_ms", "prefill_tps", "prefill_ms", "decode_ms",
        "decode_tps", "peak_rss", "kv_bytes", "threads"})
    EXPECT_TRUE(stats[name].is_number()) << name;

  std::string file = readFile(path("l.npy"));
  size_t columns = size_t(fake::Vocab);
  ASSERT_EQ(file.size(), 128 + ids.size() * columns * 4);
  std::vector<float> row(columns);
  std::memcpy(row.data(), file.data() + 128, columns * 4);
  EXPECT_EQ(row, fake::logits(prompt));
}

TEST_F(RuntimeProgram, BatchOfPrompts) {
  makeProgram(tokenizerBlob());
  writeFile(path("p.jsonl"), "{\"prompt\": \"cab x\"}\n\n"
                             "{\"prompt_ids\": [30, 1], \"name\": 5}\n"
                             "{\"prompt\": \"z<|end|>\"}");
  Outcome outcome = run("--prompts p.jsonl --max-new-tokens 9 --json "
                        "--force-ids 7,7,8 --logits l");
  ASSERT_EQ(outcome.Status, 0) << outcome.Err;
  std::vector<json> objects = outcome.objects();
  ASSERT_EQ(objects.size(), 3u);
  std::vector<std::vector<int32_t>> prompts = {
      {2, 29, 26, 23}, {30, 1}, {25, 7}};
  for (size_t i = 0; i != 3; ++i) {
    EXPECT_EQ(objects[i]["prompt_ids"], json(prompts[i]));
    std::vector<int32_t> ids = objects[i]["ids"];
    EXPECT_EQ(std::vector<int32_t>(ids.begin(), ids.begin() + 3),
              (std::vector<int32_t>{7, 7, 8}));
    EXPECT_EQ(objects[i]["chosen_ids"].size(), 3u);
    EXPECT_EQ(objects[i]["chosen_ids"][0], expectedIds(prompts[i], 1)[0]);
    EXPECT_EQ(readFile(path("l." + std::to_string(i) + ".npy")).size(),
              128 + ids.size() * size_t(fake::Vocab) * 4);
  }
  outcome = run("--prompts p.jsonl --max-new-tokens 3 --ignore-eos");
  EXPECT_EQ(outcome.Out.substr(0, 6), "--- 0\n");
  EXPECT_NE(outcome.Out.find("\n--- 2\n" +
                             textOf(expectedIds(prompts[2], 3, true)) + "\n"),
            std::string::npos);
}

TEST_F(RuntimeProgram, TheSameHoweverItRuns) {
  makeProgram(tokenizerBlob());
  for (const char *sampling : {"", "--temperature 1.5 --top-k 20 --seed 3"}) {
    std::string base = "--prompt 'the quick brown fox' --max-new-tokens 30 "
                       "--ignore-eos " +
                       std::string(sampling);
    std::string expected = run(base).Out;
    EXPECT_GT(expected.size(), 10u);
    for (const char *way :
         {"--threads 1", "--threads 2", "--threads 5", "--prefill-chunk 1",
          "--prefill-chunk 7", "--no-cache", "--no-cache --prefill-chunk 4"})
      EXPECT_EQ(run(base + " " + way).Out, expected) << way;
  }
}

TEST_F(RuntimeProgram, PromptsComeFromFilesToo) {
  makeProgram(tokenizerBlob());
  writeFile(path("prompt.txt"), "cab x");
  EXPECT_EQ(run("--prompt-file prompt.txt --max-new-tokens 12").Out,
            run("--prompt 'cab x' --max-new-tokens 12").Out);
  EXPECT_EQ(run("--prompt-ids 2,29,26,23 --max-new-tokens 12").Out,
            run("--prompt 'cab x' --max-new-tokens 12").Out);
}

TEST_F(RuntimeProgram, WithoutTokenizer) {
  makeProgram("");
  Outcome outcome = run("--prompt-ids 1,2,3 --max-new-tokens 4 --ignore-eos");
  EXPECT_EQ(outcome.Status, 0) << outcome.Err;
  std::string expected;
  for (int32_t id : fake::continuation({1, 2, 3}, 4, true))
    expected += (expected.empty() ? "" : ",") + std::to_string(id);
  EXPECT_EQ(outcome.Out, expected + "\n");
  outcome = run("--prompt-ids 1,2,3 --max-new-tokens 4 --json");
  EXPECT_EQ(outcome.objects()[0]["text"], "");
  outcome = run("--prompt hello");
  EXPECT_EQ(outcome.Status, 1);
  EXPECT_EQ(outcome.Err,
            "./prog: error: --prompt: this program has no tokenizer, give "
            "token ids with --prompt-ids\n");
}

TEST_F(RuntimeProgram, ContextDefaults) {
  makeProgram("");
  Outcome outcome = run("--prompt-ids 1,2,3 --ignore-eos --json --ctx 10");
  EXPECT_EQ(outcome.objects()[0]["ids"].size(), 7u);
  outcome = run("--prompt-ids 1,2,3 --ignore-eos --json");
  EXPECT_EQ(outcome.objects()[0]["ids"].size(), size_t(fake::Context) - 3);
  outcome = run("--prompt-ids 1,2,3 --ctx 3");
  EXPECT_EQ(outcome.Status, 1);
  EXPECT_EQ(outcome.Err,
            "./prog: error: the prompt has 3 tokens and 1 new ones are asked "
            "for, the context holds 3: shorten the prompt or "
            "--max-new-tokens\n");
  outcome = run("--prompt-ids 1,2,3 --ctx 97");
  EXPECT_EQ(outcome.Err, "./prog: error: --ctx is 97, the program was "
                         "compiled for at most 96\n");
}

TEST_F(RuntimeProgram, InfoProfileAndHelp) {
  makeProgram(tokenizerBlob());
  Outcome outcome = run("--info");
  EXPECT_EQ(outcome.Status, 0) << outcome.Err;
  EXPECT_NE(outcome.Out.find("model         fake\n"), std::string::npos);
  EXPECT_NE(outcome.Out.find("37 logits, 30 tokens"), std::string::npos);
  outcome = run("--prompt a --max-new-tokens 4 --ignore-eos --profile --json");
  EXPECT_EQ(outcome.Status, 0) << outcome.Err;
  EXPECT_EQ(outcome.objects().size(), 1u);
  EXPECT_NE(outcome.Err.find("decode: 3 steps, 3 rows, 3 outputs"),
            std::string::npos)
      << outcome.Err;
  outcome = run("--help");
  EXPECT_EQ(outcome.Status, 0);
  for (const char *option :
       {"--prompt ", "--prompt-file",    "--prompt-ids",
        "--prompts", "--max-new-tokens", "--temperature",
        "--top-k",   "--top-p",          "--min-p",
        "--seed",    "--ignore-eos",     "--threads",
        "--ctx",     "--prefill-chunk",  "--force-ids",
        "--logits",  "--no-cache",       "--json",
        "--profile", "--info",           "temperature, top-k, top-p, min-p"})
    EXPECT_NE(outcome.Out.find(option), std::string::npos) << option;
}

TEST_F(RuntimeProgram, UsageErrors) {
  makeProgram(tokenizerBlob());
  writeFile(path("bad.jsonl"), "{\"prompt\": \"a\"}\n{\"text\": 1}\n");
  writeFile(path("worse.jsonl"), "{\"prompt\": \"a\"}\n{\"prompt\n");
  writeFile(path("empty.jsonl"), "\n");
  struct Case {
    const char *Arguments;
    int Status;
    const char *Message;
  };
  for (const Case &test : {
           Case{"", 2, "0 prompts given, exactly one of"},
           Case{"--prompt a --prompt-ids 1", 2, "2 prompts given"},
           Case{"--prompt a --top-p 0", 2, "--top-p is 0"},
           Case{"--prompt a --top-p 1.5", 2, "--top-p"},
           Case{"--prompt a --temperature nan", 2, "NaN is no setting"},
           Case{"--prompt a --temperature -1", 2, "--temperature"},
           Case{"--prompt a --threads 0", 2, "--threads"},
           Case{"--prompt a --max-new-tokens 0", 2, "--max-new-tokens"},
           Case{"--prompt a --seed -1", 2, "--seed"},
           Case{"--prompt a --frobnicate", 2, "--frobnicate"},
           Case{"--prompt-ids 1,,2", 2, "--prompt-ids: '' is no token id"},
           Case{"--prompt-ids 1,x", 2, "--prompt-ids: 'x' is no token id"},
           Case{"--prompt-ids 99999999999", 2, "is no token id"},
           Case{"--prompt-ids ''", 2, "is no token id"},
           Case{"--prompt-ids 37", 1, "holds token id 37, ids must be 0 to 36"},
           Case{"--prompt a --force-ids 37", 1, "--force-ids holds token id"},
           Case{"--prompt ''", 1, "the prompt has no tokens"},
           Case{"--prompt-file none.txt", 1, "none.txt: cannot open"},
           Case{"--prompt-file /tmp", 1, "/tmp: cannot read"},
           Case{"--prompts bad.jsonl", 1, "bad.jsonl:2: must be an object"},
           Case{"--prompts worse.jsonl", 1, "worse.jsonl:2: not JSON"},
           Case{"--prompts empty.jsonl", 1, "empty.jsonl: holds no prompts"},
           Case{"--prompt a --logits /none/x.npy", 1,
                "/none/x.npy: cannot write"},
       }) {
    Outcome outcome = run(test.Arguments);
    EXPECT_EQ(outcome.Status, test.Status) << test.Arguments;
    EXPECT_NE(outcome.Err.find(test.Message), std::string::npos)
        << test.Arguments << ": " << outcome.Err;
    EXPECT_EQ(outcome.Err.substr(0, 15), "./prog: error: ") << outcome.Err;
    EXPECT_EQ(std::count(outcome.Err.begin(), outcome.Err.end(), '\n'), 1)
        << outcome.Err;
    EXPECT_EQ(outcome.Out, "") << test.Arguments;
  }
}

TEST_F(RuntimeProgram, OddPromptsArriveAsTheyAre) {
  makeProgram(tokenizerBlob());
  std::vector<int32_t> ids =
      run("--prompt '[a,b]' --json").objects()[0]["prompt_ids"];
  EXPECT_EQ(ids, (std::vector<int32_t>{0, 1}));
  ids = std::vector<int32_t>(
      run("--prompt '--a' --json").objects()[0]["prompt_ids"]);
  EXPECT_EQ(ids, (std::vector<int32_t>{0}));
  ids = std::vector<int32_t>(
      run("--prompt '\"a\"' --json").objects()[0]["prompt_ids"]);
  EXPECT_EQ(ids, (std::vector<int32_t>{0}));
}

TEST_F(RuntimeProgram, SidecarAndMissingWeights) {
  makeProgram(tokenizerBlob(), /*sidecar=*/true);
  EXPECT_EQ(run("--prompt a --max-new-tokens 3").Status, 0);
  std::string sidecar = readFile(path("prog.weights"));
  writeFile(path("prog.weights"), sidecar.substr(0, sidecar.size() - 100));
  Outcome outcome = run("--prompt a");
  EXPECT_EQ(outcome.Status, 1);
  EXPECT_NE(outcome.Err.find("prog.weights: no weights at the end of its"),
            std::string::npos);
  EXPECT_NE(outcome.Err.find(": was it cut?\n"), std::string::npos);
  unlink(path("prog.weights").c_str());
  outcome = run("--prompt a");
  EXPECT_EQ(outcome.Status, 1);
  EXPECT_NE(outcome.Err.find("(5000 bytes belong there) and no"),
            std::string::npos);
  EXPECT_NE(outcome.Err.find("was the program stripped or cut"),
            std::string::npos)
      << outcome.Err;
  EXPECT_EQ(std::count(outcome.Err.begin(), outcome.Err.end(), '\n'), 1);
}

TEST_F(RuntimeProgram, NeedsOnlyTheCLibrary) {
  if (std::string(KVC_TEST_SANITIZE) != "")
    GTEST_SKIP() << "sanitizers link more";
  std::string command =
      "ldd " KVC_FAKE_PROGRAM " > '" + path("libraries") + "'";
  ASSERT_EQ(std::system(command.c_str()), 0);
  std::istringstream lines(readFile(path("libraries")));
  for (std::string line; std::getline(lines, line);) {
    std::string name;
    std::istringstream(line) >> name;
    bool allowed = name == "libc.so.6" || name == "libm.so.6" ||
                   name == "libpthread.so.0" || name == "linux-vdso.so.1" ||
                   name.find("/ld-linux") != std::string::npos;
    EXPECT_TRUE(allowed) << line;
  }
}
