// Tensors without values, for networks that are too large for this machine: they have shapes and
// types, as a recording needs them (capture.h), but no memory, and computing with them takes no
// time.
//
// They are tensors of Torch's meta device. An operation for which Torch can't tell the shape of the
// result without computing is computed, on zeros.
#pragma once

#include <c10/core/impl/LocalDispatchKeySet.h>

namespace renkei::model {

// While one exists, what this thread makes is without values: new tensors for which no device is
// asked for, and all that follows from a tensor without values.
class BlankTensors {
 public:
  BlankTensors() : operations_(c10::DispatchKey::Fake) {}
  static bool active() { return c10::impl::tls_is_dispatch_key_included(c10::DispatchKey::Fake); }

 private:
  c10::impl::IncludeDispatchKeyGuard operations_;
};

// While one exists, tensors have values again.
class OrdinaryTensors {
 public:
  OrdinaryTensors() : operations_(c10::DispatchKey::Fake) {}

 private:
  c10::impl::ExcludeDispatchKeyGuard operations_;
};

}  // namespace renkei::model
