import sys

sys.path.insert(0, sys.argv[1])
import par

try:
    par.export(None, (), "model.onnx")
except par.Error as error:
    print(error)
    print("exit code", error.code)
