// Runs a fuzz target without libFuzzer, for compilers that lack it (g++): on its corpus, and then
// on mutations of it. It accepts libFuzzer's flags -runs=, -max_total_time= (seconds), -max_len=
// and -seed=, and folders and files.
//
// It is not guided by coverage: it keeps the corpus working and finds defects near it. With clang++
// the same targets use libFuzzer, and its findings go into the corpus. An input that crashes the
// program is kept in crash-<pid>.

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "tests/fuzz/fuzz.h"

extern "C" void __attribute__((weak)) __sanitizer_set_death_callback(void (*)());

namespace {

size_t longest = 4096;  // -max_len=

std::string current;  // the current input

// Uses only async-signal-safe functions.
void KeepCurrent() {
  char name[32] = "crash-";
  size_t length = std::strlen(name);
  for (int pid = getpid(); pid > 0; pid /= 10) name[length++] = static_cast<char>('0' + pid % 10);
  const int file = open(name, O_CREAT | O_WRONLY | O_TRUNC, 0600);
  if (file >= 0) {
    if (write(file, current.data(), current.size()) < 0) _exit(3);
    close(file);
  }
}

void OnSignal(int signal) {
  KeepCurrent();
  ::signal(signal, SIG_DFL);
  raise(signal);
}

void Run(std::string input) {
  current = std::move(input);
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(current.data()), current.size());
}

class Mutator {
 public:
  Mutator(const std::vector<std::string>& corpus, unsigned seed) : corpus_(corpus), random_(seed) {}

  std::string Next() {
    std::string text = corpus_.empty() ? "" : corpus_[Below(corpus_.size())];
    for (size_t i = 1 + Below(4); i > 0; --i) Mutate(text);
    text.resize(std::min(text.size(), longest));
    return text;
  }

 private:
  size_t Below(size_t count) { return count == 0 ? 0 : random_() % count; }

  // Returns a random piece of an input of the corpus.
  std::string Piece() {
    if (corpus_.empty()) return "";
    const std::string& from = corpus_[Below(corpus_.size())];
    return from.substr(Below(from.size() + 1), Below(32));
  }

  void Mutate(std::string& text) {
    // Strings that parsers and splitters treat specially.
    static constexpr absl::string_view kSpecial[] = {absl::string_view("\0", 1),
                                                     "\xFF",
                                                     "\x80",
                                                     "\xC3",
                                                     "\xE2\x80\x8B",
                                                     "\xCC\x81",
                                                     "\xF0\x9F\x98\x80",
                                                     "\r\n",
                                                     "\n\n",
                                                     " ",
                                                     ".",
                                                     "@-@",
                                                     "&amp;",
                                                     "\"",
                                                     "{",
                                                     "}",
                                                     "[",
                                                     "]",
                                                     "NaN",
                                                     "1e999",
                                                     "-1",
                                                     "2147483648",
                                                     "\xFF\xFF\xFF\xFF\x0F"};
    const size_t at = Below(text.size() + 1);
    switch (Below(7)) {
      case 0:
        if (at < text.size()) text[at] = static_cast<char>(text[at] ^ (1 << Below(8)));
        break;
      case 1:
        if (at < text.size()) text[at] = static_cast<char>(random_());
        break;
      case 2:
        text.erase(at, 1 + Below(16));
        break;
      case 3:
        text.insert(at, std::string(kSpecial[Below(std::size(kSpecial))]));
        break;
      case 4:
        text.insert(at, Piece());
        break;
      case 5:
        text.insert(at, text.substr(at, Below(32)));
        break;
      default: {
        const std::string piece = Piece();
        text.replace(at, piece.size(), piece);
      }
    }
  }

  const std::vector<std::string>& corpus_;
  std::mt19937 random_;
};

std::string Read(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(stream), {});
}

}  // namespace

int main(int argc, char** argv) {
  namespace fs = std::filesystem;
  long runs = 0;
  long seconds = 0;
  unsigned seed = 1;
  std::vector<fs::path> files;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument.starts_with("-runs=")) {
      runs = std::stol(argument.substr(6));
    } else if (argument.starts_with("-max_total_time=")) {
      seconds = std::stol(argument.substr(16));
    } else if (argument.starts_with("-max_len=")) {
      longest = std::stoul(argument.substr(9));
    } else if (argument.starts_with("-seed=")) {
      seed = static_cast<unsigned>(std::stoul(argument.substr(6)));
    } else if (fs::is_directory(argument)) {
      for (const auto& entry : fs::directory_iterator(argument)) files.push_back(entry.path());
    } else if (fs::exists(argument)) {
      files.push_back(argument);
    } else {
      std::fprintf(
          stderr,
          "%s is neither a flag (-runs=N, -max_total_time=N, -max_len=N, -seed=N) nor a file\n",
          argv[i]);
      return 2;
    }
  }
  std::sort(files.begin(), files.end());
  if (__sanitizer_set_death_callback != nullptr) {
    __sanitizer_set_death_callback(KeepCurrent);
    signal(SIGABRT, OnSignal);
  } else {
    for (int which : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL}) signal(which, OnSignal);
  }

  std::vector<std::string> corpus;
  for (const fs::path& file : files) corpus.push_back(Read(file));
  for (const std::string& input : corpus) Run(input);
  Mutator mutator(corpus, seed);
  long made = static_cast<long>(corpus.size());
  for (; made < runs; ++made) Run(mutator.Next());
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  for (; seconds > 0 && std::chrono::steady_clock::now() < end; ++made) Run(mutator.Next());
  std::fprintf(stderr,
               "%zu inputs of the corpus and %ld mutations of them (seed %u): all is well\n",
               corpus.size(), made - static_cast<long>(corpus.size()), seed);
  return 0;
}
