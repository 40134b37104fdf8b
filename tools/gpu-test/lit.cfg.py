# lit builds the programs and checks their results (gpu_test.py). The scripts `build` and `check` start it.
import os
import sys

sys.path.append(os.path.dirname(os.path.abspath(__file__)))
import gpu_test

config.name = "gpu-test"
config.suffixes = [".cu"]
config.test_source_root = os.path.dirname(os.path.abspath(__file__))
config.test_exec_root = lit_config.params["work"]
config.test_format = gpu_test.GpuTest(**lit_config.params)
