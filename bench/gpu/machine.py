"""The machine that the check runs on: its GPU, the unpacked tools, where its libraries are, and runs of programs."""
import collections
import ctypes
import importlib.util
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tarfile
import tempfile

from report import Broken, NotPossible, Refused, TimeUp

# Libraries that the runtime opens: variable, names. If the loader does not find one, it may be elsewhere().
OPENED = {"PAR_CUBLASLT_LIBRARY": ["libcublasLt.so", "libcublasLt.so.13", "libcublasLt.so.12"],
          "PAR_NCCL_LIBRARY": ["libnccl.so.2"], "PAR_CUDNN_LIBRARY": ["libcudnn.so.9"]}
STUBS = {"PAR_CUDA_LIBRARY": "libcuda-stub.so", "PAR_CUBLASLT_LIBRARY": "libcublaslt-stub.so",
         "PAR_CUDNN_LIBRARY": "libcudnn-stub.so", "PAR_NCCL_LIBRARY": "libnccl-stub.so"}
REFUSALS = re.compile(r"not supported yet|compile it again with|was built without|has no CUDA device")


def opens(name):
    try:
        ctypes.CDLL(name)
        return True
    except OSError:
        return False


def elsewhere(name):
    """A library where CUDA is installed, or among the packages that PyTorch brings, which is not imported for it."""
    places = [(pathlib.Path("/usr/local"), "cuda*/lib64")]
    spec = importlib.util.find_spec("torch")
    if spec and spec.origin:
        places.append((pathlib.Path(spec.origin).parent.parent, "nvidia/**"))
    return next((str(file) for root, folders in places for file in sorted(root.glob(f"{folders}/{name}*"))), None)


class Machine:
    def __init__(self, folder, dry):
        self.folder, self.dry = folder, dry
        self.manifest = json.loads((folder / "prepared.json").read_text())
        self.cuda = self.manifest["target"] != "cpu"
        self.work = pathlib.Path(tempfile.mkdtemp(prefix="par-gpu-check-"))
        self.calls = collections.Counter()  # of the stub, in the latest run
        self.trained = {}  # losses of bundles on one rank, by path
        with tarfile.open(folder / "tools.tar.gz") as tools:
            tools.extractall(self.work, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
        self.environment = dict(os.environ,
                                LD_LIBRARY_PATH=self.paths("lib", "stubs") + os.environ.get("LD_LIBRARY_PATH", ""))
        self.loader = []
        if self.dry:
            self.use_stubs()
        else:
            self.find_libraries()

    def close(self):
        shutil.rmtree(self.work, ignore_errors=True)

    def paths(self, *names):
        return "".join(f"{self.work / name}:" for name in names)

    def use_stubs(self):
        for variable, name in STUBS.items():
            if (self.work / "stubs" / name).exists():
                self.environment[variable] = str(self.work / "stubs" / name)
        # As much of an image of the builtin kernels as the stub looks at, for a runtime that was built without nvcc.
        image = self.work / "builtins"
        image.write_bytes(b"\x50\xed\x55\xba")
        self.environment["PAR_CUDA_BUILTINS"] = str(image)
        self.environment["PAR_STUB_LOG"] = str(self.work / "calls.jsonl")

    def find_libraries(self):
        for variable, names in OPENED.items():
            if variable not in self.environment and not any(map(opens, names)):
                found = next(filter(None, map(elsewhere, names)), None)
                if found:
                    self.environment[variable] = found

    def start(self, step):
        """The carried programs start here, with this machine's C library or the carried one."""
        try:
            return self.run(step, "par-run", "--version").strip()
        except Broken as failure:
            if "GLIBC_" not in str(failure):
                raise
        system = self.work / "system"
        self.loader = [str(next(system.glob("ld-linux*"))), "--library-path", self.paths("lib", "system").rstrip(":")]
        return self.run(step, "par-run", "--version").strip() + ", with the carried C library"

    def command(self, tool, *arguments):
        return [*self.loader, str(self.work / "bin" / tool), *map(str, arguments)]

    def run(self, step, tool, *arguments, **options):
        """Output of a carried program. Raises Refused, Broken or TimeUp."""
        return self.execute(step, self.command(tool, *arguments), **options)

    def execute(self, step, command, environment=None, most=600.0, own=True, good=(0,)):
        """Runs a program within the step's time; `own` gets the carried libraries and the stubs."""
        log = self.work / "calls.jsonl"
        log.unlink(missing_ok=True)
        env = {**(self.environment if own else os.environ), **(environment or {})}
        # A group of its own: a program that outlasts its time ends with its children.
        job = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace",
                               env=env,
                               start_new_session=True)
        try:
            out, error = job.communicate(timeout=min(step.left(), most))
        except BaseException as failure:
            os.killpg(job.pid, signal.SIGKILL)
            job.communicate()
            if isinstance(failure, subprocess.TimeoutExpired):
                raise TimeUp(f"{pathlib.Path(command[0]).name} ran longer than {failure.timeout:.0f} s")
            raise
        finally:
            self.calls = count_calls(log)
        if job.returncode in good:
            return out
        raise outcome(job.returncode, out, error)

    def smi(self, query):
        """Output of nvidia-smi, or None."""
        tool = shutil.which("nvidia-smi")
        if not tool:
            return None
        done = subprocess.run([tool, f"--query-gpu={query}", "--format=csv,noheader,nounits"], capture_output=True,
                              text=True,
                              timeout=20)
        return done.stdout.strip().splitlines()[0] if done.returncode == 0 and done.stdout.strip() else None

    def need_gpu(self):
        if self.dry or not self.cuda:
            return
        if not opens("libcuda.so.1"):
            raise NotPossible("this machine has no CUDA driver")


def count_calls(log):
    if not log.exists():
        return collections.Counter()
    return collections.Counter(re.findall(r'"call": "(\w+)"', log.read_text()))


def outcome(code, out, error):
    """The exception for a program that ended so."""
    lines = [line for line in error.splitlines()
             if "error:" in line] or (error.strip() or out.strip()).splitlines()[-1:]
    said = lines[0].strip() if lines else "nothing was said"
    if code < 0:
        return Broken(f"ended by {signal.Signals(-code).name}: {said}")
    return Refused(said) if REFUSALS.search(said) else Broken(f"exit {code}: {said}")
