# SPDX-License-Identifier: BSD-3-Clause
"""Arrays in device memory for mpi4py, as CuPy's, and mpi4py's own tests with them.

Used by mpi4py_device.py, and by mpi4py_suite.py inside a rank. CuPy itself needs a real GPU.
"""

import array
import ctypes
import types

from mpi4py import MPI

KINDS = {**dict.fromkeys("bhilq", "i"), **dict.fromkeys("BHILQ", "u"), **dict.fromkeys("fd", "f")}


class Driver:
    """The driver's library, opened by the first array; its device is current in this thread."""

    library = None

    @classmethod
    def open(cls):
        cls.library = ctypes.CDLL("libcuda.so.1")
        device, context, count = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_int()
        cls.call("cuInit", 0)
        cls.call("cuDeviceGetCount", ctypes.byref(count))
        cls.call("cuDeviceGet", ctypes.byref(device), MPI.COMM_WORLD.rank % count.value)
        cls.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        cls.call("cuCtxSetCurrent", context)

    @classmethod
    def call(cls, name, *arguments):
        if cls.library is None:
            cls.open()
        status = getattr(cls.library, name)(*arguments)
        assert status == 0, f"{name} failed with status {status}"


class DeviceArray:
    """A one-dimensional array in device memory, made and used as array.array is."""

    made = 0  # how many there were

    def __init__(self, typecode, values):
        host = array.array(typecode, values)
        self.typecode, self.itemsize, self.count = typecode, host.itemsize, len(host)
        pointer = ctypes.c_uint64()
        size = ctypes.c_size_t(max(1, self.itemsize * self.count))
        Driver.call("cuMemAlloc_v2", ctypes.byref(pointer), size)
        self.pointer = pointer.value
        self.put(0, host)
        DeviceArray.made += 1

    def __del__(self):
        if Driver is not None and getattr(self, "pointer", None):
            Driver.call("cuMemFree_v2", ctypes.c_uint64(self.pointer))

    @property
    def __cuda_array_interface__(self):
        return {
            "version": 3,
            "shape": (self.count,),
            "typestr": f"<{KINDS[self.typecode]}{self.itemsize}",
            "data": (self.pointer, False),
            "strides": None,
        }

    def put(self, first, host):
        address, count = host.buffer_info()
        if count > 0:
            there = ctypes.c_uint64(self.pointer + first * self.itemsize)
            size = ctypes.c_size_t(count * self.itemsize)
            Driver.call("cuMemcpyHtoD_v2", there, ctypes.c_void_p(address), size)

    def tolist(self):
        host = array.array(self.typecode, [0] * self.count)
        size = ctypes.c_size_t(self.count * self.itemsize)
        address = ctypes.c_void_p(host.buffer_info()[0])
        if self.count > 0:
            Driver.call("cuMemcpyDtoH_v2", address, ctypes.c_uint64(self.pointer), size)
        return host.tolist()

    def buffer_info(self):
        return self.pointer, self.count

    def __len__(self):
        return self.count

    def __iter__(self):
        return iter(self.tolist())

    def __getitem__(self, index):
        return self.tolist()[index]

    def __setitem__(self, index, value):
        values = self.tolist()
        values[index] = value
        assert len(values) == self.count
        self.put(0, array.array(self.typecode, values))

    def __eq__(self, other):
        return self.tolist() == list(other)

    __hash__ = None


def attached_in_host_memory(attach):
    """The buffer for MPI_Bsend: MPI itself writes there, and does not know devices."""

    def attach_buffer(memory):
        inner = getattr(memory, "array", memory)
        if isinstance(inner, DeviceArray):
            memory = bytearray(inner.count * inner.itemsize)
        return attach(memory)

    return attach_buffer


def tensors_on_device(make_dl_tensor, device_type):
    def make(obj):
        tensor = make_dl_tensor(obj)
        if isinstance(obj, DeviceArray):
            tensor.device.device_type = device_type
        return tensor

    return make


def put_into_suite():
    """From here on the arrays of mpi4py's tests are in device memory; their folder is in the path.

    The backends keep the names of those on host memory, since the tests leave out much for CuPy's.
    """
    import arrayimpl
    import dlpackimpl

    class DevicePack(arrayimpl.DLPackArray):
        def __dlpack_device__(self):
            return (dlpackimpl.DLDeviceType.kDLCUDA, 0)

        def __dlpack__(self, stream=None):
            assert stream == -1
            return dlpackimpl.make_py_capsule(
                dlpackimpl.make_dl_managed_tensor(self.array), owned=True
            )

    arrayimpl.array = types.SimpleNamespace(array=DeviceArray)
    arrayimpl.ArrayBackends[:] = [arrayimpl.ArrayArray, DevicePack]
    dlpackimpl.make_dl_tensor = tensors_on_device(
        dlpackimpl.make_dl_tensor, dlpackimpl.DLDeviceType.kDLCUDA
    )
    MPI.Attach_buffer = attached_in_host_memory(MPI.Attach_buffer)
