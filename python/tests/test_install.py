#!/usr/bin/env python3
"""pip install ./python, in an empty environment: the order in which the compiled parts are searched, and what is said
where there are none.

    PAR_HOME=build python3 python/tests/test_install.py

Needs pip and setuptools 70.1 or later; nothing is downloaded.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("PAR_HOME", SOURCE / "build")).resolve()
OFFLINE = ["--quiet", "--disable-pip-version-check", "--no-index", "--no-deps"]
WHERE = "from par import libraries; print(libraries.find('bin/par-verify').parents[1])"


class Installed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="par-install-")).resolve()
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.source, cls.venv = cls.folder / "source", cls.folder / "venv"
        cls.source.mkdir()
        shutil.copytree(SOURCE / "python", cls.source / "python", ignore=shutil.ignore_patterns("build", "*.egg-info"))
        shutil.copy(SOURCE / "CMakeLists.txt", cls.source)
        wheels = cls.folder / "wheels"
        subprocess.run([sys.executable, "-m", "pip", "wheel", *OFFLINE, "--no-build-isolation", "-w", str(wheels),
                        str(cls.source / "python")], check=True)
        subprocess.run([sys.executable, "-m", "venv", str(cls.venv)], check=True)
        cls.wheel, = wheels.glob("*.whl")
        subprocess.run([str(cls.venv / "bin/pip"), "install", *OFFLINE, str(cls.wheel)], check=True)
        cls.package, = cls.venv.glob("lib/python3*/site-packages/par")

    def run_in_venv(self, *command, path=(), **environment):
        """Standard output of a program of the environment; what it says where it fails."""
        given = {key: value for key, value in os.environ.items() if not key.startswith(("PAR_", "PYTHON"))}
        given["PATH"] = os.pathsep.join([str(self.venv / "bin"), *map(str, path), "/usr/bin", "/bin"])
        done = subprocess.run([str(self.venv / "bin" / command[0]), *command[1:]], cwd=self.folder, text=True,
                              capture_output=True, env={**given, **environment}, timeout=60)
        return done.stdout.strip() if done.returncode == 0 else f"{done.returncode}: {done.stderr.strip()}"

    def where(self, **more):
        return self.run_in_venv("python", "-c", WHERE, **more)

    def test_1_a_wheel_without_compiled_parts_is_of_any_platform(self):
        self.assertTrue(self.wheel.name.endswith("-py3-none-any.whl"), self.wheel.name)

    def test_2_the_source_tree_is_not_built(self):
        self.assertEqual(
            self.run_in_venv("par-verify", "--help"),
            f"2: par-verify: error: par-verify is not built or not found: there is no {self.package}/native/bin/"
            f"par-verify, {self.source}/build/bin/par-verify\n  note: build Par: {self.source}/tools/build.sh")

    def test_3_a_folder_on_the_path(self):
        self.assertEqual(self.where(path=[BUILD / "bin"]), str(BUILD))
        self.assertIn("par-compile MODEL [PLAN...]", self.run_in_venv("par-compile", "--help", path=[BUILD / "bin"]))

    def test_4_the_build_folder_goes_before_the_path(self):
        (self.source / "build").symlink_to(BUILD)
        self.assertEqual(self.where(path=[BUILD / "bin"]), f"{self.source}/build")
        for tool in ("par-compile", "par-run", "par-verify", "par-opt"):
            self.assertIn(tool if tool != "par-opt" else "OVERVIEW: Par's pass driver",
                          self.run_in_venv(tool, "--help"), tool)

    def test_5_the_package_goes_before_the_build_folder(self):
        (self.package / "native").symlink_to(BUILD)
        self.assertEqual(self.where(), f"{self.package}/native")
        (self.package / "native").unlink()

    def test_6_par_home_alone(self):
        self.assertEqual(self.where(PAR_HOME=str(BUILD)), str(BUILD))
        self.assertIn("note: set PAR_HOME to a build folder of Par or to where it is installed, or unset it",
                      self.where(PAR_HOME=str(self.folder), path=[BUILD / "bin"]))

    def test_7_the_source_tree_is_gone(self):
        self.source.rename(self.folder / "moved")
        self.assertRegex(self.where(), "note: set PAR_HOME to a build folder of Par or to where it is installed$")

    def test_8_a_program_that_cannot_be_started(self):
        (self.folder / "broken/bin").mkdir(parents=True)
        (self.folder / "broken/bin/par-run").write_text("no program")
        self.assertEqual(self.run_in_venv("par-run", "--help", PAR_HOME=str(self.folder / "broken")),
                         f"2: par-run: error: {self.folder}/broken/bin/par-run cannot be started: Permission denied")

    def test_9_nothing_imports_torch(self):
        self.assertEqual(self.run_in_venv("python", "-c", "import par, sys; print('torch' in sys.modules)"), "False")


if __name__ == "__main__":
    unittest.main()
