#include "run/op_recorder.h"

#include <ATen/record_function.h>

#include <memory>

#include "base/clock.h"

namespace renkei::run {
namespace {

// Torch calls plain functions, and hands over nothing of ours. Its callbacks are those of a thread,
// too: ranks that are threads of one process have one each.
thread_local OpRecorder* current = nullptr;

// What Torch puts before the name of a node of autograd's graph.
constexpr std::string_view kNode = "autograd::engine::evaluate_function: ";

}  // namespace

OpRecorder::OpRecorder(timeline::Recorder& recorder) : recorder_(recorder), before_(current) {
  current = this;
  handle_ = at::addThreadLocalCallback(
      at::RecordFunctionCallback(
          [](const at::RecordFunction&) -> std::unique_ptr<at::ObserverContext> {
            if (current) current->begin();
            return nullptr;
          },
          [](const at::RecordFunction& function, at::ObserverContext*) {
            if (current) current->end(function.name());
          })
          .scopes({at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION}));
}

OpRecorder::~OpRecorder() {
  at::removeCallback(handle_);
  current = before_;
}

void OpRecorder::begin() {
  if (depth_++ == 0) began_ = now_seconds();
}

void OpRecorder::end(const char* name) {
  if (--depth_ > 0 || !task_) return;
  timeline::Event event = *task_;
  std::string_view text = name;
  if (text.starts_with(kNode)) text.remove_prefix(kNode.size());
  event.name = *names_.emplace(text).first;
  event.begin = began_;
  event.end = now_seconds();
  event.lane = timeline::kOperationLane;
  recorder_.note(event);
}

}  // namespace renkei::run
