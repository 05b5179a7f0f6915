// What a checkpoint consists of. A checkpoint is a directory:
//
//   step-00000500/  manifest.json          written last: without it there is no checkpoint
//                   rank-0.safetensors     what rank 0 wrote, and so on
//
// Tensors are named as in PyTorch's state_dict, their elements counted in row-major order. A tensor
// may lie in several files, in runs of elements; which rank wrote what means nothing for reading,
// so that any plan and any number of ranks can go on from it. Beside parameters there are
//
//   copy/3/NAME            a buffer as the fourth replica has it: running statistics differ
//   optimizer/0/NAME       the first array of the optimizer's state of a parameter
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "program/program.h"

namespace renkei::checkpoint {

// Of those that this program writes; older ones can be read, newer ones not.
inline constexpr int64_t kFormatVersion = 1;

// A run of elements of a tensor, as a tensor of a file.
struct Piece {
  std::string file;
  std::string key;
  int64_t begin = 0, count = 0;
};

struct TensorEntry {
  program::DType dtype = program::DType::f32;
  std::vector<int64_t> sizes = {};
  std::vector<Piece> pieces = {};

  int64_t count() const;
};

struct FileEntry {
  std::string name;
  int64_t bytes = 0;
  std::string checksum;  // of all its bytes
};

// Where a training is, and what it must have in common with one that goes on from there.
struct Progress {
  int64_t step = 0;   // the next one
  int64_t steps = 0;  // that there were to be
  int64_t epoch = 0, sample_in_epoch = 0;
  int64_t batch = 0, samples = 0;  // of a step, of the data set; 0: the program alone knows
  uint64_t seed = 0;
  std::string optimizer;
  double loss_scale = 1;
  int64_t good_steps = 0;  // since the loss scale was changed
  double first_loss = 0, last_loss = 0;
  std::map<std::string, double> metrics = {};  // of the evaluation that came before
};

struct Manifest {
  Progress progress;
  std::string settings;                           // as TOML
  std::string plan;                               // as JSON
  std::map<std::string, std::string> notes = {};  // of whoever saved it
  std::vector<FileEntry> files = {};
  std::map<std::string, TensorEntry, std::less<>> tensors = {};
};

// How tensors are called, as above; what the first replica has goes by the buffer's own name.
std::string optimizer_name(int state, const std::string& parameter);
std::string copy_name(size_t copy, const std::string& buffer);

// The text has its own checksum in it.
std::string to_text(const Manifest& manifest);
// Throws a data Error that begins with `source`: damaged, of a newer version, or with a tensor that
// its pieces do not make up.
Manifest parse_manifest(const std::string& text, const std::string& source);

}  // namespace renkei::checkpoint
