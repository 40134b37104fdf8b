"""The format of the tests. It is a module because lit's worker processes import it."""
import re

import lit.Test
import lit.formats


# Uses of HIP's and CUDA's headers and libraries, and of device code that is compiled for the test.
GPU_CODE = r"%(plain_)?hip|%\{hip|%cuda_|%device_rt|%module|--offload-arch|fixtures/make"


class SplitTest(lit.formats.ShTest):
    """A ShTest that starts in its own directory, %t: empty, or with the parts of a test for split-file."""

    def execute(self, test, lit_config):
        with open(test.getSourcePath()) as file:
            text = file.read()
        if not test.config.loads_tools and re.search("HSA_TOOLS_LIB|Inputs/same", text):
            return lit.Test.Result(lit.Test.UNSUPPORTED, "the runtime does not load HSA_TOOLS_LIB")
        if test.config.host and re.search(GPU_CODE, text):
            return lit.Test.Result(lit.Test.UNSUPPORTED, "needs a compiler for GPUs")
        has_parts = re.search(r"(?m)^(#|//)--- ", text)
        self.preamble_commands = ["rm -rf %t", "split-file %s %t" if has_parts else "mkdir %t", "cd %t"]
        result = super().execute(test, lit_config)
        if result.code.isFailure:
            result.output = from_last_step(result.output)
        return result


def from_last_step(output):
    """The output without the RUN lines that succeeded before the one that failed, of which there can be dozens."""
    steps = list(re.finditer(r"(?m)^# RUN: at line \d+$", output))
    start = output.find("# preamble command line")
    if not steps or start < 0:
        return output
    note = f"# left out: the preamble and {len(steps) - 1} RUN lines that succeeded\n"
    return output[:start] + note + output[steps[-1].start() :]
