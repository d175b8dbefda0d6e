// SPDX-License-Identifier: Apache-2.0
// Implementation of unpickle(): a stack, a memo and a list of value nodes. Private to formats/.
#pragma once
#include <unordered_map>

#include "flashinfer/formats/pickle.h"

namespace flashinfer::formats {

class Unpickler {
 public:
  Unpickler(Bytes bytes, const StorageSource& storages) : bytes_(bytes), storages_(storages) {}
  Object run();

 private:
  enum class Global : uint8_t {
    kNo,
    kRebuildV1,
    kRebuildV2,
    kRebuildV3,
    kParameter,
    kOrderedDict,
    kSize,
    kDevice,
    kTyped,
    kUntyped,
    kStorage
  };
  struct Node {
    explicit Node(Object::Kind k = Object::Kind::kNone) : kind(k) {}
    Object::Kind kind;
    Global global = Global::kNo;  // a whitelisted name or a storage instead of a value
    bool typed = false;
    DType dtype = DType::kU8;
    int64_t integer = 0;
    double number = 0;
    std::string text;
    std::vector<uint32_t> items;
    Tensor tensor;
    std::shared_ptr<StorageMemory> memory;
  };

  [[noreturn]] void fail(const std::string& what) const;
  uint32_t make(Node n);
  void push(Node n) { stack_.push_back(make(std::move(n))); }
  Node& top();
  uint32_t pop();
  std::vector<uint32_t> pop_mark();
  Bytes take(uint64_t n);
  uint64_t u(int n);
  std::string text(uint64_t n);
  std::string line();
  bool constant(uint8_t op);   // opcodes that push a literal
  bool structure(uint8_t op);  // opcodes that build containers
  bool memo(uint8_t op);       // opcodes that name and recall values
  void push_int(Object::Kind kind, int64_t v);
  void push_long(uint64_t n);
  void push_text(Object::Kind kind, std::string s);
  void push_tuple(std::vector<uint32_t> items);
  void push_global(const std::string& module, const std::string& name);
  void memoize(uint64_t index);
  void recall(uint64_t index);
  void extend(Object::Kind kind, const std::vector<uint32_t>& items);
  void persistent();
  void reduce();
  std::vector<int64_t> extents(uint32_t index);
  void rebuild(const std::vector<uint32_t>& a, Global how);
  Object convert(uint32_t index, int depth);

  Bytes bytes_;
  size_t at_ = 0;
  const StorageSource& storages_;
  std::vector<Node> nodes_;
  std::vector<uint32_t> stack_;
  std::vector<size_t> marks_;
  std::unordered_map<uint64_t, uint32_t> memo_;
  size_t converted_ = 0;
};

}  // namespace flashinfer::formats
