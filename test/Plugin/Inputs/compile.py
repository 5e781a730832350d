"""Compiles a model with plugins from Python: compile.py MODEL PLAN BUNDLE PLUGIN..."""
import sys

import par

par.compile(sys.argv[1], sys.argv[2], out=sys.argv[3], plugins=sys.argv[4:])
