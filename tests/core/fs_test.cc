// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/core/fs.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <thread>

#include "flashinfer/core/check.h"

namespace flashinfer::fs {
namespace {

class Fs : public ::testing::Test {
 protected:
  void SetUp() override { root_ = make_temp_dir(::testing::TempDir(), "fs-"); }
  void TearDown() override { EXPECT_TRUE(remove_tree(root_)); }
  mode_t mode(const std::string& path) {
    struct stat st{};
    EXPECT_EQ(::stat(path.c_str(), &st), 0);
    return st.st_mode & 07777;
  }
  std::string root_;
};

TEST_F(Fs, ReadsAndWritesWholeFiles) {
  const std::string text("a\0b\n", 4), path = root_ + "/f";
  EXPECT_FALSE(read_file(path));
  write_atomic(path, text);
  EXPECT_EQ(*read_file(path), text);
  EXPECT_EQ(mode(path), 0600u);
  write_atomic(path, "", 0700);
  EXPECT_EQ(*read_file(path), "");
  EXPECT_EQ(mode(path), 0700u);
  EXPECT_EQ(list_dir(root_), std::vector<std::string>{"f"});  // no temporary is left
  EXPECT_FALSE(read_file(root_));                             // a folder
  EXPECT_THROW(write_atomic(root_ + "/none/f", "x"), RuntimeError);
}

TEST_F(Fs, AFullDiskLeavesTheOldFile) {
  write_atomic(root_ + "/f", "old");
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{4, 4};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    try {
      write_atomic(root_ + "/f", "longer than four");
    } catch (const RuntimeError& e) {
      ::_exit(std::string(e.what()).find("File too large") != std::string::npos ? 0 : 2);
    }
    ::_exit(1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(*read_file(root_ + "/f"), "old");
  EXPECT_EQ(list_dir(root_).size(), 1u);
}

TEST_F(Fs, FoldersArePrivate) {
  const mode_t old = ::umask(0);
  make_dirs(root_ + "/a/b/c");
  ::umask(old);
  EXPECT_EQ(mode(root_ + "/a"), 0700u);
  EXPECT_EQ(mode(root_ + "/a/b/c"), 0700u);
  make_dirs(root_ + "/a/b");  // there already
  write_plain(root_ + "/file", "");
  EXPECT_THROW(make_dirs(root_ + "/file/x"), RuntimeError);
}

TEST_F(Fs, SaysWhyAFolderIsNotTrusted) {
  EXPECT_EQ(unsafe_folder(root_), "");
  EXPECT_EQ(unsafe_folder(root_ + "/none"), "");
  EXPECT_EQ(unsafe_folder("/"), "");  // root's
  ::chmod(root_.c_str(), 0720);
  EXPECT_EQ(unsafe_folder(root_), "others can write to " + root_ + " (chmod go-w it)");
  ::chmod(root_.c_str(), 0702);
  EXPECT_NE(unsafe_folder(root_), "");
  EXPECT_NE(unsafe_folder(root_, true), "");
  ::chmod(root_.c_str(), 01777);
  EXPECT_NE(unsafe_folder(root_), "");
  EXPECT_EQ(unsafe_folder(root_, true), "");  // as /tmp
}

TEST_F(Fs, OneHolderAtATime) {
  const std::string path = root_ + "/lock";
  int slow = 0;
  {
    const FileLock first(path);
    EXPECT_TRUE(first.held());
    const FileLock second(path, 1.2, [&] { ++slow; });
    EXPECT_FALSE(second.held());
  }
  EXPECT_EQ(slow, 1);
  EXPECT_TRUE(FileLock(path).held());
  EXPECT_FALSE(FileLock(root_ + "/none/lock").held());
}

TEST_F(Fs, ALockEndsThoughAForkedChildHasTheFile) {
  auto lock = std::make_unique<FileLock>(root_ + "/lock");
  const pid_t child = ::fork();
  if (child == 0) {
    ::pause();
    ::_exit(0);
  }
  lock.reset();
  EXPECT_TRUE(FileLock(root_ + "/lock", 0).held());
  ::kill(child, SIGKILL);
  int status = 0;
  ::waitpid(child, &status, 0);
}

TEST_F(Fs, TreesAreRemovedWithoutFollowingLinks) {
  make_dirs(root_ + "/tree/a");
  write_plain(root_ + "/kept", "x");
  ASSERT_EQ(::symlink((root_ + "/kept").c_str(), (root_ + "/tree/a/link").c_str()), 0);
  EXPECT_TRUE(remove_tree(root_ + "/tree"));
  EXPECT_TRUE(is_file(root_ + "/kept"));
  EXPECT_TRUE(remove_tree(root_ + "/tree"));
}

TEST_F(Fs, KnowsTheLibraryAFunctionIsIn) {
  const std::string library = object_of(reinterpret_cast<const void*>(&::getpagesize));
  EXPECT_NE(library.find("/libc."), std::string::npos) << library;
  EXPECT_EQ(library.front(), '/');
}

}  // namespace
}  // namespace flashinfer::fs
