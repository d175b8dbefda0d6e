# SPDX-License-Identifier: Apache-2.0
"""`cmake --install` to a prefix: what it holds, a program that uses it (find_package, the README's C++ example), the command.

The prefix is moved before use, the build folder's libraries are out of reach, the JIT finds its headers in the prefix."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import types
import unittest
import unittest.mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ["FLASHINFER_BUILD_DIR"])

CMAKE_LISTS = """cmake_minimum_required(VERSION 3.22)
project(consumer LANGUAGES C CXX)
find_package(flashinfer 0.1 REQUIRED)
add_executable(snippet snippet.cc)
target_link_libraries(snippet PRIVATE flashinfer::flashinfer)
add_executable(from_c from_c.c)
target_link_libraries(from_c PRIVATE flashinfer::flashinfer m)
add_library(all_headers OBJECT all_headers.cc)
target_link_libraries(all_headers PRIVATE flashinfer::flashinfer)
"""
INCLUDE = re.compile(r'^\s*#\s*include\s*["<](flashinfer/[^">]+)', re.M)
WITHOUT_FUNCTIONS = {f"flashinfer/core/{name}.h" for name in ("cuda_launch", "dlpack", "int_math", "scalar")}  # that are not inline
SHOWN = re.compile(r"^#pragma GCC visibility push\(default\)\n.*^#pragma GCC visibility pop\n", re.M | re.S)  # to programs: cmake/options.cmake
PRIVATE = re.compile(r"(_tables|/checks|launch|/ref|_ref|cases|params|/cuda|_cuda)\.h$|/record/(?!record)|/cli/|/kernels/")


def readme_snippet():
    """The first C++ block of the README."""
    blocks = re.findall(r"^```cpp\n(.*?)^```", (ROOT / "README.md").read_text(), re.M | re.S)
    return blocks[0]


def headers_in(folder):
    """Names of the headers below, as they are included."""
    return {str(p.relative_to(folder)) for p in folder.rglob("*") if p.suffix in (".h", ".cuh")}


def headers_in_examples():
    """The library's headers that examples and the C++ and C blocks of the documentation include."""
    texts = [p.read_text() for p in (ROOT / "examples").rglob("*") if p.suffix in (".cc", ".c", ".h")]
    for page in (ROOT / "README.md", *(ROOT / "docs").glob("*.md")):
        texts += re.findall(r"^```c(?:pp)?\n(.*?)^```", page.read_text(), re.M | re.S)
    return {name for text in texts for name in INCLUDE.findall(text)}


def run(*command, **options):
    done = subprocess.run(command, capture_output=True, text=True, **options)
    if done.returncode != 0:
        sys.stderr.write(done.stdout + done.stderr)
    return done


class Install(unittest.TestCase):
    def check_headers(self, prefix):
        """Programs get the public headers and what these include, the JIT the kernels'; nothing else is installed."""
        public, kernels = headers_in(prefix / "include"), headers_in(prefix / "share/flashinfer/include")
        source = headers_in(ROOT)
        self.assertLessEqual(headers_in_examples(), public)
        for root, names in ((prefix / "include", public), (prefix / "share/flashinfer/include", kernels)):
            included = {i for name in names for i in INCLUDE.findall((root / name).read_text())}
            self.assertLessEqual(included, names)
        private = {name for name in source if PRIVATE.search(name)} - {"flashinfer/jit/cuda.h", "flashinfer/core/cuda_launch.h", "flashinfer/comm/launch.h"}
        self.assertGreater(len(private), 100)
        self.assertEqual(set(), public & private)
        texts = {name: (prefix / "include" / name).read_text() for name in public - WITHOUT_FUNCTIONS}
        self.assertEqual([], [name for name, text in texts.items() if re.search(r"^(namespace|extern)", text, re.M) and not SHOWN.search(text)])
        self.assertIn("flashinfer/ops/norm/kernels/cpu/norm.h", kernels)
        self.assertEqual({"flashinfer/core/int_math.h", "flashinfer/core/scalar.h"}, {name for name in kernels if "/kernels/" not in name})
        emulator = {name for name in kernels if name.startswith("flashinfer/kernels/emu/")}
        self.assertEqual({f"flashinfer/kernels/emu/{n}.h" for n in ("api", "guarded_hooks", "hooks", "system")}, emulator)
        for name in ("LICENSE", "NOTICE"):
            self.assertEqual((ROOT / name).read_text(), (prefix / "share/doc/flashinfer" / name).read_text())
        return "".join(f"#include <{name}>\n" for name in sorted(public))

    def test_a_consumer_builds_and_runs(self):
        with tempfile.TemporaryDirectory() as folder:
            temporary = pathlib.Path(folder)
            self.assertEqual(0, run("cmake", "--install", str(BUILD), "--prefix", str(temporary / "first")).returncode)
            prefix = temporary / "moved"
            (temporary / "first").rename(prefix)
            all_headers = self.check_headers(prefix)
            consumer = temporary / "consumer"
            consumer.mkdir()
            (consumer / "CMakeLists.txt").write_text(CMAKE_LISTS)
            (consumer / "snippet.cc").write_text(readme_snippet())
            (consumer / "all_headers.cc").write_text(all_headers)
            (consumer / "from_c.c").write_text((ROOT / "examples/c/main.c").read_text())
            self.assertEqual(0, run("cmake", "-S", str(consumer), "-B", str(consumer / "build"), "-DCMAKE_BUILD_TYPE=Release",
                                    f"-DCMAKE_PREFIX_PATH={prefix}").returncode)
            self.assertEqual(0, run("cmake", "--build", str(consumer / "build")).returncode)
            environment = {"PATH": os.environ["PATH"], "HOME": folder, "FLASHINFER_WORKSPACE_BASE": folder,
                           "FLASHINFER_JIT_VERBOSE": "1"}
            done = run(str(consumer / "build/snippet"), env=environment)
            self.assertEqual(0, done.returncode)
            self.assertEqual("y[0] = 0.5000\n", done.stdout)
            self.assertNotIn(str(ROOT), done.stdout + done.stderr)  # nothing came from the source tree
            self.assertIn(str(prefix / "share/flashinfer/include"), done.stderr)  # where the kernel was compiled from
            self.assertEqual(0, run(str(consumer / "build/from_c"), env=environment).returncode)
            # With precompiled kernels next to the library nothing is compiled.
            libraries = next(prefix.rglob("libflashinfer.so")).parent
            self.assertEqual(0, run(str(prefix / "bin/flashinfer"), "aot", "--op", "rmsnorm", "--quiet", "--target", "x86-64-v3",
                                    "--all", "--out-dir", str(libraries / "flashinfer/aot"), env=environment).returncode)
            ahead = run(str(consumer / "build/snippet"), env={**environment, "FLASHINFER_DISABLE_JIT": "1", "HOME": folder + "/other",
                                                              "FLASHINFER_WORKSPACE_BASE": folder + "/other",
                                                              "FLASHINFER_CPU_ISA": "x86-64-v3"})
            self.assertEqual(0, ahead.returncode)
            self.assertEqual(done.stdout, ahead.stdout)
            self.assertNotIn("reference", ahead.stderr)
            listed = run(str(prefix / "bin/flashinfer"), "list-ops", env=environment)
            self.assertEqual(0, listed.returncode)
            self.assertIn("flashinfer.norm.rmsnorm", listed.stdout)


def files_below(folder):
    return {str(p.relative_to(folder)) for p in folder.rglob("*") if not p.is_dir() or p.is_symlink()}


class Components(unittest.TestCase):
    def test_runtime_and_development_are_apart(self):
        with tempfile.TemporaryDirectory() as folder:
            found = {}
            for name in ("runtime", "development", ""):
                prefix = pathlib.Path(folder) / (name or "all")
                component = ["--component", name] if name else []
                self.assertEqual(0, run("cmake", "--install", str(BUILD), "--prefix", str(prefix), *component).returncode)
                found[name] = {n for n in files_below(prefix) if "/flashinfer/aot/" not in n}  # other tests fill it meanwhile
            self.assertEqual(set(), found["runtime"] & found["development"])
            self.assertEqual(found[""], found["runtime"] | found["development"])
            for_programs = re.compile(r"^include/|\.(cmake|pc)$|/libflashinfer\.so$")
            self.assertEqual({n for n in found[""] if for_programs.search(n)}, found["development"])
            self.assertIn("bin/flashinfer", found["runtime"])
            self.assertTrue(any(n.startswith("include/") for n in found["development"]))


@unittest.skipUnless(shutil.which("ninja"), "ninja is not here")
class Sources(unittest.TestCase):
    """Sources that are no checkout, configured without git, network and tests; a few of their objects are compiled. A static library."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "bin").mkdir()
        git = self.folder / "bin/git"
        git.write_text("#!/bin/sh\nexit 1\n")
        git.chmod(0o755)
        self.environment = {**os.environ, "PATH": f"{self.folder}/bin:{os.environ['PATH']}"}
        self.alone = ["unshare", "-n"] if subprocess.run(["unshare", "-n", "true"], capture_output=True).returncode == 0 else []

    def configure(self, source, *options):
        """Configures below `self.folder`, and compiles what names the build."""
        build = self.folder / "build"
        self.assertEqual(0, run(*self.alone, "cmake", "-S", str(source), "-B", str(build), "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
                                "-DBUILD_TESTING=OFF", *options, env=self.environment).returncode)
        self.objects = [f"CMakeFiles/flashinfer.dir/{name}.o" for name in ("flashinfer/core/version.cc", "generated/commit.cc")]
        self.assertEqual(0, run(*self.alone, "ninja", "-C", str(build), *self.objects, env=self.environment).returncode)
        targets = subprocess.run(["ninja", "-C", str(build), "-t", "targets", "all"], capture_output=True, text=True).stdout
        self.assertNotIn("_tests:", targets)
        return build

    @unittest.skipUnless((ROOT / ".git").exists() and shutil.which("git"), "not a checkout")
    def test_the_archive_knows_its_version_and_commit(self):
        archive = subprocess.run(["git", "-C", str(ROOT), "archive", "--prefix=a/", "HEAD"], capture_output=True)
        self.assertEqual(0, archive.returncode, archive.stderr)
        subprocess.run(["tar", "-x", "-C", str(self.folder)], input=archive.stdout, check=True)
        build = self.configure(self.folder / "a")
        head = subprocess.run(["git", "-C", str(ROOT), "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout
        self.assertIn(f'"{head[:12]}"', (build / "generated/commit.cc").read_text())

    def export_by_conan(self):
        """What the recipe's export_sources copies, by the few functions of Conan that it calls. Its version is that of the file."""
        def copy(_, pattern, root, to):
            for path in pathlib.Path(root).glob(pattern + ("*/*" if pattern.endswith("*") else "")):
                if path.is_file():
                    target = pathlib.Path(to) / path.relative_to(pathlib.Path(root))
                    target.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy(path, target)

        modules = {name: types.ModuleType(name) for name in ("conan", "conan.tools", "conan.tools.cmake", "conan.tools.files")}
        modules["conan"].ConanFile = object
        modules["conan.tools.files"].copy = copy
        for name in ("CMake", "CMakeDeps", "CMakeToolchain", "cmake_layout"):
            setattr(modules["conan.tools.cmake"], name, object)
        names = {}
        with unittest.mock.patch.dict(sys.modules, modules):
            exec(compile((ROOT / "packaging/conan/conanfile.py").read_text(), "conanfile.py", "exec"), names)
        recipe = names["FlashinferConan"]()
        recipe.recipe_folder, recipe.export_sources_folder = str(ROOT / "packaging/conan"), str(self.folder / "exported")
        recipe.set_version()
        self.assertEqual((ROOT / "version.txt").read_text().strip(), recipe.version)
        recipe.export_sources()
        return self.folder / "exported"

    def test_a_program_links_the_static_library_of_conans_sources(self):
        prefix = self.folder / "prefix"
        build = self.configure(self.export_by_conan(), "-DBUILD_SHARED_LIBS=OFF", f"-DCMAKE_INSTALL_PREFIX={prefix}")
        # The objects of the test's build stand for those that would be compiled again; what knows of static libraries was compiled above.
        objects = [p for p in (BUILD / "CMakeFiles/flashinfer.dir").rglob("*.o") if not str(p).endswith(tuple(self.objects))]
        self.assertGreater(len(objects), 200)
        self.assertEqual(0, run("ar", "qcS", str(build / "libflashinfer.a"), *map(str, objects), *(str(build / o) for o in self.objects)).returncode)
        self.assertEqual(0, run("ranlib", str(build / "libflashinfer.a")).returncode)
        self.assertEqual(0, run("cmake", "--install", str(build), "--component", "development").returncode)
        whole = self.folder / "shared"
        self.assertEqual(0, run("cmake", "--install", str(BUILD), "--prefix", str(whole), "--component", "runtime").returncode)
        (whole / "share").rename(prefix / "share")  # the kernels' headers
        consumer = self.folder / "consumer"
        consumer.mkdir()
        (consumer / "CMakeLists.txt").write_text("cmake_minimum_required(VERSION 3.22)\nproject(consumer LANGUAGES CXX)\nfind_package(flashinfer 0.1 REQUIRED)\n"
                                                 "add_executable(snippet snippet.cc)\ntarget_link_libraries(snippet PRIVATE flashinfer::flashinfer)\n")
        (consumer / "snippet.cc").write_text(readme_snippet())
        self.assertEqual(0, run("cmake", "-S", str(consumer), "-B", str(consumer / "build"), f"-DCMAKE_PREFIX_PATH={prefix}").returncode)
        self.assertEqual(0, run("cmake", "--build", str(consumer / "build")).returncode)
        program = consumer / "build/snippet"
        self.assertNotIn("libflashinfer", run("ldd", str(program)).stdout)
        done = run(str(program), env={"PATH": os.environ["PATH"], "HOME": str(self.folder), "FLASHINFER_JIT_VERBOSE": "1"})
        self.assertEqual("y[0] = 0.5000\n", done.stdout)
        self.assertIn(str(prefix / "share/flashinfer/include"), done.stderr)
        self.assertIn("-ldeflate", run("pkg-config", "--libs", str(next(prefix.rglob("flashinfer.pc")))).stdout)


class Packages(unittest.TestCase):
    """What the libraries export, and the forms in which others take them: pkg-config, Debian packages, a Rust crate, recipes."""

    def build_with_pkg_config(self, root, folder):
        """Builds examples/c against the prefix `root` by the flags of its flashinfer.pc, and runs it."""
        pc = next(root.rglob("flashinfer.pc")).parent
        environment = {"PATH": os.environ["PATH"], "HOME": folder, "FLASHINFER_WORKSPACE_BASE": folder, "PKG_CONFIG_PATH": str(pc)}
        flags = run("pkg-config", "--cflags", "--libs", "flashinfer", env=environment).stdout.split()
        self.assertIn("-lflashinfer", flags)
        program = pathlib.Path(folder) / "from_c"
        libraries = next(root.rglob("libflashinfer.so")).parent
        self.assertEqual(0, run("cc", str(ROOT / "examples/c/main.c"), "-o", str(program), *flags, "-lm", f"-Wl,-rpath,{libraries}").returncode)
        self.assertEqual(0, run(str(program), env=environment).returncode)

    def exported(self, library):
        """Names that a program can link, demangled."""
        lines = run("nm", "-DC", "--defined-only", str(BUILD / "lib" / library)).stdout.splitlines()
        return [line.split(maxsplit=2)[2] for line in lines]

    def test_libraries_export_their_own_names(self):
        names = self.exported("libflashinfer.so")
        commands = self.exported("libflashinfer_commands.so")
        self.assertEqual([], [n for n in names + commands if not re.match(r"(\S+ )*flashinfer(::|_)", n)])
        self.assertLessEqual({"flashinfer_commands", "flashinfer_run_command"}, set(commands))
        self.assertEqual([], [n for n in commands if "flashinfer::cli::" in n])
        for shown in ("flashinfer::rmsnorm(", "typeinfo for flashinfer::ValueError", "flashinfer_call", "flashinfer::op::find_op("):
            self.assertTrue(any(n.startswith(shown) for n in names), shown)

    def test_what_is_exported_is_declared_in_a_header_that_shows_it(self):
        texts = [p.read_text() for p in (ROOT / "flashinfer").rglob("*.h")]
        shown = set(re.findall(r"\w+", "\n".join(text for text in texts if SHOWN.search(text))))
        hidden = set()
        for name in filter(lambda n: n.startswith("flashinfer::"), self.exported("libflashinfer.so")):
            scopes = re.split(r"[(<\[]", name)[0].split(" ")[-1].split("::")  # of a member its class counts
            hidden |= {name for what in [next((s for s in scopes if s[:1].isupper()), scopes[-1])] if re.fullmatch(r"\w+", what) and what not in shown}
        self.assertEqual(set(), hidden)

    @unittest.skipUnless(shutil.which("pkg-config"), "pkg-config is not here")
    def test_pkg_config(self):
        with tempfile.TemporaryDirectory() as folder:
            prefix = pathlib.Path(folder) / "prefix"
            self.assertEqual(0, run("cmake", "--install", str(BUILD), "--prefix", str(prefix)).returncode)
            self.build_with_pkg_config(prefix, folder)

    @unittest.skipUnless(shutil.which("dpkg-shlibdeps"), "Debian's package tools are not here")
    def test_debian_packages(self):
        with tempfile.TemporaryDirectory() as folder:
            self.assertEqual(0, run("cpack", "-G", "DEB", "-B", folder, cwd=BUILD).returncode)
            packages = sorted(pathlib.Path(folder).glob("*.deb"), key=lambda p: p.name.split("_")[0])
            self.assertEqual(["libflashinfer", "libflashinfer-dev"], [p.name.split("_")[0] for p in packages])
            self.assertIn("libxxhash0", run("dpkg-deb", "-f", str(packages[0]), "Depends").stdout)
            root = pathlib.Path(folder) / "root"
            if os.geteuid() == 0:
                # Into the package database of an empty root, which has none of what they depend on, and no shell: the script after the
                # installation runs outside it, with an ldconfig that does nothing.
                (root / "var/lib/dpkg/info").mkdir(parents=True)
                (root / "var/lib/dpkg/status").touch()
                nothing = pathlib.Path(folder) / "bin/ldconfig"
                nothing.parent.mkdir()
                nothing.write_text("#!/bin/sh\n")
                nothing.chmod(0o755)
                installed = run("dpkg", f"--root={root}", "--force-depends", "--force-script-chrootless", "-i", *map(str, packages),
                                env={**os.environ, "PATH": f"{nothing.parent}:{os.environ['PATH']}"})
                self.assertEqual(0, installed.returncode)
                states = run("dpkg-query", f"--admindir={root}/var/lib/dpkg", "-W", "-f", "${Package} ${Status}\\n").stdout
                self.assertEqual("libflashinfer install ok installed\nlibflashinfer-dev install ok installed\n", states)
            else:
                for package in packages:
                    self.assertEqual(0, run("dpkg-deb", "-x", str(package), str(root)).returncode)
            self.build_with_pkg_config(root / "usr", folder)
            listed = run(str(root / "usr/bin/flashinfer"), "list-ops", env={"PATH": os.environ["PATH"], "HOME": folder})
            self.assertIn("flashinfer.norm.rmsnorm", listed.stdout)

    @unittest.skipUnless(shutil.which("cargo"), "cargo is not here")
    def test_rust_crate(self):
        with tempfile.TemporaryDirectory() as folder:
            crate = pathlib.Path(folder) / "flashinfer-sys"
            shutil.copytree(ROOT / "packaging/rust/flashinfer-sys", crate)
            done = run("cargo", "run", "--offline", "--quiet", "--example", "decode", cwd=crate,
                       env={**os.environ, "FLASHINFER_LIB_DIR": str(BUILD / "lib"), "CARGO_TARGET_DIR": folder + "/target"})
            self.assertEqual(0, done.returncode)
            self.assertIn("largest difference from the plain loop", done.stdout)
            wrong = subprocess.run(["cargo", "build", "--offline", "--quiet"], cwd=crate, capture_output=True, text=True,
                                   env={**os.environ, "FLASHINFER_LIB_DIR": folder, "CARGO_TARGET_DIR": folder + "/target"})
            self.assertNotEqual(0, wrong.returncode)
            self.assertIn(f"FLASHINFER_LIB_DIR is '{folder}', which has no libflashinfer.so", wrong.stderr)

    def test_recipes(self):
        with tempfile.TemporaryDirectory() as folder:  # the port's commands that vcpkg defines do nothing here
            names = sorted(set(re.findall(r"^(vcpkg_\w+)\(", (ROOT / "packaging/vcpkg/portfile.cmake").read_text(), re.M)))
            self.assertIn("vcpkg_cmake_configure", names)
            script = pathlib.Path(folder) / "port.cmake"
            script.write_text("".join(f"function({name})\nendfunction()\n" for name in names) + f"include({ROOT}/packaging/vcpkg/portfile.cmake)\n"
                              'if(NOT EXISTS "${SOURCE_PATH}/CMakeLists.txt")\n  message(FATAL_ERROR "${SOURCE_PATH}")\nendif()\n')
            self.assertEqual(0, run("cmake", "-P", str(script)).returncode)
        version = (ROOT / "version.txt").read_text().strip()
        if shutil.which("conan"):
            with tempfile.TemporaryDirectory() as home:
                self.assertIn(f"version: {version}\n", run("conan", "inspect", str(ROOT / "packaging/conan"), env={**os.environ, "CONAN_HOME": home}).stdout)
        self.assertRegex(version, r"^\d+\.\d+\.\d+$")
        self.assertEqual(version, json.loads((ROOT / "packaging/vcpkg/vcpkg.json").read_text())["version"])
        for package in ("packaging/rust/flashinfer-sys/Cargo.toml", "integrations/vllm/pyproject.toml"):
            self.assertIn(f'version = "{version}"', (ROOT / package).read_text(), package)
        self.assertEqual(version, run(str(BUILD / "bin/flashinfer"), "--version").stdout.split()[-1])


class OpsPage(unittest.TestCase):
    def test_the_page_is_the_registrys(self):
        new = subprocess.run(["git", "ls-files", "--others", "--exclude-standard", "flashinfer/ops"], cwd=ROOT, capture_output=True, text=True)
        if new.returncode != 0 or new.stdout:
            self.skipTest("an op is being written: flashinfer/ops holds files that git does not know")
        done = run(str(BUILD / "bin/flashinfer"), "list-ops", "--markdown")
        self.assertEqual(0, done.returncode)
        text = (ROOT / "docs/ops.md").read_text()
        self.assertEqual(done.stdout, text[text.index("## "):], "run: tools/ops_doc.sh")

    def test_a_row_says_what_runs_on_a_gpu(self):
        rows = {}
        for line in run(str(BUILD / "bin/flashinfer"), "list-ops", "--markdown").stdout.splitlines():
            if line.startswith("| `"):
                rows[line.split("`")[1]] = line.rsplit("|", 2)[1].strip()
        self.assertEqual("cpu, cuda", rows["rmsnorm"])
        self.assertEqual("cpu, cuda, cuda_cublaslt", rows["mm_bf16"])
        self.assertEqual("cpu", rows["prepare_gguf_weights"])
        self.assertEqual("cpu, cuda", rows["BatchDecodeWithPagedKVCacheWrapper"])  # its `run`
        self.assertEqual("cpu, cuda", rows["BatchMLAPagedAttentionWrapper"])
        self.assertEqual("cpu", rows["fast_decode_plan"])  # takes GPU tensors, computes on the host
        self.assertEqual([], [name for name in rows if "." in name])


class Command(unittest.TestCase):
    def setUp(self):
        self.program = str(BUILD / "bin/flashinfer")

    def test_exit_codes(self):
        for arguments, code in (([], 0), (["--help"], 0), (["--version"], 0), (["no-such-command"], 2), (["--no-such-flag"], 2)):
            done = subprocess.run([self.program, *arguments], capture_output=True, text=True)
            self.assertEqual(code, done.returncode, arguments)
            if not arguments:
                self.assertIn("Subcommands:", done.stdout)

    def test_show_config_lists_every_variable(self):
        done = subprocess.run([self.program, "show-config"], capture_output=True, text=True,
                              env={**os.environ, "FLASHINFER_NUM_THREADS": "3", "FLASHINFER_DUMP_MAX_COUNT": "many"})
        self.assertEqual(0, done.returncode)
        for section in ("Version Info", "Environment Variables", "Toolchain", "Artifact Path", "Module Status"):
            self.assertIn(f"=== {section} ===\n", done.stdout)
        self.assertIn("FLASHINFER_NUM_THREADS: 3\n", done.stdout)
        self.assertIn("Threads of the pool: 3\n", done.stdout)
        self.assertIn("FLASHINFER_DUMP_MAX_COUNT: 1000\n", done.stdout)      # bad values fall back,
        self.assertEqual(1, done.stderr.count("FLASHINFER_DUMP_MAX_COUNT"))         # with one warning
        in_code = set(re.findall(r'"((?:FLASHINFER|CUDA|MAX_JOBS|CXX)\w*)"', (ROOT / "flashinfer/core/env.cc").read_text()))
        self.assertEqual(set(), {v for v in in_code if f"\n{v}: " not in done.stdout})


if __name__ == "__main__":
    unittest.main()
