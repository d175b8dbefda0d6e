# SPDX-License-Identifier: Apache-2.0
"""conan create packaging/conan, from a checkout, whose version.txt has the version."""
import os

from conan import ConanFile
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy


class FlashinferConan(ConanFile):
    name = "flashinfer-cpp"
    license = "Apache-2.0"
    description = "Kernels for serving language models, on GPU and CPU, with a log, a recorder and a replayer"
    options = {"shared": [True, False]}
    default_options = {"shared": True}
    settings = "os", "compiler", "build_type", "arch"
    package_type = "library"
    requires = "nlohmann_json/3.11.3", "cli11/2.4.1", "xxhash/0.8.2", "libdeflate/1.19"

    def set_version(self):
        with open(os.path.join(self.recipe_folder, "..", "..", "version.txt")) as file:
            self.version = file.read().strip()

    def export_sources(self):
        root = os.path.join(self.recipe_folder, "..", "..")
        for pattern in ("CMakeLists.txt", "LICENSE", "NOTICE", "cmake/*", "flashinfer/*", "bench/peers.py", "version.txt"):
            copy(self, pattern, root, self.export_sources_folder)

    def layout(self):
        cmake_layout(self)

    def generate(self):
        CMakeDeps(self).generate()
        toolchain = CMakeToolchain(self)
        toolchain.cache_variables["BUILD_TESTING"] = False
        toolchain.cache_variables["BUILD_SHARED_LIBS"] = bool(self.options.shared)
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        CMake(self).install()

    def package_info(self):
        self.cpp_info.libs = ["flashinfer"]
        if not self.options.shared:
            self.cpp_info.system_libs = ["pthread", "dl", "m"]
        self.cpp_info.set_property("cmake_file_name", "flashinfer")
        self.cpp_info.set_property("cmake_target_name", "flashinfer::flashinfer")
        self.cpp_info.set_property("pkg_config_name", "flashinfer")
