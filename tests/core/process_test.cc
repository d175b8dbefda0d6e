// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/core/process.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>

namespace flashinfer::process {
namespace {

TEST(Process, CollectsOutputAndExitCode) {
  const Result r = run({"sh", "-c", "echo out; echo err >&2; pwd; cat; exit 3"}, {.cwd = "/"});
  EXPECT_EQ(r.exit_code, 3);
  EXPECT_EQ(r.output, "out\nerr\n/\n");  // stdin is empty
  EXPECT_FALSE(r.ok());
  EXPECT_TRUE(run({"true"}).ok());
}

TEST(Process, NoShellComesBetween) { EXPECT_EQ(run({"echo", "$HOME;", "a  b", "*"}).output, "$HOME; a  b *\n"); }

TEST(Process, AShellChangesTheFolderWherePosixSpawnCannot) {
  EXPECT_EQ(run(through_shell({"sh", "-c", "pwd; echo \"$1\"", "-", "a  $b"}, "/usr/bin")).output, "/usr/bin\na  $b\n");
  EXPECT_FALSE(run(through_shell({"true"}, "/no such folder")).ok());
}

TEST(Process, WhatCannotBeStartedAndWhatIsKilled) {
  const Result none = run({"/no/such/program"});
  EXPECT_EQ(none.exit_code, 127);
  EXPECT_NE(none.output.find("No such file"), std::string::npos);
  EXPECT_EQ(run({}).exit_code, 127);
  EXPECT_EQ(run({"sh", "-c", "kill -9 $$"}).exit_code, 128 + 9);
}

TEST(Process, ATimeoutEndsTheWholeGroup) {
  const auto start = std::chrono::steady_clock::now();
  int slow = 0;
  const Result r = run({"sh", "-c", "sleep 30 & sleep 30"},
                       {.timeout_seconds = 0.3, .slow_after_seconds = 0.1, .on_slow = [&] { ++slow; }});
  EXPECT_TRUE(r.timed_out);
  EXPECT_FALSE(r.ok());
  EXPECT_EQ(slow, 1);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
}

TEST(Process, AStoppedProgramEndsWithItsGroup) {
  const auto start = std::chrono::steady_clock::now();
  int asked = 0;
  const Result r = run({"sh", "-c", "sleep 30 & sleep 30"}, {.stop = [&] { return ++asked > 3; }});
  EXPECT_TRUE(r.stopped);
  EXPECT_FALSE(r.timed_out || r.ok());
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
}

TEST(Process, SlownessIsReportedThoughTheTimeIsUp) {
  int slow = 0;
  const Result r =
      run({"sleep", "30"}, {.timeout_seconds = 0.05, .slow_after_seconds = 0.05, .on_slow = [&] { ++slow; }});
  EXPECT_TRUE(r.timed_out);
  EXPECT_EQ(slow, 1);
}

TEST(Process, LongOutputIsCutAndDoesNotBlock) {
  const Result r = run({"sh", "-c", "head -c 3000000 /dev/zero"});
  EXPECT_TRUE(r.ok());
  EXPECT_EQ(r.output.size(), size_t{1} << 20);
}

TEST(Process, ChildrenDoNotInheritIgnoredOrBlockedSignals) {
  sigset_t term, before;
  sigemptyset(&term);
  sigaddset(&term, SIGTERM);
  sigprocmask(SIG_BLOCK, &term, &before);
  const auto old = ::signal(SIGTERM, SIG_IGN);
  EXPECT_EQ(run({"sh", "-c", "kill -TERM $$; echo survived"}).exit_code, 128 + SIGTERM);
  ::signal(SIGTERM, old);
  sigprocmask(SIG_SETMASK, &before, nullptr);
}

TEST(Process, AHostThatReapsAllChildrenIsSurvived) {
  const auto old = ::signal(SIGCHLD, SIG_IGN);
  const Result r = run({"echo", "x"});
  ::signal(SIGCHLD, old);
  EXPECT_EQ(r.output, "x\n");
  EXPECT_TRUE(r.ok());
}

TEST(Process, AProgramLeftBehindDoesNotHoldUsUp) {
  const auto start = std::chrono::steady_clock::now();
  const Result r =
      run({"sh", "-c", "sleep 20 & echo done"});  // the sleeper keeps the output open, as a forked sibling would
  EXPECT_EQ(r.output, "done\n");
  EXPECT_TRUE(r.ok());
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
}

TEST(Process, WordsAndShellLinesRoundTrip) {
  const std::vector<std::string> words = {"g++", "-DA=\"x y\"", "it's", "", "$(rm)", "a\\b"};
  const Result r = run({"sh", "-c", "for w in " + shell_line(words) + "; do printf '[%s]' \"$w\"; done"});
  EXPECT_EQ(r.output, "[g++][-DA=\"x y\"][it's][][$(rm)][a\\b]");
  EXPECT_EQ(split_words("  ccache g++ -DA='x y' \"\" \t-O2 "),
            (std::vector<std::string>{"ccache", "g++", "-DA=x y", "", "-O2"}));
  EXPECT_TRUE(split_words(" ").empty());
}

TEST(Process, FindsExecutables) {
  EXPECT_EQ(find_executable("sh", "/nowhere:/bin"), "/bin/sh");
  EXPECT_EQ(find_executable("sh", "/nowhere"), "");
  EXPECT_EQ(find_executable("sh", ":bin"), "");
  EXPECT_EQ(find_executable("/bin/sh", ""), "/bin/sh");
  EXPECT_EQ(find_executable("/etc/passwd", ""), "");
  EXPECT_EQ(find_executable("", "/bin"), "");
}

}  // namespace
}  // namespace flashinfer::process
