// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "flashinfer/cli/report.h"
#include "flashinfer/core/jobs.h"

namespace flashinfer::cli {

const char* name(Status s) {
  switch (s) {
    case Status::kCompleted: return "completed";
    case Status::kFailed: return "failed";
    case Status::kNeverReturned: return "never returned";
    case Status::kCaptured: return "captured";
    case Status::kUnreadable: break;
  }
  return "unreadable";
}

bool CallFacts::non_finite() const {
  bool in = false, out = false;
  for (const TensorFacts& t : tensors)
    if (t.summary && t.summary->nan + t.summary->inf > 0) (t.output ? out : in) = true;
  return out && !in;
}

void find_first(SessionFacts& s) {
  const auto earlier = [&](int64_t i, int64_t than) {
    return than < 0 || s.calls[static_cast<size_t>(i)].start_us < s.calls[static_cast<size_t>(than)].start_us;
  };
  for (size_t k = 0; k < s.calls.size(); ++k) {
    const auto i = static_cast<int64_t>(k);
    const CallFacts& c = s.calls[k];
    if (c.status == Status::kFailed && earlier(i, s.failed)) s.failed = i;
    if (c.non_finite() && earlier(i, s.non_finite)) s.non_finite = i;
    if (c.status == Status::kNeverReturned && earlier(i, s.crashed)) s.crashed = i;
  }
  for (size_t k = 0; s.crashed >= 0 && k < s.calls.size();
       ++k) {  // an outer call did not return since an inner one did not
    const CallFacts &c = s.calls[k], &now = s.calls[static_cast<size_t>(s.crashed)];
    if (c.status == Status::kNeverReturned && c.process_key == now.process_key && c.thread == now.thread &&
        c.depth > now.depth)
      s.crashed = static_cast<int64_t>(k);
  }
}

Against compare(const replay::Session& session, const replay::Session& other, SessionFacts facts_of_other,
                const replay::Tolerances& tolerances, int jobs) {
  Against a;
  a.other = std::move(facts_of_other);
  const auto names = [](const replay::Session& s) {
    std::vector<std::string> out;
    for (const replay::CallEntry& c : s.calls) out.push_back(c.function);
    return out;
  };
  a.pairs = replay::align(names(session), names(other));
  a.diffs.resize(a.pairs.size());
  for_each_job(static_cast<int64_t>(a.pairs.size()), jobs, [&](int64_t i) {
    const auto [x, y] = a.pairs[static_cast<size_t>(i)];
    if (x >= 0 && y >= 0)
      a.diffs[static_cast<size_t>(i)] = replay::compare_calls(session, session.read(static_cast<size_t>(x)), other,
                                                              other.read(static_cast<size_t>(y)), tolerances);
  });
  for (size_t i = 0; i < a.pairs.size() && a.first < 0; ++i) {
    const bool alone = a.pairs[i].first < 0 || a.pairs[i].second < 0;
    if (alone || a.diffs[i].inputs == replay::Agreement::kDiffers || a.diffs[i].outputs == replay::Agreement::kDiffers)
      a.first = static_cast<int64_t>(i);
  }
  return a;
}

}  // namespace flashinfer::cli
