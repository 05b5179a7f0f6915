#include "rewrite/layout.h"

#include <map>

#include "rewrite/blocked_form.h"
#include "rewrite/constants.h"
#include "rewrite/min_cut.h"

namespace renkei::rewrite {
namespace {

using program::kNoValue;
using program::Reference;

// Its argument's sizes are all that it looks at, and they are found in both layouts.
bool reads_sizes_only(const Op& op) {
  const auto dim = integer_of(op, "dim");
  return op.target == "aten.sym_size.int" && dim && *dim != 1 && *dim != -3;
}

// What the choice costs, in bytes that are read and written.
class LayoutChoice {
 public:
  LayoutChoice(const ImageContext& context, const std::vector<std::optional<BlockedForm>>& forms)
      : context_(context), forms_(forms) {
    for (size_t place = 0; place < forms.size(); ++place) add_operation(static_cast<int>(place));
    for (size_t value = 0; value < context.editor.program().values.size(); ++value)
      if (context.is_image(static_cast<ValueId>(value))) add_image(static_cast<ValueId>(value));
  }

  // Of every place, whether it is blocked.
  std::vector<bool> cheapest() {
    const auto plain = cut_.near_side();
    std::vector<bool> blocked(forms_.size());
    for (size_t place = 0; place < blocked.size(); ++place)
      blocked[place] =
          can_be_blocked(static_cast<int>(place)) && !plain[static_cast<size_t>(nodes_[place])];
    return blocked;
  }

 private:
  bool can_be_blocked(int place) const {
    const auto& form = forms_[static_cast<size_t>(place)];
    return form && form->why_not.empty();
  }

  void add_operation(int place) {
    const int node = cut_.add_node();
    nodes_.push_back(node);
    if (can_be_blocked(place))
      cut_.add_edge(node, MinCut::kFar,
                    static_cast<int64_t>(forms_[static_cast<size_t>(place)]->gain_bytes));
    else
      cut_.add_edge(MinCut::kNear, node, MinCut::kInfinite);
  }

  // Whether the operation would take this value as an image in blocked layout.
  bool takes_blocked(int place, ValueId image) const {
    if (!can_be_blocked(place)) return false;
    const auto& images = forms_[static_cast<size_t>(place)]->images;
    return std::find(images.begin(), images.end(), image) != images.end();
  }

  void add_image(ValueId image) {
    const Editor& editor = context_.editor;
    const int producer = editor.producer(image);
    const bool plain = producer < 0 || !can_be_blocked(producer) ||
                       !forms_[static_cast<size_t>(producer)]->image_result;
    const int from = plain ? MinCut::kNear : nodes_[static_cast<size_t>(producer)];
    const double ways = editor.needs_gradient(image) ? 2 : 1;
    const auto cost =
        static_cast<int64_t>(context_.is_pixel(image) ? 0 : ways * context_.bytes(image));
    const int some_blocked = cut_.add_node(), some_plain = cut_.add_node();
    cut_.add_edge(from, some_blocked, cost);
    cut_.add_edge(some_plain, from, cost);
    for (const int user : editor.users(image)) {
      if (reads_sizes_only(editor.op(user))) continue;
      const int node =
          takes_blocked(user, image) ? nodes_[static_cast<size_t>(user)] : MinCut::kNear;
      cut_.add_edge(some_blocked, node, MinCut::kInfinite);
      cut_.add_edge(node, some_plain, MinCut::kInfinite);
    }
    if (editor.is_output(image)) cut_.add_edge(MinCut::kNear, some_plain, MinCut::kInfinite);
  }

  const ImageContext& context_;
  const std::vector<std::optional<BlockedForm>>& forms_;
  MinCut cut_;
  std::vector<int> nodes_;  // of every place
};

// Writes the operations anew, with conversions where one layout meets the other.
class LayoutWriter : public BlockedWriter {
 public:
  LayoutWriter(Editor& editor, const ImageContext& context) : editor_(editor), context_(context) {}

  ValueId blocked(ValueId image) override {
    if (is_blocked_.contains(image)) return image;
    auto [found, is_new] = blocked_of_.try_emplace(image, kNoValue);
    if (is_new) found->second = convert(image, true);
    return found->second;
  }

  ValueId plain(ValueId image) {
    if (!is_blocked_.contains(image)) return image;
    auto [found, is_new] = plain_of_.try_emplace(image, kNoValue);
    if (is_new) found->second = convert(image, false);
    return found->second;
  }

  ValueId add_value(Value value) override { return editor_.add_value(std::move(value)); }

  void add(Op op) override {
    if (op.module.empty()) op.module = module_;
    ops_.push_back(std::move(op));
  }

  void add_blocked(const Op& op, const BlockedForm& form) {
    module_ = op.module;
    form.write(*this);
    if (form.image_result)
      is_blocked_.emplace(op.outputs[0], context_.blocked_sizes(op.outputs[0]));
  }

  void add_plain(Op op) {
    module_ = op.module;
    if (reads_sizes_only(op)) {
      const int64_t dim = *integer_of(op, "dim");
      set_argument(op, "dim", dim < 0 ? dim + 4 : dim);
    } else {
      for (auto& [name, argument] : op.arguments) make_plain(argument);
    }
    ops_.push_back(std::move(op));
  }

  void finish() {
    for (size_t port = 0; port < editor_.program().outputs.size(); ++port) {
      const ValueId output = editor_.program().outputs[port].value;
      if (const ValueId in_plain = plain(output); in_plain != output)
        editor_.set_output(port, in_plain);
    }
    for (auto& [image, sizes] : is_blocked_) editor_.set_sizes(image, sizes);
    editor_.set_ops(std::move(ops_));
  }

 private:
  void make_plain(program::Argument& argument) {
    if (auto* reference = std::get_if<Reference>(&argument))
      reference->value = plain(reference->value);
    if (auto* list = std::get_if<program::List>(&argument))
      for (auto& element : *list) make_plain(element);
  }

  ValueId convert(ValueId image, bool to_blocked) {
    const Value& value = editor_.value(image);
    Value converted{.name = value.name + (to_blocked ? ".blocked" : ".plain"),
                    .dtype = value.dtype};
    converted.sizes = to_blocked ? context_.blocked_sizes(image) : value.sizes;
    Op op{.target = to_blocked ? "renkei.to_blocked.default" : "renkei.to_plain.default",
          .arguments = {{"input", Reference{image}}},
          .module = module_};
    const int64_t channels = value.sizes[1].number(), block = context_.block_of(image);
    if (context_.is_pixel(image)) {
      op.target = "aten.reshape.default";
      op.arguments = {{"self", Reference{image}},
                      {"shape", to_blocked ? integers({-1, channels / block, 1, 1, block})
                                           : integers({-1, channels, 1, 1})}};
    } else if (to_blocked) {
      op.arguments.push_back({"block", block});
    }
    const ValueId result = editor_.add_value(std::move(converted));
    op.outputs = {result};
    ops_.push_back(std::move(op));
    return result;
  }

  Editor& editor_;
  const ImageContext& context_;
  std::vector<Op> ops_;
  std::string module_;  // of the operation that is being written
  std::map<ValueId, std::vector<program::Size>> is_blocked_;  // with its sizes there
  std::map<ValueId, ValueId> blocked_of_, plain_of_;          // conversions so far
};

// The operations of which one expects that they are done in blocked layout.
const char* kernel_name(const Op& op) {
  if (op.target.starts_with("aten.conv2d.")) return "blocked convolution";
  if (op.target == "aten.batch_norm.default") return "blocked batch norm";
  if (op.target == "aten.max_pool2d.default" || op.target == "aten.avg_pool2d.default")
    return "blocked pooling";
  return nullptr;
}

}  // namespace

void choose_layouts(Editor& editor, const RewriteOptions& options, std::vector<Applied>& applied) {
  constexpr int64_t kSamples = 8;  // for estimates: all images grow with it alike
  const ImageContext context{editor, options, with_batch(editor.program(), kSamples)};
  std::vector<std::optional<BlockedForm>> forms;
  for (int place = 0; place < editor.places(); ++place)
    forms.push_back(editor.is_empty(place) ? std::nullopt : blocked_form(context, place));
  const auto blocked = LayoutChoice(context, forms).cheapest();

  LayoutWriter writer(editor, context);
  for (int place = 0; place < editor.places(); ++place) {
    if (editor.is_empty(place)) continue;
    const Op op = editor.op(place);
    const auto& form = forms[static_cast<size_t>(place)];
    const bool is_blocked = blocked[static_cast<size_t>(place)];
    if (const char* name = kernel_name(op)) {
      const std::string reason = form ? form->why_not : "nobody uses its result";
      applied.push_back({name, editor.where(place),
                         is_blocked       ? ""
                         : reason.empty() ? "conversions would cost more"
                                          : reason});
    }
    if (is_blocked)
      writer.add_blocked(op, *form);
    else
      writer.add_plain(op);
  }
  writer.finish();
}

}  // namespace renkei::rewrite
