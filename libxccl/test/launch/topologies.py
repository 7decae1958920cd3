# SPDX-License-Identifier: BSD-3-Clause
"""Nodes of the sites as hwloc would describe them, made from what their operators document.

Independent of site-configs/ on purpose: a map that disagrees with the machine must fail a test.
"""

from dataclasses import dataclass, field
from xml.etree import ElementTree as Xml

NVIDIA, AMD = "10de:20b0", "1002:740c"
INFINIBAND, SLINGSHOT = "15b3:101b", "17db:0501"
NETWORK, OPENFABRICS = "2", "3"


@dataclass
class Gpu:
    bus: int
    numa: int
    nic: str = ""  # behind the same PCIe switch


@dataclass
class Node:
    packages: int
    numas: int  # in a package
    cores: int  # in a NUMA domain
    vendor: str
    gpus: list
    smt: int = 2
    storage: dict = field(default_factory=dict)  # NUMA domain: names of NICs that are no GPU's

    @property
    def total_cores(self):
        return self.packages * self.numas * self.cores

    def pus(self, numa):
        """Linux numbers the first thread of every core before any second one."""
        first = numa * self.cores
        return [
            core + self.total_cores * thread
            for core in range(first, first + self.cores)
            for thread in range(self.smt)
        ]


def gpus(*rows):
    return [Gpu(*row) for row in rows]


# PCI bus, NUMA domain, NIC behind the same switch; by GPU number.
NODES = {
    "juwels-booster": Node(
        packages=2, numas=4, cores=6, vendor=NVIDIA,
        gpus=gpus(
            (0x03, 3, "mlx5_0"), (0x44, 1, "mlx5_1"), (0x84, 7, "mlx5_2"), (0xC4, 5, "mlx5_3"),
        ),
    ),
    "frontier": Node(
        packages=1, numas=4, cores=16, vendor=AMD,
        gpus=gpus(
            (0xC1, 3, "hsn0"), (0xC6, 3), (0xC9, 1, "hsn1"), (0xCE, 1),
            (0xD1, 0, "hsn2"), (0xD6, 0), (0xD9, 2, "hsn3"), (0xDE, 2),
        ),
    ),
    "dgx-a100": Node(
        packages=2, numas=4, cores=16, vendor=NVIDIA,
        gpus=gpus(
            (0x07, 3, "mlx5_0"), (0x0F, 3, "mlx5_1"), (0x47, 1, "mlx5_2"), (0x4E, 1, "mlx5_3"),
            (0x87, 7, "mlx5_6"), (0x90, 7, "mlx5_7"), (0xB7, 5, "mlx5_8"), (0xBD, 5, "mlx5_9"),
        ),
        storage={3: ["mlx5_4"], 7: ["mlx5_10"]},
    ),
    "dgx-h100": Node(
        packages=2, numas=1, cores=56, vendor=NVIDIA,
        gpus=gpus(
            (0x1B, 0, "mlx5_0"), (0x43, 0, "mlx5_3"), (0x52, 0, "mlx5_4"), (0x61, 0, "mlx5_5"),
            (0x9D, 1, "mlx5_6"), (0xC3, 1, "mlx5_9"), (0xD1, 1, "mlx5_10"),
            (0xDF, 1, "mlx5_11"),
        ),
        storage={0: ["mlx5_1", "mlx5_2"], 1: ["mlx5_7", "mlx5_8"]},
    ),
}  # fmt: skip


def bitmap(bits):
    """hwloc's text of a set: words of 32 bits, the highest first."""
    words = [0] * (max(bits, default=0) // 32 + 1)
    for bit in bits:
        words[bit // 32] |= 1 << (bit % 32)
    return ",".join(f"0x{word:08x}" for word in reversed(words))


class Writer:
    def __init__(self, node):
        self.node, self.last = node, 0

    def add(self, parent, type_name, pus=None, numas=None, **attributes):
        self.last += 1
        given = {key: str(value) for key, value in attributes.items()}
        if pus is not None:
            given.update(cpuset=bitmap(pus), complete_cpuset=bitmap(pus))
            given.update(nodeset=bitmap(numas), complete_nodeset=bitmap(numas))
        return Xml.SubElement(parent, "object", type=type_name, gp_index=str(self.last), **given)

    def device(self, parent, bus, kind, name="", os_type=""):
        pci = self.add(
            parent,
            "PCIDev",
            pci_busid=f"0000:{bus:02x}:00.0",
            pci_type=f"{kind} [0000:0000] 00",
            pci_link_speed="0.0",
        )
        if name:
            self.add(pci, "OSDev", name=name, osdev_type=os_type)

    def nic(self, parent, bus, name):
        if name.startswith("hsn"):
            self.device(parent, bus, f"0200 [{SLINGSHOT}]", name, NETWORK)
        elif name:
            self.device(parent, bus, f"0207 [{INFINIBAND}]", name, OPENFABRICS)

    def switch(self, parent, gpu):
        """A host bridge, a port of it, and below that the GPU and its NIC."""
        low = gpu.bus - 1
        span = f"0000:[{low:02x}-{gpu.bus + 1:02x}]"
        host = self.add(parent, "Bridge", bridge_type="0-1", depth=0, bridge_pci=span)
        port = self.add(
            host,
            "Bridge",
            bridge_type="1-1",
            depth=1,
            pci_busid=f"0000:{low:02x}:01.0",
            pci_type="0604 [1000:c010] [0000:0000] 00",
            pci_link_speed="0.0",
            bridge_pci=f"0000:[{gpu.bus:02x}-{gpu.bus + 1:02x}]",
        )
        self.device(port, gpu.bus, f"0302 [{self.node.vendor}]")
        self.nic(port, gpu.bus + 1, gpu.nic)

    def numa_domain(self, package, numa):
        node, pus = self.node, self.node.pus(numa)
        place = package
        if node.numas > 1:
            place = self.add(package, "Group", pus, [numa], kind=0, subkind=0)
        self.add(place, "NUMANode", pus, [numa], os_index=numa, local_memory=1 << 30)
        for at in range(0, len(pus), node.smt):
            core = self.add(place, "Core", pus[at : at + node.smt], [numa], os_index=pus[at])
            for pu in pus[at : at + node.smt]:
                self.add(core, "PU", [pu], [numa], os_index=pu)
        for gpu in node.gpus:
            if gpu.numa == numa:
                self.switch(place, gpu)
        for at, name in enumerate(node.storage.get(numa, [])):
            bus = 0x10 + 0x80 * (numa * 2 // (node.packages * node.numas)) + 2 * at
            span = f"0000:[{bus:02x}-{bus:02x}]"
            host = self.add(place, "Bridge", bridge_type="0-1", depth=0, bridge_pci=span)
            self.nic(host, bus, name)

    def write(self, path):
        node = self.node
        numas = list(range(node.packages * node.numas))
        top = Xml.Element("topology", version="2.0")
        everything = [pu for numa in numas for pu in node.pus(numa)]
        machine = self.add(top, "Machine", everything, numas, os_index=0)
        machine.set("allowed_cpuset", bitmap(everything))
        machine.set("allowed_nodeset", bitmap(numas))
        for number in range(node.packages):
            inside = numas[number * node.numas : (number + 1) * node.numas]
            pus = [pu for numa in inside for pu in node.pus(numa)]
            package = self.add(machine, "Package", pus, inside, os_index=number)
            for numa in inside:
                self.numa_domain(package, numa)
        text = Xml.tostring(top, encoding="unicode")
        head = '<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE topology SYSTEM "hwloc2.dtd">\n'
        path.write_text(head + text.replace("><", ">\n<") + "\n")
        return path


def write_xml(site, folder):
    """The XML of a site's node; its path."""
    return Writer(NODES[site]).write(folder / f"{site}.xml")
