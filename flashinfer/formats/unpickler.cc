// SPDX-License-Identifier: Apache-2.0
// The supported opcodes. Files of tensors do not use the others (instances, extension registry, classes with state).
#include "flashinfer/formats/unpickler.h"

#include <algorithm>
#include <bit>

#include "flashinfer/core/check.h"

namespace flashinfer::formats {

bool Unpickler::constant(uint8_t op) {
  using Kind = Object::Kind;
  switch (op) {
    case 'N': push(Node{}); return true;
    case 0x88: push_int(Kind::kBool, 1); return true;
    case 0x89: push_int(Kind::kBool, 0); return true;
    case 'K': push_int(Kind::kInt, static_cast<int64_t>(u(1))); return true;
    case 'M': push_int(Kind::kInt, static_cast<int64_t>(u(2))); return true;
    case 'J': push_int(Kind::kInt, static_cast<int32_t>(u(4))); return true;
    case 0x8a: push_long(u(1)); return true;
    case 0x8b: push_long(u(4)); return true;
    case 'G': {
      uint64_t bits = 0;
      for (const uint8_t b : take(8)) bits = bits << 8 | b;
      Node n{Kind::kFloat};
      n.number = std::bit_cast<double>(bits);
      push(std::move(n));
      return true;
    }
    case 'X': push_text(Kind::kString, text(u(4))); return true;
    case 0x8c: push_text(Kind::kString, text(u(1))); return true;
    case 0x8d: push_text(Kind::kString, text(u(8))); return true;
    case 'C': push_text(Kind::kBytes, text(u(1))); return true;
    case 'B': push_text(Kind::kBytes, text(u(4))); return true;
    case 0x8e: push_text(Kind::kBytes, text(u(8))); return true;
    default: return false;
  }
}

bool Unpickler::structure(uint8_t op) {
  using Kind = Object::Kind;
  switch (op) {
    case '(': marks_.push_back(stack_.size()); return true;
    case ')': push_tuple({}); return true;
    case ']': push(Node{Kind::kList}); return true;
    case '}': push(Node{Kind::kDict}); return true;
    case 't': push_tuple(pop_mark()); return true;
    case 0x85:
    case 0x86:
    case 0x87: {
      std::vector<uint32_t> items(op - 0x84u);
      for (size_t i = items.size(); i-- > 0;) items[i] = pop();
      push_tuple(std::move(items));
      return true;
    }
    case 'a': {
      const uint32_t v = pop();
      extend(Kind::kList, {v});
      return true;
    }
    case 'e': {
      const auto items = pop_mark();
      extend(Kind::kList, items);
      return true;
    }
    case 's': {
      const uint32_t v = pop(), k = pop();
      extend(Kind::kDict, {k, v});
      return true;
    }
    case 'u': {
      const auto items = pop_mark();
      extend(Kind::kDict, items);
      return true;
    }
    case 'b':  // attributes of an OrderedDict (a module's state_dict has some) hold no tensors of the dict
      pop();
      if (top().kind != Kind::kDict) fail("attributes for something that is no dict");
      return true;
    default: return false;
  }
}

bool Unpickler::memo(uint8_t op) {
  switch (op) {
    case 'q': memoize(u(1)); return true;
    case 'r': memoize(u(4)); return true;
    case 0x94: memoize(memo_.size()); return true;
    case 'h': recall(u(1)); return true;
    case 'j': recall(u(4)); return true;
    case '0': pop(); return true;
    case 'c': {
      const std::string module = line();
      push_global(module, line());
      return true;
    }
    case 0x93: {
      const Node name = nodes_[pop()], module = nodes_[pop()];
      if (name.kind != Object::Kind::kString || module.kind != Object::Kind::kString) fail("a global without a name");
      push_global(module.text, name.text);
      return true;
    }
    case 'Q': persistent(); return true;
    case 'R': reduce(); return true;
    case 0x95: u(8); return true;  // a frame; its length is only a hint
    default: return false;
  }
}

Object Unpickler::run() {
  if (u(1) != 0x80) fail("no pickle of protocol 2 or later");
  if (const uint64_t protocol = u(1); protocol < 2 || protocol > 5) fail(str("protocol ", protocol));
  for (;;) {
    const uint8_t op = take(1)[0];
    if (op == '.') break;
    if (constant(op) || structure(op) || memo(op)) continue;
    fail(str("opcode 0x", std::hex, int{op}, " is not used by files of tensors"));
  }
  const uint32_t value = pop();
  if (!stack_.empty() || !marks_.empty()) fail("values are left over");
  return convert(value, 0);
}

}  // namespace flashinfer::formats
