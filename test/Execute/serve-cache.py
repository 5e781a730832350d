"""Starts a server with --cache again and again, and holds its answers against those without: a kept start is used, and
never in the place of other weights.

    serve-cache.py FOLDER      with the tools on the PATH

Answers must be the same bits. Whether a start is used is seen in what files the server has mapped.
"""
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path += [str(HERE.parent / "Phases/Import/Inputs"), str(HERE.parent / "Models")]
from encode import encode
from runs import write_safetensors

SETTLED = 2.1  # seconds; a file that is newer is not trusted to show its next change
SHAPES = {"first.weight": (48, 3, 3, 3), "first.bias": (48,), "wide.weight": (48, 48, 3, 3), "wide.bias": (48,),
          "last.weight": (32, 48, 1, 1), "last.bias": (32,), "head": (32, 5)}


def numbers(shape, seed):
    source, count = random.Random(seed), 1
    for size in shape:
        count *= size
    return [float(f"{source.uniform(-1, 1):.6f}") for _ in range(count)]


def values(seed):
    return {name: numbers(shape, f"{name} {seed}") for name, shape in SHAPES.items()}


def model(weights):
    """The 3 x 3 convolution is of a size that transforms compute: its packed filter is four times as large."""
    return ("input x f32[batch,3,24,24]\n" + "".join(
        f"init {name} f32[{','.join(map(str, SHAPES[name]))}] = {' '.join(f'{v:.6f}' for v in weights[name])}\n"
        for name in SHAPES) + """init dims i64[2] = 2 3
node a Conv x,first.weight,first.bias -> a pads=[1,1,1,1]
node b Relu a -> b
node c Conv b,wide.weight,wide.bias -> c pads=[1,1,1,1]
node d Relu c -> d
node e Add d,b -> e
node f Conv e,last.weight,last.bias -> f
node g ReduceMean f,dims -> g keepdims=0
node h MatMul g,head -> y
output y f32[batch,5]
""")


REQUEST = json.dumps({"inputs": {"x": [[[[v for v in numbers((24,), f"{c} {y}")] for y in range(24)]
                                        for c in range(3)]]}}) + "\n"
failed = 0


def hold(claim, is_true, more=""):
    global failed
    failed += not is_true
    print(f"{claim}: {'pass' if is_true else 'FAIL ' + str(more)}", flush=True)


class Start:
    """One server, two requests: answers, notes, and whether it has mapped a kept start."""

    def __init__(self, folder, *flags):
        environment = {key: value for key, value in os.environ.items() if key != "PAR_CACHE"}
        server = subprocess.Popen(["par-run", str(folder / "net.par"), "--serve", "-", *map(str, flags)],
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                  env=environment)
        try:
            server.stdin.write(REQUEST)
            server.stdin.flush()
            self.answer = server.stdout.readline()
            maps = pathlib.Path(f"/proc/{server.pid}/maps").read_text() if self.answer else ""
            self.is_kept = ".start" in maps
            more, self.said = server.communicate(REQUEST)
        except BrokenPipeError:
            more, self.said = server.communicate()
            self.answer, self.is_kept = "", False
        self.again = more.splitlines(keepends=True)[0] if more else ""
        self.code = server.returncode

    def is_like(self, other):
        return self.answer and (self.answer, self.again) == (other.answer, other.again)


def files(cache):
    return sorted((cache / "starts").glob("*"))


def in_place(path, content):
    """The same file of the same size, and of the same time as far as a program can say so."""
    times = path.stat()
    with path.open("r+b") as file:
        file.write(content)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert path.stat().st_size == times.st_size and path.stat().st_mtime_ns == times.st_mtime_ns


def uses(folder, cache):
    net = folder / "net.onnx"
    os.utime(net, (time.time() + 3600,) * 2)  # just written, however long the starts take
    plain, fresh = Start(folder), Start(folder, "--cache", cache)
    hold("a model that was just written is not kept", fresh.is_like(plain) and not files(cache), files(cache))
    os.utime(net)
    time.sleep(SETTLED)
    first = Start(folder, "--cache", cache)
    hold("the first start keeps", first.is_like(plain) and not first.is_kept and len(files(cache)) == 1, first.said)
    second = Start(folder, "--cache", cache)
    hold("the second start is of what was kept", second.is_like(plain) and second.is_kept, second.said)
    hold("which only its user reads and writes", files(cache)[0].stat().st_mode & 0o777 == 0o600 and
         (cache / "starts").stat().st_mode & 0o777 == 0o700)
    kept, = files(cache)
    threads = Start(folder, "--cache", cache, "--threads", 2)
    hold("other threads, another start", not threads.is_kept and len(files(cache)) == 2)
    return plain, kept


def damages(folder, cache, plain, kept):
    source = random.Random(7)
    whole, wrong, page = kept.read_bytes(), [], os.sysconf("SC_PAGESIZE")
    for at in [3, 20, 200, len(whole) // 3 // page * page, len(whole) // 2 // page * page, "short", "empty"]:
        broken = bytearray(whole)
        if at == "short":
            broken = broken[:len(whole) - 5 * page]
        elif at == "empty":
            broken = b""
        else:
            broken[at] ^= 1 << source.randrange(8)
        kept.write_bytes(broken)
        start = Start(folder, "--cache", cache)
        if not start.is_like(plain) or start.is_kept or kept.read_bytes() != whole:
            wrong.append((at, start.is_kept, start.said))
    hold("a damaged file is made anew", not wrong, wrong)


def changes(folder, cache, plain):
    weights = folder / "w.safetensors"
    contents = []
    for seed in ("old", "new"):
        write_safetensors(weights, {name: (SHAPES[name], one) for name, one in values(seed).items()})
        contents.append(weights.read_bytes())
    before, after = contents
    plain_new = Start(folder, "--weights", weights)
    in_place(weights, before)
    time.sleep(SETTLED)
    plain_old = Start(folder, "--weights", weights)
    kept = [Start(folder, "--weights", weights, "--cache", cache) for _ in range(2)]
    hold("weights from a file are kept", kept[1].is_kept and kept[0].is_like(plain_old) and
         kept[1].is_like(plain_old) and not plain_new.is_like(plain_old))
    in_place(weights, after)
    changed = Start(folder, "--weights", weights, "--cache", cache)
    hold("written over, with its size and time: read anew", changed.is_like(plain_new) and not changed.is_kept)
    other = folder / "other.safetensors"
    other.write_bytes(before)
    os.utime(other, ns=(weights.stat().st_atime_ns, weights.stat().st_mtime_ns))
    other.replace(weights)
    replaced = Start(folder, "--weights", weights, "--cache", cache)
    hold("another file under its name: read anew", replaced.is_like(plain_old) and not replaced.is_kept)
    net = folder / "net.onnx"
    content = net.read_bytes()
    in_place(net, content[:-40] + bytes(40))
    refused = Start(folder, "--cache", cache)
    hold("another model than the compiled one: refused", refused.code == 1 and "other content" in refused.said,
         refused.said)
    in_place(net, content)
    time.sleep(SETTLED)
    back = [Start(folder, "--cache", cache) for _ in range(2)]
    hold("as it was: kept anew", all(one.is_like(plain) for one in back) and back[1].is_kept)


def folders(folder, cache, plain):
    (cache / "starts").chmod(0o777)
    open_to_all = Start(folder, "--cache", cache)
    hold("where others may write nothing is kept or used", open_to_all.is_like(plain) and not open_to_all.is_kept and
         "note: no start is kept there" in open_to_all.said, open_to_all.said)
    (cache / "starts").chmod(0o700)
    for one in files(cache):
        one.chmod(0o666)
    hold("nor a file that others may write", not Start(folder, "--cache", cache).is_kept)
    week = 8 * 24 * 3600
    old = cache / "starts/old.start"
    old.write_bytes(b"")
    os.utime(old, (time.time() - week,) * 2)
    shutil.copy(files(cache)[0], cache / "starts/kept.start")
    Start(folder, "--cache", cache, "--threads", 3)
    hold("what nobody used for a week goes", not old.exists() and (cache / "starts/kept.start").exists())


def main():
    folder = pathlib.Path(sys.argv[1])
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    cache = folder / "cache"
    (folder / "net.onnx").write_bytes(encode(model(values("model")).splitlines()))
    subprocess.run(["par-compile", "-q", folder / "net.onnx", "--set", "batch=1", "-o", folder / "net.par"], check=True)
    plain, kept = uses(folder, cache)
    damages(folder, cache, plain, kept)
    changes(folder, cache, plain)
    folders(folder, cache, plain)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
