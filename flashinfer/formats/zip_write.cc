// SPDX-License-Identifier: Apache-2.0
#include <libdeflate.h>

#include <algorithm>

#include "flashinfer/core/check.h"
#include "flashinfer/formats/zip.h"

namespace flashinfer::formats {
namespace {

constexpr uint64_t kAlignment = 64;
constexpr uint32_t kMax32 = 0xffffffffu;
constexpr uint16_t kFlags = 0x0808;  // names are UTF-8; sizes and checksum follow the data

struct Out {
  std::string bytes;
  Out& u16(uint64_t v) { return put(v, 2); }
  Out& u32(uint64_t v) { return put(v, 4); }
  Out& u64(uint64_t v) { return put(v, 8); }
  Out& put(uint64_t v, int n) {
    for (int i = 0; i < n; ++i) bytes.push_back(static_cast<char>(v >> (8 * i)));
    return *this;
  }
};

}  // namespace

void ZipWriter::begin(std::string name, uint64_t bytes) {
  const bool large = bytes >= kMax32;
  const uint64_t at = file_->position(), fixed = at + 30 + name.size() + (large ? 20 : 0) + 4;
  const uint64_t padding = kAlignment - fixed % kAlignment;  // 1..64, as torch
  Out h;
  h.u32(0x04034b50).u16(large ? 45 : 0).u16(kFlags).u16(0).u16(0).u16(0);
  h.u32(0).u32(large ? kMax32 : 0).u32(large ? kMax32 : 0);
  h.u16(name.size()).u16((large ? 20 : 0) + 4 + padding);
  h.bytes += name;
  if (large) h.u16(1).u16(16).u64(bytes).u64(bytes);
  h.bytes += "FB";
  h.u16(padding);
  h.bytes.append(padding, 'Z');
  file_->write(h.bytes);
  entries_.push_back({std::move(name), at, file_->position(), bytes, 0});
}

void ZipWriter::add(const uint8_t* data, size_t bytes) {
  entries_.back().crc = libdeflate_crc32(entries_.back().crc, data, bytes);
  file_->write(data, bytes);
}

void ZipWriter::add(const uint8_t* data, size_t bytes, const std::function<void(const uint8_t*, size_t)>& also) {
  uint32_t& crc = entries_.back().crc;
  file_->write_beside(data, bytes, [&](const uint8_t* p, size_t n) {
    crc = libdeflate_crc32(crc, p, n);
    also(p, n);
  });
}

uint32_t ZipWriter::end() {
  const Entry& e = entries_.back();
  FI_CHECK(file_->position() - e.data_offset == e.bytes, InternalError, "zip entry ", e.name, " was announced with ",
           e.bytes, " bytes, but got ", file_->position() - e.data_offset);
  Out d;
  d.u32(0x08074b50).u32(e.crc);
  e.bytes >= kMax32 ? d.u64(e.bytes).u64(e.bytes) : d.u32(e.bytes).u32(e.bytes);
  file_->write(d.bytes);
  return e.crc;
}

void ZipWriter::entry(std::string name, std::string_view content) {
  begin(std::move(name), content.size());
  add(reinterpret_cast<const uint8_t*>(content.data()), content.size());
  end();
}

void ZipWriter::finish() {
  const uint64_t start = file_->position();
  for (const Entry& e : entries_) {
    const bool large = e.bytes >= kMax32, far = e.header_offset >= kMax32;
    Out extra;
    if (large) extra.u64(e.bytes).u64(e.bytes);
    if (far) extra.u64(e.header_offset);
    Out h;
    h.u32(0x02014b50).u16(large || far ? 45 : 0).u16(large || far ? 45 : 0).u16(kFlags).u16(0).u16(0).u16(0);
    h.u32(e.crc).u32(large ? kMax32 : e.bytes).u32(large ? kMax32 : e.bytes).u16(e.name.size());
    h.u16(extra.bytes.empty() ? 0 : 4 + extra.bytes.size()).u16(0).u16(0).u16(0).u32(0);
    h.u32(far ? kMax32 : e.header_offset);
    h.bytes += e.name;
    if (!extra.bytes.empty()) {
      h.u16(1).u16(extra.bytes.size());
      h.bytes += extra.bytes;
    }
    file_->write(h.bytes);
  }
  const uint64_t end = file_->position(), size = end - start, n = entries_.size();
  Out t;
  t.u32(0x06064b50).u64(44).u16(45).u16(45).u32(0).u32(0).u64(n).u64(n).u64(size).u64(start);
  t.u32(0x07064b50).u32(0).u64(end).u32(1);
  t.u32(0x06054b50).u16(0).u16(0).u16(std::min<uint64_t>(n, 0xffff)).u16(std::min<uint64_t>(n, 0xffff));
  t.u32(std::min<uint64_t>(size, kMax32)).u32(std::min<uint64_t>(start, kMax32)).u16(0);
  file_->write(t.bytes);
}

}  // namespace flashinfer::formats
