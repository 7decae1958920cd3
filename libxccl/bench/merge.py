# SPDX-License-Identifier: BSD-3-Clause
"""Put the bars of several programs into one file: merge.py OUT.json BARS.json ..."""

import json
import sys


def main(out, *files):
    runs = []
    for name in files:
        with open(name) as source:
            runs.append(json.load(source))
    with open(out, "w") as target:
        json.dump({"schema": "xccl-bars-1", "runs": runs}, target, indent=1)
        target.write("\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
