"""Serves a small decoder with par-run --serve, and holds its tokens against those of par-run --generate.

    serve-decoder.py FOLDER PART...      with the tools on the PATH; parts: plans, mistakes, clients, web

Only Python's standard library is used. A line for each claim; the exit status is 1 if one does not hold.
"""
import atexit
import json
import pathlib
import random
import signal
import socket
import subprocess
import sys
import threading
import urllib.request

from serve import HERE, Server, failed_claims, hold, tool

MODEL = HERE.parent / "Models/generate"
PROMPTS = json.loads((MODEL / "tokens.json").read_text())["prompts"]
CACHE = "carry: {present.*: past.*}\ndims: {seq: 1, cache: 96}\n"
PLANS = {
    "one": "batch: 3\nprefill: {seq: 8}\n",
    "a row": "batch: 1\nprefill: {seq: 8}\n",
    "no prefill": "batch: 2\n",
    "dp 2": "batch: 4\nprefill: {seq: 8}\nmesh: {dp: 2}\n",
    "tp 2": "batch: 3\nprefill: {seq: 8}\nuse: [megatron]\nmesh: {tp: 2}\n",
    "pp 2": "batch: {size: 4, microbatches: 2}\nprefill: {seq: 8}\nmesh: {pp: 2}\n",
}
# Prompts of unequal lengths, greedy and drawn, ended by their length or by a token.
REQUESTS = [
    {"prompts": PROMPTS, "max_new_tokens": 40},
    {"prompts": PROMPTS[:1], "max_new_tokens": 64},
    {"prompts": PROMPTS[3:], "max_new_tokens": 20, "temperature": 0.9, "top_k": 40, "top_p": 0.95, "seed": 5},
    {"prompts": PROMPTS[2:4], "max_new_tokens": 50, "temperature": 0.7, "seed": 6, "stop": list(range(30))},
    {"prompts": PROMPTS[:2], "max_new_tokens": 1},
    {"prompts": [PROMPTS[4] * 3], "max_new_tokens": 30, "temperature": 1.3, "top_p": 0.5},
]


def compiled(folder, name):
    bundle, plan = folder / f"{name.replace(' ', '')}.par", folder / "plan.yaml"
    plan.write_text(CACHE + PLANS[name])
    tool("par-compile", "-q", MODEL / "model.onnx", plan, "-o", bundle)
    return bundle


def generated(bundle, requests):
    """Tokens and ends of each request, from --generate."""
    lines = "".join(json.dumps(one) + "\n" for one in requests)
    done = subprocess.run(["par-run", bundle, "-q", "--generate", "-"], input=lines, capture_output=True, text=True,
                          check=True)
    answers, tokens, ends = [], {}, {}
    for line in map(json.loads, done.stdout.splitlines()):
        if "done" in line:
            count = len(requests[len(answers)]["prompts"])
            answers.append(([tokens[i] for i in range(count)], [ends[i] for i in range(count)]))
            tokens, ends = {}, {}
            continue
        tokens.setdefault(line["prompt"], []).append(line["token"])
        if "end" in line:
            ends[line["prompt"]] = line["end"]
    return answers


def receive(client, request):
    """Tokens and ends of the next answer, whole or streamed, and whether it is formed as the documentation says."""
    count = len(request["prompts"])
    fed = sum(map(len, request["prompts"]))
    if not request.get("stream"):
        answer = client.receive()
        formed = list(answer) == ["id", "tokens", "ends", "prompt_tokens"] and answer["prompt_tokens"] == fed
        return answer.get("tokens"), answer.get("ends"), formed and answer["id"] == request["id"]
    tokens, ends, formed = [[] for _ in range(count)], [None] * count, True
    while True:
        line = client.receive()
        formed &= line.get("id") == request["id"]
        if "token" not in line:
            wanted = {"prompt_tokens": fed, "tokens": sum(map(len, tokens))}
            return tokens, ends, formed and line.get("done") == wanted
        tokens[line["prompt"]].append(line["token"])
        ends[line["prompt"]] = line.get("end")


def ask_many(server, wanted, seed, wrong):
    """A client with its own order of requests, whole and streamed, three on the way at a time."""
    source, client, asked = random.Random(seed), server.client(), []
    for turn in range(12):
        index = source.randrange(len(REQUESTS))
        asked.append((index, {**REQUESTS[index], "id": turn, "stream": source.random() < 0.5}))
        client.send(asked[-1][1])
        while len(asked) == 3 or (asked and turn == 11):
            at, request = asked.pop(0)
            tokens, ends, formed = receive(client, request)
            if (tokens, ends) != tuple(wanted[at]) or not formed:
                wrong.append((seed, turn, at, tokens, ends, formed))
    client.close()


def plans(folder):
    for name in PLANS:
        bundle = compiled(folder, name)
        wanted = generated(bundle, REQUESTS)
        server = Server(folder, bundle, "--metrics", str(folder / "metrics.jsonl"))
        wrong = []
        threads = [threading.Thread(target=ask_many, args=(server, wanted, seed, wrong)) for seed in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        hold(f"{name}: answers of 48 requests that are not --generate's", not wrong, wrong[:1])
        code, last = server.end()
        facts = json.loads((folder / "metrics.jsonl").read_text().splitlines()[-1])
        hold(f"{name}: ends with 0 and counts its tokens", code == 0 and facts["requests"] == 48 and
             f"; {facts['tokens']} tokens, " in last and facts["first_token_ms"]["p50"] > 0, (code, last, facts))


MISTAKES = [
    ({"prompts": [[1, 96]]}, "a prompt takes tokens from 0 to 95, not 96"),
    ({"prompts": []}, '"prompts" takes a list of prompts, each a list of tokens, not []'),
    ({"prompts": [[]]}, "a prompt takes a list of tokens, not []"),
    ({"inputs": {"input_ids": [[1]]}}, "a request takes prompts, max_new_tokens, stop, temperature, top_k, top_p and "
     'seed, not "inputs"'),
    ({"prompts": [[1]], "stream": 1}, '"stream" takes true or false, not 1'),
    ({"prompts": [[1]], "max_new_tokens": 0}, '"max_new_tokens" takes a whole number from 1 to 2^53, not 0'),
    ({"prompts": [[1]], "top_p": 2}, '"top_p" takes a number from 0 to 1, not 2'),
    ({"prompts": [[1] * 60], "max_new_tokens": 64},
     "a prompt of 60 tokens and 64 new ones do not fit into the cache of 96 slots"),
    ({"prompts": [[1]], "id": [1]}, '"id" takes a text or a number of at most 1024 bytes'),
    (b'{"prompts":' + b"[" * 5000 + b"\n", "lists in more than 70 lists"),
    (b"{]\n", 'is no object of JSON: {"prompts": [[1, 2]]}'),
    (b"safetensors 3\nabc", 'a decoder takes lines of JSON: {"prompts": [[1, 2]]}'),
]


def mistakes(folder):
    server = Server(folder, compiled(folder, "one"))
    hold("it says what it takes", server.first.strip() ==
         f"serving {server.path}: prompts, 3 at a time, of 96 tokens at most with those that follow", server.first)
    client = server.client()
    for data, said in MISTAKES:
        answer = client.ask(data)
        text = json.dumps(answer, ensure_ascii=False).replace('\\"', '"')
        hold(f"answered: {said[:60]}", "error" in answer and said in text, answer)
    answer = client.ask({"prompts": [[1, 2]], "max_new_tokens": 2})
    hold("and the client goes on", len(answer["tokens"][0]) == 2 and answer["ends"] == ["length"], answer)
    server.end()


def clients(folder):
    """One row, which a client that has gone leaves to the next; a client that half closes keeps its own."""
    bundle = compiled(folder, "a row")
    many = {"prompts": [[1]] * 400, "max_new_tokens": 90}
    short = {"prompts": PROMPTS[:1], "max_new_tokens": 9}
    (wanted,) = generated(bundle, [short])
    short["id"] = 0
    server = Server(folder, bundle, "--metrics", str(folder / "metrics.jsonl"))
    for streams in (False, True):
        gone = server.client()
        gone.send({**many, "stream": streams})
        if streams:
            gone.receive()
        gone.close()
        client = server.client()
        client.send(short)
        tokens, ends, formed = receive(client, short)
        hold(f"a row of a client that has gone is free: {streams}", (tokens, ends) == tuple(wanted) and formed, tokens)
    half = server.client()
    half.send(short)
    half.socket.shutdown(socket.SHUT_WR)
    hold("a client that only stops to ask has its answer", receive(half, short)[0] == wanted[0])

    last = server.client()
    request = {"prompts": PROMPTS, "max_new_tokens": 40, "id": "z", "stream": True}
    last.send(request)
    first = last.receive()
    code = server.end()[0]
    tokens, ends, formed = receive(last, request)
    made = sum(map(len, tokens)) + ("token" in first)
    hold("SIGTERM lets sequences end", code == 0 and made == 200 and None not in ends and last.receive() is None,
         (code, made, ends))
    facts = json.loads((folder / "metrics.jsonl").read_text().splitlines()[-1])
    hold("what nobody waits for is not computed", facts["tokens"] < 30000, facts)


def web(folder):
    """The example of docs/serving.md hands on each token as it comes."""
    bundle = compiled(folder, "one")
    (wanted,) = generated(bundle, [{"prompts": PROMPTS, "max_new_tokens": 30}])
    server = Server(folder, bundle)
    handler = subprocess.Popen([sys.executable, HERE.parents[1] / "examples/web_handler.py", server.path, "0"],
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    atexit.register(handler.kill)
    address = handler.stdout.readline().strip()

    def post(**more):
        body = json.dumps({"prompts": PROMPTS, "max_new_tokens": 30, **more}, indent=1).encode()
        return urllib.request.urlopen(urllib.request.Request(address, data=body), timeout=60)

    with post() as answer:
        hold("a web handler answers", json.load(answer)["tokens"] == wanted[0])
    with post(stream=True) as answer:
        lines = [json.loads(line) for line in answer]
        tokens = [[line["token"] for line in lines[:-1] if line["prompt"] == at] for at in range(len(PROMPTS))]
        hold("and streams", answer.headers["Transfer-Encoding"] == "chunked" and tokens == wanted[0] and
             lines[-1]["done"]["tokens"] == 150, lines[-1])
    server.process.send_signal(signal.SIGTERM)


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for part in sys.argv[2:]:
        {"plans": plans, "mistakes": mistakes, "clients": clients, "web": web}[part](folder)
    return 1 if failed_claims() else 0


if __name__ == "__main__":
    sys.exit(main())
