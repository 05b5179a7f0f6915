#include "capture/pt2.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "capture/archive.h"
#include "capture/pt2_program.h"
#include "capture/pt2_weights.h"
#include "data/storage/storage.h"

namespace renkei::capture {
namespace {

using program::StateKind;

constexpr int64_t kLargestModel = int64_t{1} << 30;
constexpr std::string_view kHint = "write it with torch.export.save, or with: renkei model export";
constexpr std::string_view kNotes = "extra/renkei.json";  // of export_model.py

struct ModelNames {
  std::string training, evaluation;  // the second may be empty
};

[[noreturn]] void refuse_other_archive(const Archive& archive, const Place& place) {
  if (archive.has("constants.pkl"))
    place.refuse("this is a TorchScript file, which PyTorch has given up", kHint);
  if (archive.has("data.pkl"))
    place.refuse("this is a state dict: weights without the network they belong to", kHint);
  place.refuse("there is no exported program in it", kHint);
}

ModelNames model_names(const Archive& archive, const Place& place) {
  constexpr std::string_view folder = "models/", ending = ".json";
  std::vector<std::string> others;
  ModelNames names;
  for (const std::string& path : archive.list(folder)) {
    if (!path.ends_with(ending) || path.size() <= folder.size() + ending.size()) continue;
    const std::string name =
        path.substr(folder.size(), path.size() - folder.size() - ending.size());
    if (name == "evaluation")
      names.evaluation = name;
    else
      others.push_back(name);
  }
  if (others.empty()) refuse_other_archive(archive, place);
  for (const std::string_view known : {"model", "training"})
    if (std::find(others.begin(), others.end(), known) != others.end()) names.training = known;
  if (others.size() == 1) names.training = others[0];
  if (names.training.empty())
    place.refuse(fmt::format("it holds {} programs, and none is called 'model'", others.size()),
                 "keep one, or call them 'model' and 'evaluation'");
  return names;
}

// What the file's writer knew and the format can't say.
TiedNames tied_names(const Archive& archive, const Place& place) {
  if (!archive.has(kNotes)) return {};
  const Place notes_place = place.at(kNotes);
  const json notes = parse_model_json(archive.read(kNotes, 64 << 20), notes_place);
  TiedNames tied;
  if (const json* pairs = find_field(notes, "tied"))
    for (const auto& [alias, name] : object_of(*pairs, "tied", notes_place).items())
      tied.emplace_back(alias, text_of(name, alias, notes_place));
  return tied;
}

ReadProgram read_model(const Archive& archive, const std::string& name, const Place& place) {
  const std::string text = archive.read(fmt::format("models/{}.json", name), kLargestModel);
  const json exported = parse_model_json(text, place);
  ReadProgram read = read_exported_program(exported, read_weights(archive, name, place),
                                           tied_names(archive, place), place);
  read.program.name = archive.root();
  return read;
}

// Both modes train and use the same tensors; constants belong to the code and may differ.
void check_same_state(const ReadProgram& training, const ReadProgram& evaluation,
                      const Place& place) {
  std::map<std::string_view, const StoredTensor*> known;
  for (size_t i = 0; i < training.program.state.size(); ++i)
    if (training.program.state[i].kind != StateKind::constant)
      known[training.program.state[i].name] = &training.tensors[i];
  size_t shared = 0;
  for (size_t i = 0; i < evaluation.program.state.size(); ++i) {
    const program::State& state = evaluation.program.state[i];
    if (state.kind == StateKind::constant) continue;
    const auto found = known.find(state.name);
    if (found == known.end())
      place.refuse(
          fmt::format("'{}' is part of the evaluation and not of the training", state.name));
    if (found->second->dtype != evaluation.tensors[i].dtype ||
        found->second->sizes != evaluation.tensors[i].sizes)
      place.refuse(fmt::format("'{}' differs between training and evaluation", state.name));
    ++shared;
  }
  if (shared != known.size())
    place.refuse("the evaluation lacks parameters or buffers of the training");
}

bool all_have_values(const std::vector<StoredTensor>& tensors) {
  return std::all_of(tensors.begin(), tensors.end(),
                     [](const StoredTensor& tensor) { return tensor.has_values(); });
}

}  // namespace

Pt2File read_pt2(std::shared_ptr<const data::ByteFile> file) {
  const Archive archive(std::move(file), std::string(kHint));
  const Place place{archive.name()};
  const ModelNames names = model_names(archive, place);
  ReadProgram training = read_model(archive, names.training, place);
  Pt2File result;
  if (!names.evaluation.empty()) {
    const Place evaluation_place{fmt::format("{} (evaluation)", archive.name())};
    ReadProgram evaluation = read_model(archive, names.evaluation, evaluation_place);
    check_same_state(training, evaluation, evaluation_place);
    result.evaluation = std::move(evaluation.program);
    result.evaluation_tensors = std::move(evaluation.tensors);
  }
  result.program = std::move(training.program);
  result.tensors = std::move(training.tensors);
  result.has_values = all_have_values(result.tensors) && all_have_values(result.evaluation_tensors);
  return result;
}

Pt2File read_pt2(const std::string& path) {
  return read_pt2(data::open_storage(path)->open(path));
}

program::Program read_exported_json(std::string_view text,
                                    const std::vector<std::pair<std::string, std::string>>& tied,
                                    const std::string& source) {
  const Place place{source};
  return read_exported_program(parse_model_json(text, place), {}, tied, place).program;
}

}  // namespace renkei::capture
