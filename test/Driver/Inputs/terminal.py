"""Runs a command on terminals: a clever one that is resized from 100 to 40 columns, a dumb one, and with -q."""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios


def run(command, term):
    """The text that the terminal gets, as parts between which it was resized."""
    leader, follower = pty.openpty()
    resize(leader, 100)
    process = subprocess.Popen(command, stdin=follower, stdout=follower, stderr=follower,
                               env={**os.environ, "TERM": term, "NO_COLOR": "1"})
    os.close(follower)
    parts, drawn, resized = [b"", b""], 0, False
    while True:
        ready, _, _ = select.select([leader], [], [], 300)
        assert ready, "nothing is said for five minutes"
        try:
            data = os.read(leader, 65536)
        except OSError:  # the last process that had it open is gone
            break
        if not data:
            break
        drawn += data.count(b"left")
        parts[resized] += data
        if drawn >= 2 and not resized:
            # Stopped, so that no more is drawn for the old width, however late this process has read.
            process.send_signal(signal.SIGSTOP)
            os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
            while select.select([leader], [], [], 0)[0]:
                parts[resized] += os.read(leader, 65536)
            resize(leader, 40)
            process.send_signal(signal.SIGCONT)
            resized = True
    assert process.wait() == 0, parts
    return [part.decode() for part in parts]


def resize(leader, columns):
    fcntl.ioctl(leader, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))


def said(text):
    """Lines that stay: what the bar draws is erased."""
    text = re.sub(r"\r\x1b\[K[^\r\n]*(?=\r\x1b\[K)", "", text).replace("\r\x1b[K", "")
    return [" ".join(line.split()) for line in text.replace("\r\n", "\n").split("\n") if line.strip()]


command = sys.argv[1:]
first, second = run(command, "xterm")
bars = [re.findall(r"\x1b\[K([^\r\n]+)(?=\r\x1b)", part) for part in (first, second)]
assert all(len(bar) <= 99 for bar in bars[0]) and max(map(len, bars[0])) > 60, bars[0]
assert len(bars[1]) > 1 and all(len(bar) <= 39 for bar in bars[1][1:]), bars[1]
assert re.search(r"^\[#*\.*\] step \d+/\d+  loss .*  [\d.]+ steps/s  [\d:]+( s)? left$", bars[0][-1]), bars[0]
assert not re.search(r"\x1b\[[0-9;]*m", first + second)
lines = [line for line in said(first + second) if not line.startswith("one.par:")]
print(f"clever: bar drawn, resized, lines {len(lines)}")
print("\n".join(lines))
for name, words, term in (("dumb", [], "dumb"), ("quiet", ["-q"], "xterm")):
    text = "".join(run(command + words, term))
    lines = [line for line in said(text) if not line.startswith("one.par:")]
    print(f"{name}: {'bar' if chr(27) in text else 'no bar'}, lines {len(lines)}")
