#include "dense/hpl.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <regex>

#include "base/error.h"
#include "base/file.h"

namespace renkei::dense {
namespace {

class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string pattern = (std::filesystem::temp_directory_path() / "renkei-hpl-XXXXXX").string();
    if (!::mkdtemp(pattern.data()))
      throw Error(ErrorCode::data, "could not make a directory for HPL in " + pattern);
    path = pattern;
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  std::filesystem::path path;
};

[[noreturn]] void become(const std::vector<std::string>& command,
                         const std::filesystem::path& directory, int output, int threads) {
  if (::chdir(directory.c_str()) != 0) ::_exit(126);
  ::dup2(output, STDOUT_FILENO);
  ::dup2(output, STDERR_FILENO);
  const std::string count = std::to_string(threads);
  for (const char* name : {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"})
    ::setenv(name, count.c_str(), 1);
  std::vector<char*> words;
  for (const std::string& word : command) words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  ::execvp(words[0], words.data());
  std::perror(words[0]);
  ::_exit(127);
}

std::string last_line(const std::string& text) {
  const size_t end = text.find_last_not_of(" \n\t");
  if (end == std::string::npos) return "nothing";
  const size_t begin = text.rfind('\n', end);
  return text.substr(begin + 1, end - begin);
}

}  // namespace

std::string hpl_input(const LinpackOptions& options) {
  return fmt::format(
      "HPLinpack benchmark input file\n"
      "written by renkei\n"
      "HPL.out      output file name (if any)\n"
      "6            device out (6=stdout,7=stderr,file)\n"
      "1            # of problems sizes (N)\n"
      "{}           Ns\n"
      "1            # of NBs\n"
      "{}           NBs\n"
      "{}            PMAP process mapping (0=Row-,1=Column-major)\n"
      "1            # of process grids (P x Q)\n"
      "{}            Ps\n"
      "{}            Qs\n"
      "{:.1f}         threshold\n"
      "1            # of panel fact\n"
      "2            PFACTs (0=left, 1=Crout, 2=Right)\n"
      "1            # of recursive stopping criterium\n"
      "4            NBMINs (>= 1)\n"
      "1            # of panels in recursion\n"
      "2            NDIVs\n"
      "1            # of recursive panel fact.\n"
      "1            RFACTs (0=left, 1=Crout, 2=Right)\n"
      "1            # of broadcast\n"
      "1            BCASTs (0=1rg,1=1rM,2=2rg,3=2rM,4=Lng,5=LnM)\n"
      "1            # of lookahead depth\n"
      "1            DEPTHs (>=0)\n"
      "2            SWAP (0=bin-exch,1=long,2=mix)\n"
      "64           swapping threshold\n"
      "0            L1 in (0=transposed,1=no-transposed) form\n"
      "0            U  in (0=transposed,1=no-transposed) form\n"
      "1            Equilibration (0=no,1=yes)\n"
      "8            memory alignment in double (> 0)\n",
      options.n, options.block, options.column_major ? 1 : 0, options.grid.p, options.grid.q,
      kResidualLimit);
}

std::optional<LinpackResult> parse_hpl_output(const std::string& output) {
  // "WR11C2R4   4000   128   1   2   0.75   5.7012e+01", then the residual and a word.
  static const std::regex line(
      R"(\n[WC][RC]\S+\s+\d+\s+\d+\s+\d+\s+\d+\s+([0-9.eE+-]+)\s+([0-9.eE+-]+))");
  static const std::regex verdict(
      R"(\|\|Ax-b\|\|.*?=\s*([0-9.eE+-]+|-?nan|inf)\s*\.*\s*(PASSED|FAILED))");
  std::smatch time, word;
  if (!std::regex_search(output, time, line) || !std::regex_search(output, word, verdict))
    return std::nullopt;
  return LinpackResult{.seconds = std::stod(time[1]),
                       .gflops = std::stod(time[2]),
                       .residual = std::stod(word[1]),
                       .passed = word[2] == "PASSED"};
}

LinpackResult run_hpl(const std::vector<std::string>& command, const LinpackOptions& options) {
  const TemporaryDirectory directory;
  write_file_atomically(directory.path / "HPL.dat", hpl_input(options));
  const auto output = directory.path / "output";
  std::FILE* file = std::fopen(output.c_str(), "w");
  if (!file) throw_file_error("write", output, errno);
  const pid_t child = ::fork();
  if (child == 0) become(command, directory.path, ::fileno(file), options.threads);
  std::fclose(file);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  const std::string words = read_file(output);
  if (const auto result = parse_hpl_output("\n" + words)) return *result;
  throw Error(
      ErrorCode::usage,
      fmt::format("{} gave no HPL result; it ended with: {}", command.back(), last_line(words)),
      "run it by hand to see what it lacks; it must be an xhpl of the same MPI as the "
      "launcher");
}

}  // namespace renkei::dense
