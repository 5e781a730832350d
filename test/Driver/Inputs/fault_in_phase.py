"""Ends par-compile by a signal in the phase that follows "timing PHASE", and prints what it said:
fault_in_phase.py PHASE par-compile ...

Later phases may have begun by then, but hardly the last."""
import signal
import subprocess
import sys

compiler = subprocess.Popen([*sys.argv[2:], "--timing"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
for line in compiler.stdout:
    if line.startswith(f"timing  {sys.argv[1]} "):
        compiler.send_signal(signal.SIGSEGV)
        break
_, said = compiler.communicate(timeout=300)
print(said, end="")
print("exit", compiler.returncode)
