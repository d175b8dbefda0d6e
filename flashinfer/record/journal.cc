// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/record/journal.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <set>

#include "flashinfer/core/check.h"
#include "flashinfer/core/fs.h"
#include "flashinfer/formats/file.h"
#include "flashinfer/formats/json.h"
#include "flashinfer/record/format.h"

namespace flashinfer::record {
namespace {

/// A locked file; reopened if drop_lines replaced the file while we waited for the lock.
class LockedFile {
 public:
  LockedFile(const std::string& path, int flags, int lock) {
    for (int attempt = 0; attempt < 100; ++attempt) {
      fd_ = ::open(path.c_str(), flags | O_CLOEXEC | O_NOFOLLOW, 0600);
      FI_CHECK(fd_ >= 0, RuntimeError, "cannot open ", path, ": ", std::strerror(errno));
      struct stat opened, current;
      if (::flock(fd_, lock) != 0) return;  // a file system without locks
      if (::fstat(fd_, &opened) == 0 && ::stat(path.c_str(), &current) == 0 && opened.st_ino == current.st_ino) return;
      let_go();
    }
    throw RuntimeError(str("cannot lock ", path));
  }
  ~LockedFile() { let_go(); }
  LockedFile(const LockedFile&) = delete;
  LockedFile& operator=(const LockedFile&) = delete;
  int fd() const { return fd_; }

 private:
  void let_go() {
    ::flock(fd_, LOCK_UN);  // closing is not enough: a child forked meanwhile holds the same open file, and would wait
                            // for itself
    ::close(fd_);
  }
  int fd_ = -1;
};

/// True when the last line has no line end: a writer died or ran out of disk space.
bool torn(int fd) {
  struct stat st;
  char last = '\n';
  return ::fstat(fd, &st) == 0 && st.st_size > 0 && ::pread(fd, &last, 1, st.st_size - 1) == 1 && last != '\n';
}

}  // namespace

namespace {
void append(int fd, const std::string& path, std::string_view line) {
  const formats::FileSizeLimit limit;
  ssize_t n;
  do n = ::write(fd, line.data(), line.size());
  while (n < 0 && errno == EINTR);
  if (n == static_cast<ssize_t>(line.size())) return;
  const int error = n < 0 ? errno : ENOSPC;
  throw RuntimeError(str("cannot write ", path, ": ", std::strerror(error)));
}
}  // namespace

void append_line(const std::string& path, std::string_view line) {
  constexpr int kFlags = O_RDWR | O_CREAT | O_APPEND;
  {
    const LockedFile file(path, kFlags, LOCK_SH);
    if (!torn(file.fd())) return append(file.fd(), path, line);
  }
  // Either torn, or another thread is writing: only the lock tells.
  const LockedFile file(path, kFlags, LOCK_EX);
  append(file.fd(), path, torn(file.fd()) ? "\n" + std::string(line) : std::string(line));
}

void drop_lines(const std::string& path, const std::vector<std::string>& dump_dirs) try {
  const std::set<std::string> gone(dump_dirs.begin(), dump_dirs.end());
  const LockedFile file(path, O_RDONLY, LOCK_EX);
  const auto text = fs::read_file(path);
  if (!text) return;
  std::string kept;
  for (size_t begin = 0; begin < text->size();) {
    size_t end = text->find('\n', begin);
    end = end == text->npos ? text->size() : end + 1;
    const std::string_view line(text->data() + begin, end - begin);
    begin = end;
    std::string dir;
    try {
      dir = formats::parse_json(line).at(kDumpDir).get<std::string>();
    } catch (const std::exception&) {  // torn: kept as it is
    }
    if (dir.empty() || !gone.contains(dir)) kept += line;
  }
  formats::FileWriter out(path);
  out.write(kept);
  out.commit();
} catch (const std::exception&) {
}

}  // namespace flashinfer::record
