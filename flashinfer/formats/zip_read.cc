// SPDX-License-Identifier: Apache-2.0
#include <libdeflate.h>

#include <algorithm>

#include "flashinfer/core/check.h"
#include "flashinfer/formats/zip.h"

namespace flashinfer::formats {
namespace {

constexpr uint32_t kMax32 = 0xffffffffu;

/// Little-endian fields of a byte range; reading past its end is an error that names the structure.
class Fields {
 public:
  Fields(Bytes bytes, const char* what) : bytes_(bytes), what_(what) {}
  uint64_t u(int n) {
    need(static_cast<size_t>(n));
    uint64_t v = 0;
    for (int i = 0; i < n; ++i) v |= static_cast<uint64_t>(bytes_[static_cast<size_t>(i)]) << (8 * i);
    bytes_ = bytes_.subspan(static_cast<size_t>(n));
    return v;
  }
  Bytes take(size_t n) {
    need(n);
    const Bytes r = bytes_.first(n);
    bytes_ = bytes_.subspan(n);
    return r;
  }
  size_t left() const { return bytes_.size(); }

 private:
  void need(size_t n) const { FI_CHECK(bytes_.size() >= n, ValueError, "zip: the ", what_, " is cut off"); }
  Bytes bytes_;
  const char* what_;
};

Bytes sub(Bytes archive, uint64_t offset, const char* what) {
  FI_CHECK(offset <= archive.size(), ValueError, "zip: the ", what, " is said to be at ", offset, " of ",
           archive.size(), " bytes");
  return archive.subspan(offset);
}

uint32_t signature(Bytes archive, size_t at) {
  return archive[at] | archive[at + 1] << 8 | archive[at + 2] << 16 | static_cast<uint32_t>(archive[at + 3]) << 24;
}

struct Directory {
  uint64_t count, size, offset;
  uint64_t end;  // where the directory's own trailer begins
};

Directory find_directory(Bytes a) {
  FI_CHECK(a.size() >= 22, ValueError, "zip: ", a.size(), " bytes are no archive");
  const size_t lowest = a.size() > 22 + 0xffff ? a.size() - 22 - 0xffff : 0;
  size_t at = a.size() - 22;
  while (signature(a, at) != 0x06054b50) {
    FI_CHECK(at > lowest, ValueError, "zip: no end of central directory; the file is cut off or is no archive");
    --at;
  }
  Fields f(a.subspan(at + 4), "end record");
  FI_CHECK(f.u(2) == 0 && f.u(2) == 0, ValueError, "zip: archives of several parts are not read");
  f.u(2);
  Directory d{f.u(2), f.u(4), f.u(4), at};
  if (at >= 20 && signature(a, at - 20) == 0x07064b50) {
    Fields locator(a.subspan(at - 16), "zip64 locator");
    locator.u(4);
    const uint64_t offset = locator.u(8);
    Fields end(sub(a, offset, "zip64 end record"), "zip64 end record");
    FI_CHECK(end.u(4) == 0x06064b50, ValueError, "zip: no zip64 end record at ", offset);
    end.take(8 + 2 + 2 + 4 + 4 + 8);
    d = {end.u(8), end.u(8), end.u(8), offset};
  }
  FI_CHECK(d.size <= d.end && d.offset <= d.end - d.size, ValueError, "zip: the central directory (", d.size,
           " bytes at ", d.offset, ") lies outside the archive");
  FI_CHECK(d.count <= d.size / 46, ValueError, "zip: ", d.count, " entries cannot be in a directory of ", d.size,
           " bytes");
  return d;
}

void check_name(const std::string& name) {
  FI_CHECK(!name.empty() && name[0] != '/' && name.find('\\') == name.npos && name.find('\0') == name.npos, ValueError,
           "zip: the entry name \"", name, "\" is not relative");
  for (size_t begin = 0; begin <= name.size();) {
    const size_t end = std::min(name.find('/', begin), name.size());
    FI_CHECK(name.compare(begin, end - begin, "..") != 0, ValueError, "zip: the entry name \"", name,
             "\" leaves the archive");
    begin = end + 1;
  }
}

struct Record {
  std::string name;
  uint64_t bytes, header;
  uint32_t crc;
};

Record read_record(Fields& f) {
  FI_CHECK(f.u(4) == 0x02014b50, ValueError, "zip: a central directory entry has the wrong signature");
  f.take(4);
  const uint64_t flags = f.u(2), method = f.u(2);
  f.take(4);
  Record r;
  r.crc = static_cast<uint32_t>(f.u(4));
  uint64_t packed = f.u(4);
  r.bytes = f.u(4);
  const size_t name = f.u(2), extra = f.u(2), comment = f.u(2);
  f.take(8);
  r.header = f.u(4);
  const Bytes text = f.take(name);
  r.name.assign(text.begin(), text.end());
  check_name(r.name);
  Fields x(f.take(extra), "extra field");
  f.take(comment);
  while (x.left() >= 4) {
    const uint64_t id = x.u(2);
    Fields body(x.take(x.u(2)), "extra field");
    if (id != 1) continue;
    if (r.bytes == kMax32) r.bytes = body.u(8);
    if (packed == kMax32) packed = body.u(8);
    if (r.header == kMax32) r.header = body.u(8);
  }
  FI_CHECK((flags & 1) == 0, ValueError, "zip: ", r.name, " is encrypted");
  FI_CHECK(method == 0 && packed == r.bytes, ValueError, "zip: ", r.name, " is compressed (method ", method,
           "), but torch.save stores");
  return r;
}

Bytes locate(Bytes archive, const Record& r, uint64_t limit) {
  Fields f(sub(archive, r.header, "local header"), "local header");
  FI_CHECK(f.u(4) == 0x04034b50, ValueError, "zip: no local header of ", r.name, " at ", r.header);
  f.take(4);
  const uint64_t method = f.u(2);
  f.take(4 + 4 + 8);
  const size_t name = f.u(2), extra = f.u(2);
  const Bytes text = f.take(name);
  FI_CHECK(method == 0 && std::equal(text.begin(), text.end(), r.name.begin(), r.name.end()), ValueError,
           "zip: the local header at ", r.header, " does not belong to ", r.name);
  f.take(extra);
  const uint64_t begin = archive.size() - f.left();
  FI_CHECK(begin <= limit && r.bytes <= limit - begin, ValueError, "zip: ", r.name, " (", r.bytes, " bytes at ", begin,
           ") reaches beyond the archive's data");
  return archive.subspan(begin, r.bytes);
}

}  // namespace

ZipReader::ZipReader(Bytes archive) {
  const Directory d = find_directory(archive);
  Fields f(archive.subspan(d.offset, d.size), "central directory");
  struct Range {
    uint64_t begin, end;
    const std::string* name;
  };
  std::vector<Range> ranges;
  for (uint64_t i = 0; i < d.count; ++i) {
    const Record r = read_record(f);
    const Bytes data = locate(archive, r, d.offset);
    const auto [it, fresh] = entries_.emplace(r.name, Entry{data, r.crc});
    FI_CHECK(fresh, ValueError, "zip: ", r.name, " is there twice");
    ranges.push_back({r.header, static_cast<uint64_t>(data.data() - archive.data()) + r.bytes, &it->first});
  }
  std::ranges::sort(ranges, {}, &Range::begin);
  for (size_t i = 1; i < ranges.size(); ++i)
    FI_CHECK(ranges[i - 1].end <= ranges[i].begin, ValueError, "zip: ", *ranges[i - 1].name, " and ", *ranges[i].name,
             " share bytes");
}

const ZipReader::Entry* ZipReader::find(std::string_view name) const {
  const auto it = entries_.find(name);
  return it == entries_.end() ? nullptr : &it->second;
}

void ZipReader::verify(std::string_view name, const Entry& e) {
  const uint32_t crc = libdeflate_crc32(0, e.data.data(), e.data.size());
  FI_CHECK(crc == e.crc, ValueError, "zip: ", name, " has CRC32 ", std::hex, crc, ", but the archive records ", e.crc,
           ": the bytes were changed");
}

}  // namespace flashinfer::formats
