// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/jit/cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "flashinfer/core/check.h"
#include "flashinfer/core/process.h"
#include "flashinfer/jit/source.h"
#include "flashinfer/jit/winners.h"
#include "tests/jit/sandbox.h"

namespace t {
namespace {

class Cache : public Sandbox {
 protected:
  /// Requests the kernel as a new process would; whether the compiler ran.
  bool compiles_again(int64_t want = 1043) {
    fresh();
    const int64_t before = compiler_runs();
    EXPECT_EQ(sum(3, 4), want);
    return compiler_runs() != before;
  }
};

TEST_F(Cache, AnArtifactsFolderIsWholeAndPrivate) {
  sum(3, 4);
  ASSERT_EQ(artifacts().size(), 1u);
  const std::string dir = artifacts()[0];
  EXPECT_EQ(fs::list_dir(dir), (std::vector<std::string>{"compile_command.sh", "compile_command.txt", "kernel.cc",
                                                         "kernel.so", "meta.json"}));
  for (const std::string& f : {dir, folder(), root_ + "/workspace/.cache/flashinfer"}) {
    struct stat st{};
    ASSERT_EQ(::stat(f.c_str(), &st), 0);
    EXPECT_EQ(st.st_mode & 0777, 0700u) << f;
  }
  const auto meta = jit::read_artifact(dir);
  ASSERT_TRUE(meta);
  EXPECT_EQ(meta->name + meta->config, "t.sum{a=3,b=4}");
  EXPECT_EQ(*fs::read_file(dir + "/kernel.cc"),
            "// t.sum{a=3,b=4}\n#include \"t/sum.h\"\n\nusing Config = t::Config;\n"
            "extern \"C\" __attribute__((visibility(\"default\"))) void flashinfer_kernel(const void* params, int64_t "
            "task) {\n"
            "  t::sum<Config{.a = decltype(Config::a)(3), .b = decltype(Config::b)(4)}>(\n"
            "      *static_cast<const t::Params*>(params), task);\n}\n");
}

TEST_F(Cache, ParametersThatChangedAfterTheLibraryWasBuiltAreNamed) {
  const std::string library = root_ + "/lib.so", params = root_ + "/t/params.h", kernel = root_ + "/t/kernel.h";
  fs::make_dirs(root_ + "/t");
  for (const std::string& file : {library, params, kernel}) fs::write_plain(file, "#include \"t/params.h\"\n");
  const auto touch = [](const std::string& file, time_t seconds) {
    const timespec times[2] = {{seconds, 0}, {seconds, 0}};
    ASSERT_EQ(utimensat(AT_FDCWD, file.c_str(), times, 0), 0);
  };
  touch(library, 2000), touch(params, 1000), touch(kernel, 3000);  // an edited kernel is compiled anew
  EXPECT_EQ(jit::changed_params(root_, "t/kernel.h", library), "");
  touch(params, 3000);
  EXPECT_EQ(jit::changed_params(root_, "t/kernel.h", library), params);
}

TEST_F(Cache, ThePastedCommandBuildsTheSameBytes) {
  sum(3, 4);
  const std::string dir = artifacts().at(0), so = dir + "/kernel.so";
  const std::string bytes = *fs::read_file(so);
  const std::vector<std::vector<std::string>> ways = {{dir + "/compile_command.sh"},
                                                      {"sh", "-c", *fs::read_file(dir + "/compile_command.txt")}};
  for (const auto& way : ways) {
    ASSERT_EQ(::unlink(so.c_str()), 0);
    const auto result = flashinfer::process::run(way, {.cwd = "/"});
    ASSERT_TRUE(result.ok()) << result.output;
    EXPECT_EQ(*fs::read_file(so), bytes);
  }
  EXPECT_FALSE(compiles_again());
}

TEST_F(Cache, DamagedArtifactsAreBuiltAnew) {
  sum(3, 4);
  const std::string dir = artifacts().at(0), so = *fs::read_file(dir + "/kernel.so"),
                    meta = *fs::read_file(dir + "/meta.json");
  std::string flipped = so;
  flipped[so.size() / 2] = static_cast<char>(flipped[so.size() / 2] ^ 1);
  const std::pair<const char*, std::string> damages[] = {{"kernel.so", so.substr(0, so.size() / 2)},
                                                         {"kernel.so", ""},
                                                         {"kernel.so", flipped},
                                                         {"kernel.so", so + "x"},
                                                         {"meta.json", meta.substr(0, meta.size() / 2)},
                                                         {"meta.json", ""},
                                                         {"meta.json", "[]"}};
  EXPECT_FALSE(compiles_again());
  for (const auto& [file, bytes] : damages) {
    fs::write_atomic(dir + "/" + file, bytes, 0700);  // a new file: the old one may be mapped
    EXPECT_TRUE(compiles_again()) << file << " of " << bytes.size() << " bytes was believed";
    EXPECT_EQ(*fs::read_file(dir + "/kernel.so"), so);
    EXPECT_FALSE(compiles_again());
  }
  ::unlink((dir + "/kernel.so").c_str());
  EXPECT_TRUE(compiles_again());
  ASSERT_TRUE(fs::remove_tree(dir));
  fs::write_plain(dir, "a file where the folder should be");
  EXPECT_TRUE(compiles_again());
  EXPECT_FALSE(compiles_again());
}

TEST_F(Cache, AnArtifactThatVerifiesButDoesNotLoadIsBuiltAnew) {
  // Made by a child: the loader remembers by path what this process has open.
  const pid_t child = ::fork();
  if (child == 0) ::_exit(sum(3, 4) == 1043 ? 0 : 1);
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  const std::string dir = artifacts().at(0), junk = "whole, but not an ELF file";
  auto meta = *jit::read_artifact(dir);
  meta.bytes = junk.size();
  meta.checksum = jit::hash_hex(junk);
  fs::write_atomic(dir + "/kernel.so", junk, 0700);
  fs::write_atomic(dir + "/meta.json", jit::to_json(meta));
  ASSERT_TRUE(jit::read_artifact(dir));
  EXPECT_TRUE(compiles_again());
  EXPECT_FALSE(compiles_again());
}

TEST_F(Cache, TheKeyFollowsContentNotTime) {
  EXPECT_TRUE(compiles_again());
  write("include/t/sum.h", kHeader);  // touched, same bytes
  EXPECT_FALSE(compiles_again());
  write("include/t/deeper/more.h", "constexpr int kValue = 2;\n");  // two includes down
  EXPECT_TRUE(compiles_again(2043));
  write("include/t/deeper/more.h", "constexpr int kValue = 1;\n");
  EXPECT_FALSE(compiles_again()) << "the first artifact is still there";
  EXPECT_EQ(artifacts().size(), 2u);
}

TEST_F(Cache, AHeaderSavedDuringTheCompileIsCompiledAgain) {
  // The compiler of this test changes the header once, before it reads it: the key was made from the old one.
  const std::string more = root_ + "/include/t/deeper/more.h", once = root_ + "/once";
  compiler("[ -e \"" + once + "\" ] || { : > \"" + once + "\"; echo 'constexpr int kValue = 5;' > \"" + more + "\"; }");
  EXPECT_TRUE(compiles_again(5043));
  EXPECT_EQ(compiler_runs(), 2);
  EXPECT_EQ(artifacts().size(), 1u);
  EXPECT_FALSE(compiles_again(5043));
  write("include/t/deeper/more.h", "constexpr int kValue = 1;\n");
  EXPECT_TRUE(compiles_again(1043)) << "what was made from the new header went under the old one's key";
}

TEST_F(Cache, TheKeyHoldsCompilerAndFlags) {
  sum(3, 4);
  set("FLASHINFER_EXTRA_CFLAGS", "-DEXTRA=5");
  EXPECT_TRUE(compiles_again(1048));
  unset("FLASHINFER_EXTRA_CFLAGS");
  EXPECT_FALSE(compiles_again());
  compiler("# another compiler");
  EXPECT_TRUE(compiles_again());
  set("FLASHINFER_EXTRA_LDFLAGS", "-Wl,-O1");
  EXPECT_TRUE(compiles_again());
}

TEST_F(Cache, ProcessesThatMissTogetherCompileOnce) {
  compiler("sleep 0.3");
  fresh();
  std::vector<pid_t> children;
  for (int i = 0; i < 4; ++i) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::alarm(60);
      ::_exit(sum(3, 4) == 1043 ? 0 : 1);
    }
    children.push_back(pid);
  }
  for (const pid_t pid : children) {
    int status = -1;
    ASSERT_EQ(::waitpid(pid, &status, 0), pid);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(compiler_runs(), 1);
  EXPECT_EQ(artifacts().size(), 1u);
}

TEST_F(Cache, TheLoserOfARaceKeepsTheWinnersWork) {
  sum(3, 4);
  const std::string dir = artifacts().at(0);
  const std::string late = fs::make_temp_dir(folder(), ".build-");
  fs::write_plain(late + "/kernel.cc", "late");
  jit::publish(late, dir);  // no lock: as where the file system has none
  EXPECT_FALSE(fs::is_dir(late));
  EXPECT_NE(*fs::read_file(dir + "/kernel.cc"), "late");
  EXPECT_FALSE(compiles_again());
}

TEST_F(Cache, AFolderThatOthersCanWriteIsNotUsed) {
  sum(3, 4);
  const std::string cache = root_ + "/workspace/.cache/flashinfer";
  for (const std::string& f : {folder(), cache, root_ + "/workspace"}) {
    for (const mode_t mode : {0777, 0720}) {
      if (mode == 0720 && f == root_ + "/workspace") continue;
      ASSERT_EQ(::chmod(f.c_str(), mode), 0);
      ::testing::internal::CaptureStderr();
      EXPECT_TRUE(compiles_again()) << f;
      const std::string warning = ::testing::internal::GetCapturedStderr();
      EXPECT_NE(warning.find("warning: the kernel cache is not used: others can write to " + f), std::string::npos)
          << warning;
      const std::string used = jit::modules().at(0).path;
      EXPECT_FALSE(used.starts_with(root_ + "/workspace")) << used;
      struct stat st{};
      ASSERT_EQ(::stat(used.substr(0, used.rfind("/native/")).c_str(), &st), 0);
      EXPECT_EQ(st.st_mode & 0777, 0700u);
      fs::remove_tree(used.substr(0, used.rfind('/')));  // or the next round would find it
      ASSERT_EQ(::chmod(f.c_str(), 0700), 0);
    }
  }
  EXPECT_FALSE(compiles_again());
}

TEST_F(Cache, AFolderOfAnotherUserIsNotUsed) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a folder to another user";
  sum(3, 4);
  ASSERT_EQ(::chown(folder().c_str(), 12345, 12345), 0);
  ::testing::internal::CaptureStderr();
  EXPECT_TRUE(compiles_again());
  EXPECT_NE(::testing::internal::GetCapturedStderr().find(folder() + " belongs to user 12345"), std::string::npos);
  const std::string used = jit::modules().at(0).path;
  fs::remove_tree(used.substr(0, used.rfind('/')));
}

TEST_F(Cache, NoPlaceToWriteIsNoReasonToFail) {
  write("file", "");
  set("FLASHINFER_WORKSPACE_BASE", root_ + "/file/below");  // cannot be made, not even by root
  ::testing::internal::CaptureStderr();
  EXPECT_TRUE(compiles_again());
  EXPECT_NE(::testing::internal::GetCapturedStderr().find("compiling into a temporary folder"), std::string::npos);
  const std::string used = jit::modules().at(0).path;
  fs::remove_tree(used.substr(0, used.rfind('/')));
}

TEST_F(Cache, ClearingRemovesOnlyArtifacts) {
  sum(3, 4);
  sum(5, 6);
  EXPECT_THROW(jit::cpu_kernel<kSum>(Config{100, 0}), flashinfer::RuntimeError);
  const std::string other = root_ + "/workspace/.cache/flashinfer/9.9/80_90a/cached_ops";
  fs::make_dirs(other);
  jit::keep_winner({{"gpu", "one"}}, "t", "key", "2");
  EXPECT_EQ(jit::find_winner({{"gpu", "one"}}, "t", "key"), "2");
  EXPECT_EQ(jit::find_winner({{"gpu", "two"}}, "t", "key"), std::nullopt);
  EXPECT_EQ(jit::clear_cache(), 2);
  EXPECT_EQ(jit::find_winner({{"gpu", "one"}}, "t", "key"), std::nullopt);
  EXPECT_TRUE(fs::is_dir(other));
  EXPECT_FALSE(fs::is_dir(folder()));
  EXPECT_TRUE(compiles_again());
  ASSERT_EQ(::chmod((root_ + "/workspace/.cache/flashinfer").c_str(), 0777), 0);
  EXPECT_THROW(jit::clear_cache(), flashinfer::RuntimeError);
}

TEST(Meta, JsonRoundTripAndErrors) {
  jit::Meta m;
  m.name = "t.sum";
  m.config = "{a=1}";
  m.arguments = {"g++", "a \"b\"", "\xff"};
  m.bytes = 7;
  m.seconds = 0.5;
  const auto back = jit::parse_meta(jit::to_json(m));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->config, "{a=1}");
  EXPECT_EQ(back->arguments[1], "a \"b\"");
  EXPECT_EQ(back->bytes, 7u);
  for (const char* bad : {"", "{", "null", "[]", "{}", "{\"name\": 3}"}) EXPECT_FALSE(jit::parse_meta(bad)) << bad;
}

}  // namespace
}  // namespace t
