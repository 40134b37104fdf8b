"""The format of the tests. It is a module because lit's worker processes import it."""
import re

import lit.formats


class SplitTest(lit.formats.ShTest):
    """A ShTest that starts in its own directory, %t: empty, or with the parts of a test for split-file."""

    def execute(self, test, lit_config):
        with open(test.getSourcePath()) as file:
            has_parts = re.search(r"(?m)^(#|//)--- ", file.read())
        self.preamble_commands = ["rm -rf %t", "split-file %s %t" if has_parts else "mkdir %t", "cd %t"]
        return super().execute(test, lit_config)
