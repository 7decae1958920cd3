# SPDX-License-Identifier: BSD-3-Clause
# xccl-doctor: a Python package beside the library, and a script in bin/ that finds it from there.
