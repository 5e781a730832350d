#!/usr/bin/env python3
"""Forwards frames between the devices of this network namespace, each after some milliseconds.

    relay.py --delay MS DEVICE...
    relay.py --plain DEVICE...     first, on either end: the kernel then makes frames that can be forwarded
"""
import argparse
import collections
import fcntl
import select
import socket
import struct
import time

SIOCETHTOOL = 0x8946
SET_SUMS, SET_SEGMENTS, SET_GENERIC_SEGMENTS = 0x17, 0x1F, 0x24
ALL_FRAMES, OUTGOING = 3, 4
DEEPEST = 4096  # frames under way in one direction; more are lost, as on any link


def make_plain(device):
    """No checksums and no cutting of frames that are left to a card, since no card follows."""
    import array
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        for command in (SET_SUMS, SET_SEGMENTS, SET_GENERIC_SEGMENTS):
            value = array.array("B", struct.pack("II", command, 0))
            fcntl.ioctl(control, SIOCETHTOOL, struct.pack("16sP", device.encode(), value.buffer_info()[0]))


def open_port(device):
    port = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ALL_FRAMES))
    port.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
    port.bind((device, 0))
    port.setblocking(False)
    return port


def take(port, others, queue, delay):
    for _ in range(64):
        try:
            frame, (_, _, kind, *_) = port.recvfrom(65536)
        except BlockingIOError:
            return
        if kind != OUTGOING and len(queue) < DEEPEST * len(others):
            queue.append((time.monotonic() + delay, others, frame))


def relay(devices, delay):
    ports = {device: open_port(device) for device in devices}
    queue = collections.deque()  # in order of time, since all frames wait equally long
    while True:
        wait = max(0, queue[0][0] - time.monotonic()) if queue else None
        for port in select.select(list(ports.values()), [], [], wait)[0]:
            take(port, [other for other in ports.values() if other is not port], queue, delay)
        while queue and queue[0][0] <= time.monotonic():
            _, others, frame = queue.popleft()
            for other in others:
                try:
                    other.send(frame)
                except OSError:
                    pass  # its link is down, or its queue full: the frame is lost


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plain", action="store_true")
    parser.add_argument("--delay", type=float, default=0, metavar="MS")
    parser.add_argument("devices", nargs="+")
    options = parser.parse_args()
    if options.plain:
        for device in options.devices:
            make_plain(device)
    else:
        relay(options.devices, options.delay / 1000)


main()
