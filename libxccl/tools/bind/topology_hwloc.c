/* SPDX-License-Identifier: BSD-3-Clause */
/* Where the GPUs lie: cores, NUMA domain and NIC next to each, by hwloc. */
#include <errno.h>
#include <hwloc.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bind.h"

enum { CLASS_DISPLAY = 0x03, VENDOR_ID_NVIDIA = 0x10de, VENDOR_ID_AMD = 0x1002 };

/*
 * Device libraries of the vendors would be opened, and a GPU initialised, for what PCI says
 * already; x86 visits every core to ask it. Both cost more than all the rest.
 */
static const char *const unwanted[] = {"cuda", "nvml", "rsmi", "levelzero", "opencl", "gl", "x86"};

const char *topology_version(void)
{
    static char text[32];
    unsigned    version = hwloc_get_api_version();

    snprintf(text, sizeof(text), "hwloc %u.%u", version >> 16, (version >> 8) & 0xff);
    return text;
}

bool topology_is_there(void)
{
    return true;
}

static void to_cpus(hwloc_const_bitmap_t bitmap, struct cpus *out_p)
{
    int cpu;

    cpus_clear(out_p);
    hwloc_bitmap_foreach_begin(cpu, bitmap)
    {
        if (cpu >= CPUS_MAX) {
            break;
        }
        cpus_add(out_p, cpu);
    }
    hwloc_bitmap_foreach_end();
}

static bool load(const char *source, hwloc_topology_t *topology_p)
{
    const char      *plugins = getenv("HWLOC_PLUGINS_PATH");
    hwloc_topology_t topology;
    int              status = 0;

    /* Plugins that are files of their own would be opened before they can be refused. */
    setenv("HWLOC_PLUGINS_PATH", "/dev/null", 1);
    status = hwloc_topology_init(&topology);
    if (plugins != NULL) {
        setenv("HWLOC_PLUGINS_PATH", plugins, 1);
    } else {
        unsetenv("HWLOC_PLUGINS_PATH");
    }
    if (status != 0) {
        fprintf(stderr, "xccl-bind: hwloc cannot start\n");
        return false;
    }
    /* A synthetic topology has no slash. */
    if ((source != NULL) && (strchr(source, '/') != NULL) && (access(source, R_OK) != 0)) {
        fprintf(stderr, "xccl-bind: --topology: cannot read '%s': %s\n", source, strerror(errno));
        hwloc_topology_destroy(topology);
        return false;
    }
    if (source != NULL) {
        status = (access(source, R_OK) == 0) ? hwloc_topology_set_xml(topology, source)
                                             : hwloc_topology_set_synthetic(topology, source);
    }
#if HWLOC_API_VERSION >= 0x00020100
    for (size_t i = 0; i < sizeof(unwanted) / sizeof(unwanted[0]); i++) {
        hwloc_topology_set_components(topology, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST,
                                      unwanted[i]);
    }
#endif
    hwloc_topology_set_flags(topology, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
    hwloc_topology_set_cache_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_NONE);
    hwloc_topology_set_icache_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_NONE);
    hwloc_topology_set_io_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_ALL);
    if ((status != 0) || (hwloc_topology_load(topology) != 0)) {
        hwloc_topology_destroy(topology);
        if (source != NULL) {
            fprintf(stderr,
                    "xccl-bind: '%s' is neither an XML file of hwloc's (lstopo --of xml) nor a "
                    "synthetic topology like 'pack:2 numa:4 core:6 pu:2'\n",
                    source);
        } else {
            fprintf(stderr, "xccl-bind: hwloc cannot read this machine's topology\n");
        }
        return false;
    }
    *topology_p = topology;
    return true;
}

static bool is_gpu(hwloc_obj_t pci)
{
    const struct hwloc_pcidev_attr_s *attr = &pci->attr->pcidev;

    return ((attr->class_id >> 8) == CLASS_DISPLAY) &&
           ((attr->vendor_id == VENDOR_ID_NVIDIA) || (attr->vendor_id == VENDOR_ID_AMD));
}

static int by_address(const void *a, const void *b)
{
    const struct hwloc_pcidev_attr_s *one = &(*(hwloc_obj_t const *)a)->attr->pcidev;
    const struct hwloc_pcidev_attr_s *two = &(*(hwloc_obj_t const *)b)->attr->pcidev;
    int domain = (int)one->domain - (int)two->domain, bus = one->bus - two->bus;

    return (domain != 0) ? domain : ((bus != 0) ? bus : one->dev - two->dev);
}

/* GPUs by PCI address, as drivers number them; hwloc has them in the order of the cores. */
static int list_gpus(hwloc_topology_t topology, hwloc_obj_t gpus_p[MAX_GPUS])
{
    hwloc_obj_t pci = NULL;
    int         count = 0;

    while ((count < MAX_GPUS) && ((pci = hwloc_get_next_pcidev(topology, pci)) != NULL)) {
        if (is_gpu(pci)) {
            gpus_p[count++] = pci;
        }
    }
    qsort(gpus_p, (size_t)count, sizeof(gpus_p[0]), by_address);
    return count;
}

static void read_cpus(hwloc_topology_t topology, struct machine *machine)
{
    hwloc_obj_t obj = NULL;
    int         cpu;

    to_cpus(hwloc_topology_get_topology_cpuset(topology), &machine->all);
    to_cpus(hwloc_topology_get_allowed_cpuset(topology), &machine->offered);
    while (((obj = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE, obj)) != NULL) &&
           (machine->nnumas < MAX_GPUS)) {
        if (hwloc_bitmap_iszero(obj->cpuset)) {
            continue; /* memory of a GPU */
        }
        struct numa *numa = &machine->numa[machine->nnumas++];
        hwloc_obj_t  package = hwloc_get_ancestor_obj_by_type(topology, HWLOC_OBJ_PACKAGE, obj);
        numa->number = (int)obj->os_index;
        numa->package = (package != NULL) ? (int)package->os_index : 0;
        to_cpus(obj->cpuset, &numa->cpus);
    }
    while ((obj = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_CORE, obj)) != NULL) {
        hwloc_bitmap_foreach_begin(cpu, obj->cpuset)
        {
            if (cpu < CPUS_MAX) {
                machine->core_of[cpu] = (short)obj->logical_index;
            }
        }
        hwloc_bitmap_foreach_end();
    }
}

static int bridges_above(hwloc_obj_t obj, hwloc_obj_t stop)
{
    int count = 0;

    for (hwloc_obj_t up = obj->parent; (up != NULL) && (up != stop); up = up->parent) {
        count += (up->type == HWLOC_OBJ_BRIDGE) ? 1 : 0;
    }
    return count;
}

/* hwloc's own function is for processors: devices have no depth. */
static hwloc_obj_t common_ancestor(hwloc_obj_t a, hwloc_obj_t b)
{
    for (; a->parent != NULL; a = a->parent) {
        for (hwloc_obj_t up = b; up != NULL; up = up->parent) {
            if (up == a) {
                return a;
            }
        }
    }
    return a;
}

/* How two devices are connected: the smaller, the better; the names are NCCL's. */
static int distance(hwloc_topology_t topology, hwloc_obj_t a, hwloc_obj_t b, const char **name_p)
{
    hwloc_obj_t common = common_ancestor(a, b);

    if (common->type == HWLOC_OBJ_BRIDGE) {
        int  bridges = bridges_above(a, common) + bridges_above(b, common);
        bool host = (common->attr->bridge.upstream_type == HWLOC_OBJ_BRIDGE_HOST);
        *name_p = host ? "PHB" : ((bridges <= 2) ? "PIX" : "PXB");
        return bridges + (host ? 100 : 0);
    }
    hwloc_obj_t where = hwloc_get_non_io_ancestor_obj(topology, common);
    bool        numa =
        hwloc_get_nbobjs_inside_cpuset_by_type(topology, where->cpuset, HWLOC_OBJ_NUMANODE) <= 1;
    if (numa || (hwloc_get_ancestor_obj_by_type(topology, HWLOC_OBJ_PACKAGE, where) != NULL) ||
        (where->type == HWLOC_OBJ_PACKAGE)) {
        *name_p = "NODE";
        return numa ? 200 : 300;
    }
    *name_p = "SYS";
    return 400;
}

/* A port that a program names: verbs and libfabric devices, and the Ethernet side of Slingshot. */
static bool is_fabric(hwloc_obj_t os)
{
    return (os->attr->osdev.type == HWLOC_OBJ_OSDEV_OPENFABRICS) ||
           ((os->attr->osdev.type == HWLOC_OBJ_OSDEV_NETWORK) &&
            (strncmp(os->name, "hsn", 3) == 0));
}

/* The closest fabric device; among equals, GPUs of the same place take them in turn. */
static void find_nic(hwloc_topology_t topology, hwloc_obj_t pci, int turn, struct gpu *gpu)
{
    int best = 1000, equals = 0;

    for (int pass = 0; pass < 2; pass++) {
        int         seen = 0;
        hwloc_obj_t os = NULL;

        while ((os = hwloc_get_next_osdev(topology, os)) != NULL) {
            const char *name;
            if (!is_fabric(os)) {
                continue;
            }
            int far = distance(topology, pci, os->parent, &name);
            if ((pass == 0) && (far < best)) {
                best = far;
                equals = 1;
            } else if ((pass == 0) && (far == best)) {
                equals++;
            } else if ((pass == 1) && (far == best) && (seen++ == turn % equals)) {
                snprintf(gpu->nic, sizeof(gpu->nic), "%s", os->name);
                gpu->nic_distance = name;
                return;
            }
        }
        if (equals == 0) {
            return;
        }
    }
}

static void place_gpu(hwloc_topology_t topology, hwloc_obj_t pci, struct machine *machine, int i)
{
    struct gpu *gpu = &machine->gpu[i];
    hwloc_obj_t where = hwloc_get_non_io_ancestor_obj(topology, pci);
    hwloc_obj_t package = where;
    int         turn = 0;

    if (gpu->pci[0] == '\0') {
        const struct hwloc_pcidev_attr_s *attr = &pci->attr->pcidev;
        snprintf(gpu->pci, sizeof(gpu->pci), "%04x:%02x:%02x.%x", attr->domain, attr->bus,
                 attr->dev, attr->func & 7U);
    }
    to_cpus(where->cpuset, &gpu->near);
    gpu->near_known = cpus_count(&gpu->near) > 0;
    while ((package != NULL) && (package->type != HWLOC_OBJ_PACKAGE)) {
        package = package->parent;
    }
    gpu->package = (package != NULL) ? (int)package->os_index : NO_NUMBER;
    gpu->numa =
        (hwloc_bitmap_weight(where->nodeset) == 1) ? hwloc_bitmap_first(where->nodeset) : NO_NUMBER;
    for (int other = 0; other < i; other++) {
        turn +=
            (machine->gpu[other].near_known && cpus_equal(&machine->gpu[other].near, &gpu->near))
                ? 1
                : 0;
    }
    find_nic(topology, pci, turn, gpu);
}

bool topology_read(const char *source, struct machine *machine_p)
{
    hwloc_topology_t topology;
    hwloc_obj_t      gpus[MAX_GPUS];

    if (!load(source, &topology)) {
        return false;
    }
    machine_p->known = true;
    machine_p->this_system = hwloc_topology_is_thissystem(topology);
    read_cpus(topology, machine_p);
    int count = list_gpus(topology, gpus);
    if (machine_p->ngpus == 0) { /* no driver has said anything, as with a topology from a file */
        machine_p->ngpus = count;
        machine_p->vendor = (count == 0)                                         ? VENDOR_NONE
                            : (gpus[0]->attr->pcidev.vendor_id == VENDOR_ID_AMD) ? VENDOR_AMD
                                                                                 : VENDOR_NVIDIA;
    }
    for (int i = 0; i < machine_p->ngpus; i++) {
        const char *address = machine_p->gpu[i].pci;
        hwloc_obj_t pci = (i < count) ? gpus[i] : NULL;
        if (address[0] != '\0') {
            pci = hwloc_get_pcidev_by_busidstring(topology, address);
        }
        if (pci != NULL) {
            place_gpu(topology, pci, machine_p, i);
        }
    }
    hwloc_topology_destroy(topology);
    return true;
}
