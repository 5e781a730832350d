#!/usr/bin/env python3
"""The wheel and the tarball of the runtime, in a root that has neither LLVM nor anything of Par (ninja check-wheel).

    wheel.py [--bin build/bin] [--wheel FILE.whl] [--tarball FILE.tar.xz] [--root FOLDER] [--torch PYTHON]

Makes both (tools/wheel.sh, tools/runtime-tarball.sh) unless they are given, and a root of Debian 12 by debootstrap
(python3 and python3-venv, nothing else) unless --root is one. In that root: an empty environment, pip install without
an index, every program, a compilation, a run, a session, a server; then a run by the tarball. With --torch, a
Python that has torch, onnx and onnxscript, a module is exported outside of the root, in an environment that has the
wheel; its file is compiled inside. Needs root, for chroot and mounts. A line a claim; ends with their number.
"""
import argparse
import pathlib
import shutil
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parents[2]
MODEL, PLAN, TEXT = "examples/tiny-gpt.onnx", "examples/3d.yaml", "README.md"
OFFLINE = ["--quiet", "--disable-pip-version-check", "--no-index", "--no-deps"]
EXPORT = """
import par, torch
module = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 4))
par.export(module, {"input": torch.zeros(4, 8)}, "exported.onnx", dynamic={"input": ["batch", None]})
"""
SESSION = """
import array, par, sys
bundle = par.compile("exported.onnx", {"mesh": {"dp": 2}, "batch": 8}, out="exported.par")
with par.open(bundle) as job:
    rows = memoryview(array.array("f", [0.5] * 64)).cast("B").cast("f", [8, 8])
    print(list(job.predict({"input": rows})))
print("torch" in sys.modules, par.verify(bundle))
"""


class Claims:
    def __init__(self):
        self.failed = self.counted = 0

    def say(self, claim, holds, more=""):
        self.counted += 1
        self.failed += not holds
        print(f"{claim}: {'pass' if holds else 'FAIL ' + more}", flush=True)


def make(script, option, pattern, build, folder):
    """The file that a script of tools/ makes, or the one given."""
    if option:
        return option.resolve()
    subprocess.run([str(SOURCE / "tools" / script), str(build), str(folder)], check=True, stdout=subprocess.DEVNULL)
    made, = folder.glob(pattern)
    return made


def run_in(root, command):
    """A command of a shell in the root, with nothing of this machine's environment or network."""
    mounts = 'mount -t proc proc "$0/proc" && mount -t tmpfs tmpfs "$0/dev/shm"'
    return subprocess.run(["unshare", "--mount", "--net", "sh", "-c", f'{mounts} && exec chroot "$0" "$@"', str(root),
                           "/usr/bin/env", "-i", "PATH=/work/venv/bin:/usr/bin:/bin", "HOME=/work",
                           "sh", "-c", f"cd /work && {command}"], capture_output=True, text=True, timeout=900)


def check_wheel(root, wheel, claims):
    def holds(claim, command, shows):
        done = run_in(root, command)
        claims.say(claim, done.returncode == 0 and shows in done.stdout, f"{done.stdout[-500:]}{done.stderr[-500:]}")

    holds("no LLVM in the root", "test -z \"$(find /usr /opt -name 'libLLVM*' -o -name 'libMLIR*')\" && echo none",
          "none")
    holds("pip installs the wheel into an empty environment",
          f"python3 -m venv venv && venv/bin/pip install {' '.join(OFFLINE)} {wheel.name} && echo installed",
          "installed")
    holds("no library is missing", "for f in venv/lib/python3*/site-packages/par/native/*/*; do ldd $f; done >needs; "
          "grep -q libLLVM needs && ! grep 'not found' needs && echo all", "all")
    holds("the licences of what is bundled", "cd venv/lib/python3*/site-packages/par/native/licenses && "
          "cat par libdnnl2 libllvm22 liblld-22-dev nlohmann-json3-dev zlib1g >/dev/null && echo there", "there")
    for tool, words in (("par-compile", "par-compile MODEL"), ("par-run", "par-run"), ("par-verify", "par-verify"),
                        ("par-opt", "Par's pass driver")):
        holds(f"{tool} --help", f"{tool} --help", words)
    holds("par-compile for eight ranks", f"par-compile {MODEL} {PLAN} -o gpt.par", "wrote   gpt.par")
    holds("par-compile for GPUs", f"par-compile {MODEL} {PLAN} --target cuda --check", "proved")
    holds("par-verify", "par-verify gpt.par && echo verified", "verified")
    holds("par-run", f"par-run gpt.par --init --text {TEXT} --steps 3", "step    3/3")
    holds("par-run --serve", f"par-compile {MODEL} --set batch=2 --set dims.seq=16 -o serve.par -q && "
          "echo '{\"inputs\": {\"input_ids\": [[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]]}}' | "
          "par-run serve.par --init --serve -", '"outputs"')
    if (root / "work/exported.onnx").exists():
        holds("an exported module compiles, runs in a session, and nothing imports torch",
              f"python3 -c '{SESSION}'", "False")


def export(wheel, python, work):
    """Exports with the wheel and a Python that has torch."""
    venv = work / "exporting"
    subprocess.run([str(python), "-m", "venv", "--system-site-packages", str(venv)], check=True)
    subprocess.run([str(venv / "bin/pip"), "install", *OFFLINE, str(wheel)], check=True)
    packages = subprocess.run([str(python), "-c", "import torch; print(torch.__path__[0])"], check=True, text=True,
                              capture_output=True).stdout
    done = subprocess.run([str(venv / "bin/python"), "-c", EXPORT], cwd=work, text=True, capture_output=True,
                          env={"PYTHONPATH": str(pathlib.Path(packages.strip()).parent), "PATH": "/usr/bin:/bin"})
    shutil.rmtree(venv)
    return done


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=pathlib.Path, default=SOURCE / "build/bin")
    for option in ("--wheel", "--tarball", "--root", "--torch"):
        parser.add_argument(option, type=pathlib.Path)
    options = parser.parse_args()
    claims = Claims()
    with tempfile.TemporaryDirectory(prefix="par-wheel-") as folder:
        scratch = pathlib.Path(folder)
        build = options.bin.resolve().parent
        wheel = make("wheel.sh", options.wheel, "*.whl", build, scratch / "wheel")
        tarball = make("runtime-tarball.sh", options.tarball, "*.tar.xz", build, scratch / "tarball")
        for file, limit in ((wheel, 150), (tarball, 30)):
            size = file.stat().st_size / 1e6
            claims.say(f"{file.name}: {size:.1f} MB of {limit}", size <= limit)
        root = options.root or scratch / "root"
        if not options.root:
            subprocess.run(["debootstrap", "--variant=minbase", "--include=python3,python3-venv", "bookworm",
                            str(root)], check=True, stdout=subprocess.DEVNULL)
        work = root / "work"
        shutil.rmtree(work, ignore_errors=True)
        (work / "examples").mkdir(parents=True)
        for file in (MODEL, PLAN, TEXT):
            shutil.copy(SOURCE / file, work / file)
        shutil.copy(wheel, work)
        if options.torch:
            done = export(wheel, options.torch, work)
            claims.say("par.export with the wheel", done.returncode == 0, done.stderr[-500:])
        check_wheel(root, wheel, claims)
        shutil.rmtree(work / "venv")
        subprocess.run(["tar", "-C", str(work), "-xf", str(tarball)], check=True)
        done = run_in(root, f"./par-runtime-*/bin/par-verify gpt.par && ./par-runtime-*/bin/par-run gpt.par --init "
                            f"--text {TEXT} --steps 3")
        claims.say("the tarball's programs run a bundle", done.returncode == 0 and "step    3/3" in done.stdout,
                   done.stderr)
    print(f"{claims.counted} claims, {claims.failed} failed")
    sys.exit(1 if claims.failed else 0)


if __name__ == "__main__":
    main()
