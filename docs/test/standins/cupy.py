# SPDX-License-Identifier: BSD-3-Clause
"""What the example uses of CuPy, which itself needs a real GPU: arrays that hold memory alone."""

import types

from mpi4py_arrays import DeviceArray, Driver

TYPECODES = {"float32": "f", "int32": "i"}


class Device:
    def __init__(self, number):
        self.number = number

    def use(self):
        Driver.open()


def full(count, value, dtype):
    return DeviceArray(TYPECODES[dtype], [value] * count)


def asnumpy(array):
    """The example takes nothing of it but tolist(), which copies from the device."""
    return array


cuda = types.SimpleNamespace(
    Device=Device,
    runtime=types.SimpleNamespace(getDeviceCount=lambda: 4),
    get_current_stream=lambda: types.SimpleNamespace(synchronize=lambda: None),
)
