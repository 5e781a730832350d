"""Serves a small model with par-run --serve, and holds its answers against par-run --output, bit for bit.

    serve.py FOLDER PART...      with the tools on the PATH; parts: plans, mistakes, clients, ends, web

Only Python's standard library is used. A line for each claim; the exit status is 1 if one does not hold.
"""
import atexit
import json
import os
import pathlib
import random
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
sys.path += [str(HERE.parent / "Phases/Import/Inputs"), str(HERE.parent / "Models")]
from encode import encode
from runs import read_safetensors, write_safetensors

ROWS, WIDTH, HIDDEN, OUT, WORDS = 11, 4, 6, 3, 5


def numbers(count, seed):
    source = random.Random(seed)
    return [source.uniform(-1, 1) for _ in range(count)]


def init(name, *shape):
    count = 1
    for size in shape:
        count *= size
    return f"init {name} f32[{','.join(map(str, shape))}] = {' '.join(f'{v:.6f}' for v in numbers(count, name))}\n"


# `y` has the batch first, `across` last.
MODEL = (f"input x f32[batch,{WIDTH}]\ninput word i64[batch]\n" + init("table", WORDS, HIDDEN) +
         init("w1", WIDTH, HIDDEN) + init("w2", HIDDEN, OUT) + f"""node a MatMul x,w1 -> a
node b Gather table,word -> b
node c Add a,b -> c
node d Relu c -> d
node e MatMul d,w2 -> y
node f Transpose y -> across perm=[1,0]
output y f32[batch,{OUT}]
output across f32[{OUT},batch]
""")
# One output without a batch dim.
MEAN = MODEL + f"init zero i64[1] = 0\nnode g ReduceMean y,zero -> mean keepdims=0\noutput mean f32[{OUT}]\n"
PLANS = {
    "one": "batch: 4\n",
    "dp 2": "batch: 4\nmesh: {dp: 2}\n",
    "tp 2": "batch: 4\nmesh: {tp: 2}\nshard: {w1: {1: tp}, w2: {0: tp}}\n",
    "pp 2": "batch: {size: 4, microbatches: 2}\nmesh: {pp: 2}\n",
}
X = numbers(ROWS * WIDTH, "x")
WORD = [random.Random(row).randrange(WORDS) for row in range(ROWS)]
failed = 0


def hold(claim, is_true, more=""):
    global failed
    failed += not is_true
    print(f"{claim}: {'pass' if is_true else 'FAIL ' + str(more)}", flush=True)


def failed_claims():
    return failed


def tool(*command):
    return subprocess.run(list(map(str, command)), check=True, capture_output=True, text=True)


def inputs(first, count):
    return {"x": [X[row * WIDTH:(row + 1) * WIDTH] for row in range(first, first + count)],
            "word": WORD[first:first + count]}


def as_file(arrays, metadata=None):
    """name -> (shape, numbers) as safetensors"""
    header, body = {"__metadata__": metadata} if metadata else {}, b""
    for name, (shape, values) in arrays.items():
        kind, code = ("I64", "q") if name == "word" else ("F32", "f")
        data = struct.pack(f"<{len(values)}{code}", *values)
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": [len(body), len(body) + len(data)]}
        body += data
    text = json.dumps(header).encode()
    file = struct.pack("<Q", len(text)) + text + body
    return b"safetensors %d\n" % len(file) + file


def file_request(first, count, metadata=None):
    return as_file({"x": ([count, WIDTH], X[first * WIDTH:(first + count) * WIDTH]),
                    "word": ([count], WORD[first:first + count])}, metadata)


def from_file(body):
    length, = struct.unpack_from("<Q", body)
    header, data = json.loads(body[8:8 + length]), body[8 + length:]
    return {name: one if name == "__metadata__" else
            list(struct.unpack(f"<{(one['data_offsets'][1] - one['data_offsets'][0]) // 4}f",
                               data[slice(*one["data_offsets"])])) for name, one in header.items()}


def f32(value):
    """Numbers of JSON as f32, of which each has digits enough."""
    return [f32(one) for one in value] if isinstance(value, list) else struct.unpack("<f", struct.pack("<f", value))[0]


class Client:
    def __init__(self, address):
        family = socket.AF_INET if isinstance(address, tuple) else socket.AF_UNIX
        self.socket = socket.socket(family)
        self.socket.settimeout(60)
        self.socket.connect(address)
        self.file = self.socket.makefile("rb")

    def send(self, data):
        self.socket.sendall(data if isinstance(data, bytes) else json.dumps(data).encode() + b"\n")

    def receive(self):
        try:
            line = self.file.readline()
        except ConnectionResetError:  # the end, too, where the server has not read all that was sent
            return None
        if line.startswith(b"safetensors "):
            return from_file(self.file.read(int(line.split()[1])))
        return json.loads(line) if line else None

    def ask(self, data):
        self.send(data)
        return self.receive()

    def close(self):
        self.file.close()
        self.socket.close()


class Server:
    """par-run --serve, from its first line on."""

    def __init__(self, folder, bundle, *flags, address=None):
        self.path = str(folder / "par.sock")
        self.log = folder / "serve.err"
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(["par-run", str(bundle), "--serve", address or self.path, *flags],
                                            stdout=subprocess.PIPE, stderr=log, text=True)
        atexit.register(self.process.kill)
        self.first = self.process.stdout.readline()

    def client(self):
        return Client(self.path)

    def end(self):
        """The exit status after SIGTERM, and the last line."""
        self.process.send_signal(signal.SIGTERM)
        out, _ = self.process.communicate(timeout=60)
        return self.process.returncode, out.strip()


class Case:
    """A compiled plan, and what par-run --output writes for all rows."""

    def __init__(self, folder, name, text=MODEL):
        self.bundle = folder / f"{name.replace(' ', '')}.par"
        model, plan, data, out = (folder / one for one in ("net.onnx", "plan.yaml", "x.safetensors", "y.safetensors"))
        model.write_bytes(encode(text.splitlines()))
        plan.write_text(PLANS[name])
        tool("par-compile", "-q", model, plan, "-o", self.bundle)
        write_safetensors(data, {"x": ([ROWS, WIDTH], X), "word": ([ROWS], WORD)})
        tool("par-run", self.bundle, "--data", data, "--output", out, "-q")
        found = read_safetensors(out)
        self.y = [list(found["y"][1][row * OUT:(row + 1) * OUT]) for row in range(ROWS)]
        self.across = [list(found["across"][1][row::ROWS]) for row in range(ROWS)]

    def is_right(self, answer, first, count):
        rows = range(first, first + count)
        if "outputs" in answer:
            got = {name: f32(values) for name, values in answer["outputs"].items()}
            across = [[got["across"][i][row] for i in range(OUT)] for row in range(count)]
            return got["y"] == [self.y[row] for row in rows] and across == [self.across[row] for row in rows]
        return (answer["y"] == [v for row in rows for v in self.y[row]] and
                answer["across"] == [self.across[row][i] for i in range(OUT) for row in rows])


def ask_many(server, case, seed, wrong):
    """A client with its own order of requests of one to four rows in both forms, three on the way at a time."""
    source, client, asked = random.Random(seed), server.client(), []
    for _ in range(40):
        count = source.randint(1, 4)
        asked.append((source.randint(0, ROWS - count), count))
        first = asked[-1][0]
        client.send(file_request(first, count) if source.random() < 0.5 else {"inputs": inputs(first, count)})
        if len(asked) == 3:
            if not case.is_right(client.receive(), *asked.pop(0)):
                wrong.append(first)
    for first, count in asked:
        if not case.is_right(client.receive(), first, count):
            wrong.append(first)
    client.close()


def plans(folder):
    for name in PLANS:
        case = Case(folder, name)
        server = Server(folder, case.bundle, "--metrics", str(folder / "metrics.jsonl"))
        wrong = []
        threads = [threading.Thread(target=ask_many, args=(server, case, seed, wrong)) for seed in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        hold(f"{name}: answers of 240 requests that are not par-run's", not wrong, wrong)
        code, last = server.end()
        facts = json.loads((folder / "metrics.jsonl").read_text().splitlines()[-1])
        hold(f"{name}: ends with 0 and counts its requests", code == 0 and facts["requests"] == 240 and
             "served  240 requests" in last and facts["calls"] < 240 and not facts["errors"] and
             facts["latency_ms"]["p99"] >= facts["latency_ms"]["p50"] > 0, (code, last, facts))


MISTAKES = [
    ({"inputs": {**inputs(0, 1), "z": [1]}},
     'this bundle has no input "z"; its inputs are "x" f32[4, 4], "word" i64[4]'),
    ({"inputs": {"x": inputs(0, 1)["x"]}}, 'no array for "word" i64[4]'),
    ({"inputs": {"x": [[1, 2]], "word": [0]}}, 'array "x" is f32[1, 2]; input "x" takes f32[4] a sample'),
    ({"inputs": {"x": [[1, 2], [3]], "word": [0]}},
     "of two lists beside each other one has 2 elements, and the other 1"),
    ({"inputs": {"x": [["one"] * 4], "word": [0]}}, '"x" takes numbers, not "one"'),
    ({"inputs": {"x": [[1e300] * 4], "word": [0]}}, '"x" takes numbers of f32, not 1e+300'),
    ({"inputs": {**inputs(0, 1), "word": [0.5]}}, '"word" takes whole numbers, not 0.5'),
    ({"inputs": {**inputs(0, 1), "word": [7]}}, 'array "word" holds 7 in row 0; input "word" takes'),
    ({"inputs": {"x": inputs(0, 2)["x"], "word": [0]}}, 'array "x" has 2 rows, "word" has 1'),
    ({"inputs": inputs(0, 5)}, "a request has 1 to 4 rows, the bundle's batch, and this one has 5; send it in parts"),
    ({"inputs": {"x": [], "word": []}}, "error"),
    ({"inputs": inputs(0, 1), "outputs": ["q"]}, 'this bundle has no output "q"; its outputs are "y", "across"'),
    ({"inputs": inputs(0, 1), "outputs": "y"}, '"outputs" takes a list of names, not "y"'),
    ({"inputs": inputs(0, 1), "model": "net"}, 'takes "inputs", "outputs" and "id", not "model"'),
    ({"inputs": [1]}, '"inputs" takes an object: {NAME: nested lists}, not [1]'),
    ({"inputs": inputs(0, 1), "id": [1]}, '"id" takes a text or a number of at most 1024 bytes'),
    (b'{"inputs"\n', "is no object of JSON: {"),
    (b'{"inputs":' + b"[" * 5000 + b"\n", "lists in more than 70 lists are no array"),
    (b"safetensors 3\nabc", "error"),
    (as_file({"x": ([1, WIDTH], X[:WIDTH]), "q": ([1], [1.0])}), 'this bundle has no input "q"'),
]
ENDS = [
    (b"GET / HTTP/1.1\r\n", 'a message begins with { or with "safetensors " and its bytes, not with "GET / HTTP/1.1'),
    (b"safetensors ten\n", 'after "safetensors " stands the number of bytes that follow the line, not "ten"'),
    (b"safetensors 99999999999\n", "has 99,999,999,999 bytes, and a request of this bundle takes at most"),
    (b"{" + b" " * (1 << 20), "is longer than 66,176 bytes, the most that a request of this bundle takes"),
]


def mistakes(folder):
    case = Case(folder, "one")
    server = Server(folder, case.bundle)
    client = server.client()
    for data, said in MISTAKES:
        answer = client.ask(data)
        text = json.dumps(answer, ensure_ascii=False).replace('\\"', '"')
        hold(f"answered: {said[:60]}", "error" in answer and said in text, answer)
    answer = client.ask({"id": 7, "inputs": inputs(3, 2), "outputs": ["y"]})
    hold("and the client goes on", answer["id"] == 7 and list(answer["outputs"]) == ["y"] and
         f32(answer["outputs"]["y"]) == case.y[3:5], answer)
    answer = client.ask(file_request(2, 1, {"id": "a"}))
    hold("a file keeps its id", answer["__metadata__"] == {"id": "a"} and case.is_right(answer, 2, 1), answer)
    answer = client.ask({"inputs": {"x": [["NaN", "Infinity", 0, 0]], "word": [0]}, "outputs": ["y"]})
    hold("NaN goes in and out", answer == {"outputs": {"y": [["NaN"] * OUT]}}, answer)
    for data, said in ENDS:
        other = server.client()
        try:
            other.send(data)
        except BrokenPipeError:
            pass
        answer = other.receive()
        hold(f"ended: {said[:60]}", said in answer["error"]["message"] and other.receive() is None, answer)
    hold("and others go on", case.is_right(client.ask({"inputs": inputs(0, 4)}), 0, 4))
    code, last = server.end()
    hold("and the server ends with 0", code == 0, (code, server.log.read_text()))
    case = Case(folder, "one", MEAN)
    server = Server(folder, case.bundle)
    client = server.client()
    answer = client.ask({"inputs": inputs(2, 4)})
    mean = [sum(row[i] for row in case.y[2:6]) / 4 for i in range(OUT)]
    hold("whole batches where a result has no rows", case.is_right(answer, 2, 4) and
         all(abs(a - b) < 1e-5 for a, b in zip(answer["outputs"]["mean"], mean)), answer)
    said = "results of this bundle depend on all rows of a batch: a request has 4 rows, and this one has 3"
    answer = client.ask({"inputs": inputs(2, 3)})
    hold(f"answered: {said}", answer["error"]["message"] == said, answer)


def mutated(source):
    """A request with some bytes that are others, missing or twice."""
    line = json.dumps({"inputs": inputs(0, 2)}).encode() + b"\n"
    data = bytearray(file_request(0, 2) if source.random() < 0.6 else line)
    for _ in range(source.randint(1, 4)):
        place = source.randrange(len(data))
        kind = source.randrange(3)
        if kind == 0:
            data[place] = source.choice((source.randrange(256), data[place] ^ 1, 0x7b, 0x22, 0xff))
        elif kind == 1:
            del data[place:place + source.randint(1, 9)]
        else:
            data[place:place] = data[place:place + source.randint(1, 9)]
    return bytes(data)


def clients(folder):
    case = Case(folder, "one")
    server = Server(folder, case.bundle, "--max-wait", "2")
    slow = server.client()
    request = file_request(1, 3)
    slow.send(request[:-5])
    source, steady = random.Random(1), server.client()
    for turn in range(400):
        guest = server.client()
        guest.send(mutated(source))
        if turn % 4 == 0:  # vanishes with its request
            guest.close()
            continue
        guest.socket.shutdown(socket.SHUT_WR)
        guest.socket.settimeout(20)
        while guest.receive() is not None:
            pass
        guest.close()
    hold("400 broken requests and clients that vanish, and others go on",
         case.is_right(steady.ask({"inputs": inputs(0, 4)}), 0, 4))
    deaf = server.client()  # asks and never reads
    deaf.socket.settimeout(0.3)
    try:
        for _ in range(20000):
            deaf.send(request)
        hold("a client that never reads is not read for ever", False)
    except TimeoutError:
        hold("a client that never reads is not read for ever", True)
    hold("and harms nobody", case.is_right(steady.ask(request), 1, 3))
    slow.send(request[-5:])
    hold("a slow one gets its answer", case.is_right(slow.receive(), 1, 3))
    many = [server.client() for _ in range(256)]
    answers = [one.receive() for one in many[-3:]]
    said = "256 clients are connected, the most that there may be"
    hold("clients beyond 256 are turned away", all(answer["error"]["message"].startswith(said) for answer in answers),
         answers)
    for one in many:
        one.close()
    hold("and the others go on", case.is_right(steady.ask(request), 1, 3))
    deaf.close()
    code, _ = server.end()
    hold("and the server ends with 0", code == 0, server.log.read_text())


def ends(folder):
    case = Case(folder, "one")
    server = Server(folder, case.bundle, "--max-wait", "60000")
    hold("it says where it listens, and what it takes", server.first.strip() ==
         f'serving {server.path}: inputs "x" f32[4, 4], "word" i64[4]; outputs "y" f32[4, 3], "across" f32[4, 3]; '
         "up to 4 rows a call", server.first)
    hold("the socket is the user's alone", os.stat(server.path).st_mode & 0o777 == 0o600)
    second = subprocess.run(["par-run", case.bundle, "--serve", server.path], capture_output=True, text=True)
    hold("a second server is refused", second.returncode == 1 and second.stderr.strip() ==
         f"{server.path}: error: another server listens there; end it, or give --serve another name", second.stderr)
    client = server.client()
    client.send({"inputs": inputs(5, 3)})  # waits for a fourth row
    server.client().ask(b"{}\n")  # once a later client has its answer, what this one sent has been read
    code, last = server.end()
    hold("SIGTERM answers what waits", code == 0 and case.is_right(client.receive(), 5, 3) and client.receive() is None,
         (code, last))
    hold("and takes the socket away", not os.path.exists(server.path))
    server = Server(folder, case.bundle)
    server.process.kill()
    server.process.wait()
    server = Server(folder, case.bundle)
    hold("the socket of a server that died is replaced", case.is_right(server.client().ask(file_request(0, 1)), 0, 1))
    server.end()
    (folder / "par.sock").write_text("text")
    refused = subprocess.run(["par-run", case.bundle, "--serve", server.path], capture_output=True, text=True)
    hold("another file stays", refused.stderr.strip() ==
         f"{server.path}: error: is there already, and is no socket; give --serve another name", refused.stderr)
    (folder / "par.sock").unlink()

    lines = "".join(json.dumps({"id": row, "inputs": inputs(row, 1)}) + "\n" for row in range(ROWS))
    piped = subprocess.run(["par-run", case.bundle, "--serve", "-", "--max-wait", "1000"], input=lines.rstrip("\n"),
                           capture_output=True, text=True)
    answers = [json.loads(line) for line in piped.stdout.splitlines()]
    hold("standard streams", piped.returncode == 0 and [one["id"] for one in answers] == list(range(ROWS)) and
         all(case.is_right(answer, row, 1) for row, answer in enumerate(answers)) and
         "served  11 requests, 11 rows in 3 calls" in piped.stderr, piped)

    server = Server(folder, case.bundle, address="tcp:0")
    host, port = server.first.split()[1].rstrip(":").split(":")
    answer = Client((host, int(port))).ask(file_request(0, 4))
    hold("a port of 127.0.0.1", host == "127.0.0.1" and case.is_right(answer, 0, 4))
    server.end()

    case = Case(folder, "dp 2")
    server = Server(folder, case.bundle)
    client = server.client()
    hold("ranks that are processes", case.is_right(client.ask(file_request(0, 4)), 0, 4))
    found = subprocess.run(["pgrep", "-P", str(server.process.pid)], capture_output=True, text=True).stdout.split()
    os.kill(int(found[0]), signal.SIGKILL)
    answer = client.ask(file_request(0, 4))
    code = server.process.wait(timeout=60)
    hold("ranks that die end the server with 4, and its clients hear it", code == 4 and
         "the process of the ranks was ended by Killed" in answer["error"]["message"], (code, answer))


def post(address, body):
    """Status and text of a request with that body."""
    try:
        with urllib.request.urlopen(urllib.request.Request(address, data=body), timeout=60) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def web(folder):
    """The example of docs/serving.md."""
    case = Case(folder, "one")
    server = Server(folder, case.bundle)
    handler = subprocess.Popen([sys.executable, HERE.parents[1] / "examples/web_handler.py", server.path, "0"],
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    atexit.register(handler.kill)
    address = handler.stdout.readline().strip()
    status, text = post(address, json.dumps({"inputs": inputs(4, 2)}, indent=1).encode())
    hold("a web handler answers", status == 200 and case.is_right(json.loads(text), 4, 2), (status, text))
    long = json.dumps({"inputs": inputs(0, 5)})
    for body, said in ((long, "this one has 5; send it in parts"), ("", ""), ("text", "error")):
        status, text = post(address, body.encode())
        hold(f"and tells of mistakes: {said}", status == 400 and said in text, (status, text))
    server.end()
    status, text = post(address, b"{}")
    hold("and of a server that is not there", status == 503 and "no server: No such file" in text, (status, text))


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for part in sys.argv[2:]:
        {"plans": plans, "mistakes": mistakes, "clients": clients, "ends": ends, "web": web}[part](folder)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
