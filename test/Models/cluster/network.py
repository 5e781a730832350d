"""Hosts made of network namespaces of this one, each on a port of a switch. Needs root and ip; for rates tc."""
import os
import pathlib
import signal
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
OPEN_SOCKETS = {"01": "established", "0A": "listening"}


def sh(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


class Network:
    """`hosts` is a letter each; host "a" has 10.77.0.1, and so on. `rate` ("1gbit") holds for each direction of each
    host's link. With `delay`, milliseconds that each frame takes, a relay forwards frames instead of a bridge."""

    def __init__(self, hosts="ab", rate=None, delay=0):
        self.hosts, self.relay = hosts, None
        self.names = {host: f"par-{os.getpid()}-{host}" for host in hosts}
        self.switch = f"par-{os.getpid()}-switch"
        self.address = {host: f"10.77.0.{1 + place}" for place, host in enumerate(hosts)}
        # The end of a script by a signal takes the namespaces along.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
        try:
            self.build(delay)
            if rate:
                self.limit(rate)
        except BaseException:
            self.close()
            raise

    def build(self, delay):
        for name in (self.switch, *self.names.values()):
            sh("ip", "netns", "add", name)
        if not delay:
            sh("ip", "-n", self.switch, "link", "add", "bridge", "type", "bridge")
            sh("ip", "-n", self.switch, "link", "set", "bridge", "up")
        for host, name in self.names.items():
            port = f"port-{host}"
            sh("ip", "-n", self.switch, "link", "add", port, "type", "veth", "peer", "name", "net", "netns", name)
            sh("ip", "-n", name, "addr", "add", self.address[host] + "/24", "dev", "net")
            for device in ("net", "lo"):
                sh("ip", "-n", name, "link", "set", device, "up")
            if not delay:
                sh("ip", "-n", self.switch, "link", "set", port, "master", "bridge")
            sh("ip", "-n", self.switch, "link", "set", port, "up")
        if delay:
            self.delay(delay)

    def delay(self, milliseconds):
        relay = [sys.executable, str(HERE / "relay.py")]
        for host in self.hosts:
            sh(*self.inside(host), *relay, "--plain", "net")
        ports = [f"port-{host}" for host in self.hosts]
        inside = ["ip", "netns", "exec", self.switch]
        self.relay = subprocess.Popen([*inside, *relay, "--delay", str(milliseconds), *ports])
        time.sleep(0.3)

    def limit(self, rate):
        # tbf hands out its tokens at the clock's ticks: a bucket must hold those of one.
        burst = "8mb" if rate == "10gbit" else "1mb" if rate.endswith("gbit") else "16kb"
        ports = [(self.switch, f"port-{host}") for host in self.hosts]
        for name, device in [(name, "net") for name in self.names.values()] + ports:
            sh("tc", "-n", name, "qdisc", "replace", "dev", device, "root", "tbf", "rate", rate, "burst", burst,
               "latency", "100ms")

    def inside(self, host):
        return ["ip", "netns", "exec", self.names[host]]

    def link(self, host, state):
        """The cable of a host: "up" or "down"."""
        sh("ip", "-n", self.switch, "link", "set", f"port-{host}", state)

    def processes(self, host):
        done = subprocess.run(["ip", "netns", "pids", self.names[host]], capture_output=True, text=True, check=False)
        return [int(pid) for pid in done.stdout.split()]

    def kill(self, host):
        """All that runs on a host."""
        for pid in self.processes(host):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def ranks_left(self):
        found = []
        for host in self.hosts:
            for pid in self.processes(host):
                try:
                    if pathlib.Path(f"/proc/{pid}/comm").read_text().startswith("par-run"):
                        found.append(f"rank {pid} on {host}")
                except OSError:
                    pass  # it has ended since
        return found

    def left(self):
        """Processes of a job that are still there, and sockets that listen or are connected."""
        found = []
        for host in self.hosts:
            found += [f"process {pid} on {host}" for pid in self.processes(host)]
            for line in sh(*self.inside(host), "cat", "/proc/net/tcp").splitlines()[1:]:
                state = OPEN_SOCKETS.get(line.split()[3])
                if state:
                    found.append(f"{state} socket {line.split()[1]} on {host}")
        return found

    def close(self):
        for host in self.hosts:
            self.kill(host)
        if self.relay:
            self.relay.terminate()
            self.relay.wait()
        for name in (*self.names.values(), self.switch):
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)
