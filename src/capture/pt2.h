// .pt2 files, as torch.export.save writes them, become programs. They are read without Torch and
// without executing anything; every size and offset in them is checked before it is used.
//
// A file holds the program of training ("model"), and may hold a second one ("evaluation") of the
// same parameters and buffers, where the two differ by more than what batch norm and dropout do.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "capture/named_tensors.h"
#include "program/program.h"

namespace renkei::capture {

struct Pt2File {
  program::Program program;
  std::vector<StoredTensor> tensors;  // of program.state
  std::optional<program::Program> evaluation = {};
  std::vector<StoredTensor> evaluation_tensors = {};  // of evaluation->state
  bool has_values = true;  // false: some tensors have none, such as of a model made on "meta"
};

// Throws data Errors. Tensors keep the file open.
Pt2File read_pt2(const std::string& path);
Pt2File read_pt2(std::shared_ptr<const data::ByteFile> file);

// A copy of a .pt2 file with other values of its parameters and buffers: all those that its state
// dict has, by their names there. Throws a data Error where one is missing or does not fit.
void write_pt2_with(const std::string& pt2, const NamedTensors& values, const std::string& path);

// The program in the text of a models/NAME.json, without values. `tied` are pairs of names of one
// tensor, `source` begins messages.
program::Program read_exported_json(std::string_view text,
                                    const std::vector<std::pair<std::string, std::string>>& tied,
                                    const std::string& source);

}  // namespace renkei::capture
