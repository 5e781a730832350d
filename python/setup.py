"""The part of the build that pyproject.toml cannot say.

A package that is installed from a source tree notes where that lies, and finds the programs that are built there later
(par/libraries.py). One with compiled parts in par/native (tools/wheel.sh) is of one platform, and of any Python 3.
"""
import pathlib

from setuptools import setup
from setuptools.command.build_py import build_py

HERE = pathlib.Path(__file__).resolve().parent
NATIVE = (HERE / "par/native").is_dir()


class BuildPackage(build_py):
    """Notes the source tree."""

    def run(self):
        super().run()
        if not NATIVE and not getattr(self, "editable_mode", False) and (HERE.parent / "CMakeLists.txt").is_file():
            pathlib.Path(self.build_lib, "par/source.txt").write_text(f"{HERE.parent}\n", encoding="utf-8")


commands = {"build_py": BuildPackage}
if NATIVE:
    from setuptools.command.bdist_wheel import bdist_wheel

    class BinaryWheel(bdist_wheel):
        """A wheel of one platform, of any Python 3."""

        def finalize_options(self):
            super().finalize_options()
            self.root_is_pure = False

        def get_tag(self):
            return "py3", "none", self.plat_name

    commands["bdist_wheel"] = BinaryWheel
setup(cmdclass=commands)
