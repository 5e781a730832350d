# How lit finds and runs Par's tests. Substitutions: %models, %examples, %build, %python; tools are on the PATH.
# Features: `cuda` (a device answers), `long` (only with --param long=1), `node-tests` (PAR_NODE_TESTS names their
# folder), `mypy`, `peft`, `pyarrow`, `torch`, `tensorboard` and `setuptools` (a Python that lit knows has it:
# %with_torch and so on), `chromium` (a browser is there), `kernels-unchecked` (not under PAR_CHECK_KERNELS: for tests
# of what checking kernels takes itself: code, memory, files).
import os
import shutil
import subprocess
import sys

import lit.formats

config.name = "par"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test", ".yaml"]
config.excludes = ["Models", "Inputs", "CMakeLists.txt"]
config.test_source_root = os.path.join(config.par_source, "test")
config.test_exec_root = os.path.join(config.par_build, "test")

tools = [os.path.join(config.par_build, "bin"), config.llvm_tools]
config.environment["PATH"] = os.pathsep.join(tools + [config.environment["PATH"]])
# Plans of one model share most kernels, and so do tests: each is compiled once.
config.environment["PAR_CACHE"] = os.path.join(config.test_exec_root, "cache")
config.environment["PAR_HOME"] = config.par_build
config.environment.pop("RANK", None)
# PAR_DEVICE=sim:20 runs every bundle on the device sim, in 20 interleavings (ninja check-sim).
# PAR_CHECK_KERNELS=1 has par-compile check the kernels of every bundle (ninja check-kernels).
for name in ("PAR_DEVICE", "PAR_CHECK_KERNELS"):
    if name in os.environ:
        config.environment[name] = os.environ[name]
config.environment.pop("WORLD_SIZE", None)
if "PAR_CHECK_KERNELS" not in os.environ:
    config.available_features.add("kernels-unchecked")

config.substitutions.append(("%models", os.path.join(config.test_source_root, "Models")))
config.substitutions.append(("%examples", os.path.join(config.par_source, "examples")))
config.substitutions.append(("%python", sys.executable))
config.substitutions.append(("%build", config.par_build))
config.substitutions.append(("%stubs", os.path.join(config.par_build, "lib")))


def has_cuda():
    smi = shutil.which("nvidia-smi")
    return smi is not None and subprocess.run([smi, "-L"], capture_output=True).returncode == 0


if has_cuda():
    config.available_features.add("cuda")


def has_namespaces():
    """Whether hosts can be played by network namespaces: needs root, ip, and a system that lets it."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        return False
    name = f"par-lit-{os.getpid()}"
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True).returncode == 0
    subprocess.run(["ip", "netns", "del", name], capture_output=True)
    return made


if has_namespaces():
    config.available_features.add("netns")
if any(shutil.which(name) for name in ("chromium", "chromium-browser", "google-chrome")):
    config.available_features.add("chromium")


def python_with(module):
    """A Python that has the module: lit's own, that of the build's scripts, or an environment's that is known here."""
    active = os.path.join(os.environ.get("VIRTUAL_ENV", "/opt/venv"), "bin", "python")
    found = [sys.executable, config.par_python, active]
    for python in found:
        asks = [python, "-c", f"import importlib.util, sys; sys.exit(not importlib.util.find_spec('{module}'))"]
        if os.path.isfile(python) and subprocess.run(asks, capture_output=True).returncode == 0:
            return python
    return None


# A setuptools that makes wheels by itself has a command for it.
for package in ("mypy", "peft", "pyarrow", "torch", "tensorboard", "setuptools"):
    if python := python_with("setuptools.command.bdist_wheel" if package == "setuptools" else package):
        config.available_features.add(package)
        config.substitutions.append((f"%with_{package}", python))
if lit_config.params.get("long"):
    config.available_features.add("long")

# ONNX's own node tests, all of them: onnx/backend/test/data/node of the Python package onnx 1.22.0.
node_tests = os.environ.get("PAR_NODE_TESTS")
if node_tests:
    config.available_features.add("node-tests")
    config.substitutions.append(("%node_tests", node_tests))

# A test that hangs (a deadlock is what many of them look for) must end by itself; lit needs psutil to see to it.
if not lit_config.maxIndividualTestTime and lit_config.maxIndividualTestTimeIsSupported[0]:
    lit_config.maxIndividualTestTime = 1800 if lit_config.params.get("long") else 900
