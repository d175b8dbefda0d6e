// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "flashinfer/formats/pt.h"
#include "flashinfer/replay/ranks.h"
#include "tests/comm/ranks.h"
#include "tests/replay/twist.h"

namespace flashinfer::twist {

/// Records what the ranks of a group do, each a thread.
class RanksFixture : public ReplayTest {
 protected:
  /// Twice: a name stands for one group after another.
  void record_ranks(int ranks, void (*work)(const std::string& group, int rank, int ranks)) {
    record([&] {
      for (int i = 0; i < 2; ++i)
        for (const flashinfer::Outcome& o : run_threads(ranks, [&](int r) { work(folder.path(), r, ranks); }))
          EXPECT_EQ(o, "");
    });
  }
  /// The folders of `function` of a rank.
  std::vector<std::filesystem::path> calls_of(const std::string& function, int rank) const {
    std::vector<std::filesystem::path> out;
    const replay::Session all = replay::open_session(session());
    for (size_t i = 0; i < all.calls.size(); ++i)
      if (all.calls[i].function == function &&
          replay::integer_of(replay::object_of(all.read(i).record, "group"), "rank", -1) == rank)
        out.push_back(all.calls[i].folder);
    return out;
  }
  /// Changes the stored tensor `key` of a call (its first, when empty): f(tensor).
  template <class F>
  static void change(const std::filesystem::path& call, const std::string& stem, const std::string& key, const F& f) {
    auto stored = formats::read_pt(call / (stem + ".pt"));
    std::vector<formats::NamedTensor> tensors;
    for (auto& t : stored) {
      if (t.key == key || (key.empty() && &t == stored.data())) f(t.tensor);
      tensors.push_back({t.key, t.tensor.view()});
    }
    formats::write_pt(call / (stem + ".pt"), tensors);
    edit(call, [&](formats::Json& j) {
      for (const auto& t : stored)
        j["tensor_details"][t.key]["checksum"] = formats::checksum_text(formats::checksum(t.tensor.view()));
    });
  }
};

}  // namespace flashinfer::twist
