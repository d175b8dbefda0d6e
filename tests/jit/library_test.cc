// SPDX-License-Identifier: Apache-2.0
#include "flashinfer/jit/library.h"

#include <dlfcn.h>

#include "flashinfer/core/check.h"
#include "flashinfer/jit/modules.h"
#include "tests/jit/sandbox.h"

namespace t {
namespace {

/// A source that includes a header beside it, in a folder whose name has a blank and a quote.
class Library : public Sandbox {
 protected:
  void SetUp() override {
    Sandbox::SetUp();
    fs::make_dirs(root_ + "/source");
    write("source/value.h", "#define VALUE 1\n");
    write("source/value.cc", "#include \"value.h\"\nextern \"C\" int value() { return VALUE; }\n");
    spec_ = {.name = "value", .sources = {root_ + "/source/value.cc"}, .cflags = {"-O1"}};
  }
  static int call(const jit::Artifact& a) {
    void* handle = ::dlopen(a.path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) throw std::runtime_error(::dlerror());
    return reinterpret_cast<int (*)()>(::dlsym(handle, "value"))();
  }
  jit::LibrarySpec spec_;
};

TEST_F(Library, IsCompiledOnceForEachStateOfItsFiles) {
  EXPECT_FALSE(jit::find_library(spec_));
  jit::Artifact a = jit::build_library(spec_, false);
  EXPECT_EQ(a.origin, "compiled");
  EXPECT_EQ(call(a), 1);
  EXPECT_EQ(compiler_runs(), 2) << "one source, one link";
  EXPECT_EQ(jit::build_library(spec_, false).origin, "disk");
  write("source/value.h", "#define VALUE 2\n");
  EXPECT_FALSE(jit::find_library(spec_));
  EXPECT_FALSE(jit::library_is_current(a.path.substr(0, a.path.rfind('/'))));
  EXPECT_EQ(call(jit::build_library(spec_, false)), 2);
  write("source/value.h", "#define VALUE 1\n");
  EXPECT_EQ(jit::find_library(spec_)->path, a.path);
  EXPECT_EQ(compiler_runs(), 4);
  spec_.cflags = {"-O2"};
  EXPECT_FALSE(jit::find_library(spec_));
  const auto modules = jit::module_statuses({});
  ASSERT_EQ(modules.size(), 1u) << "the one whose files are as they are now";
  EXPECT_EQ(modules[0].text, "value");
  EXPECT_EQ(jit::clear_cache(), 2);
}

TEST_F(Library, IsNotKeptWhenAFileChangedMeanwhile) {
  compiler("echo '#define VALUE 3' > \"" + root_ + "/source/value.h\"");
  try {
    jit::build_library(spec_, false);
    FAIL();
  } catch (const flashinfer::RuntimeError& e) {
    EXPECT_NE(e.message().find("value: its sources or headers keep changing"), std::string::npos) << e.message();
  }
  EXPECT_TRUE(jit::module_statuses({}).empty());
  compiler("");
  EXPECT_EQ(call(jit::build_library(spec_, false)), 3);
}

TEST_F(Library, ErrorsHoldOutputAndCommand) {
  write("source/value.cc", "int value( {");
  try {
    jit::build_library(spec_, false);
    FAIL();
  } catch (const flashinfer::RuntimeError& e) {
    EXPECT_TRUE(e.message().starts_with("jit: value: compiling ")) << e.message();
    EXPECT_NE(e.message().find("value.cc:1:"), std::string::npos) << e.message();
    EXPECT_NE(e.message().find("command: "), std::string::npos) << e.message();
  }
  set("FLASHINFER_DISABLE_JIT", "1");
  fresh();
  EXPECT_THROW(jit::build_library(spec_, false), flashinfer::RuntimeError);
  spec_.name = "../value";
  EXPECT_THROW(jit::build_library(spec_, false), flashinfer::ValueError);
}

TEST_F(Library, NinjaGetsQuotedCommands) {
  const std::string text = jit::library_ninja(spec_);
  std::string blank = root_;
  for (size_t i = 0; (i = blank.find(' ', i)) != std::string::npos; i += 2) blank.replace(i, 1, "$ ");
  EXPECT_NE(text.find("build value.o: compile_0 " + blank + "/source/value.cc\n"), std::string::npos) << text;
  EXPECT_NE(text.find("build value.so: link value.o\n"), std::string::npos) << text;
}

}  // namespace
}  // namespace t
