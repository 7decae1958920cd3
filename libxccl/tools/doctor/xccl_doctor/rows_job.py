# SPDX-License-Identifier: BSD-3-Clause
"""Rows of the machine and of the job itself. {names} are filled in by the check that finds it."""

from .rows import ERROR, WARNING, Row

TABLE = {
    "xccl-setting": Row(
        ERROR,
        "MPI_Init refuses a setting: {problem}",
        "correct it or unset it; xccl-info --config says what each variable takes",
    ),
    "xccl-unknown": Row(
        WARNING,
        "a variable is misspelt or left over: {problem}",
        "correct its name, or unset it",
    ),
    "xccl-unwritable": Row(
        WARNING,
        "what the environment asks for cannot be written: {problems}",
        "make the folder, or name one that is there and writable on every node of the job",
    ),
    "xccl-root": Row(
        WARNING,
        "XCCL_ROOT={root}, {why}",
        "load one module of xccl only; or unset XCCL_ROOT, and source share/xccl/env/xccl.sh of the one you mean",
    ),
    "xccl-table": Row(
        WARNING,
        "a tuning table of the installation has a mistake, and is left out: {problem}",
        "correct the table, or have the site's maintainer do so; until then jobs run without it, which may be slower",
    ),
    "site-unknown": Row(
        ERROR,
        "XCCL_SITE={site} is no site of this installation",
        "name one of these, or unset it: {sites}",
    ),
    "open-files": Row(
        WARNING,
        "a process may have {limit} files open: MPI, the vendor's library and xccl open one for each rank of a node "
        "and more; without any left, device memory is staged",
        "raise the limit in the job (ulimit -n 4096), or have the administrators do so",
    ),
    "sim-unknown": Row(
        ERROR,
        "XCCL_SIM={value} names no simulation, so no device is offered{hint}",
        "set one of {allowed}, with N devices from 1 to {most}; or unset it",
    ),
    "site-gpus": Row(
        WARNING,
        "site {site} says {wanted} GPUs per node; this machine has {found}",
        "name the right site (XCCL_SITE), or correct its site.yaml",
    ),
    "site-numa": Row(
        WARNING,
        "site {site} puts GPU {gpu} on NUMA domain {wanted}; sysfs says {found}",
        "run with --bind hwloc, and correct the site's map",
    ),
    "site-nic": Row(
        WARNING,
        "site {site} gives GPU {gpu} the NIC {nic}, which this machine does not have ({found})",
        "run with --bind hwloc, and correct the site's map",
    ),
    "site-mpi": Row(
        WARNING,
        "site {site} is described with {wanted}; the MPI found is {found} ({path})",
        "load the site's MPI, or have the site's maintainer describe this one as well",
    ),
    "site-old": Row(
        WARNING,
        "the facts of site {site} were last compared with their sources on {date}, {days} days ago",
        "have its maintainer look at them ({maintainer}), or install a newer xccl",
    ),
    "site-variable": Row(
        WARNING,
        "{settings}: site {site} says otherwise ({reason})",
        "export {values}, unless you measured that yours are better",
        meaning="variables are set to other values than the site's description has",
    ),
    "no-gpu": Row(
        WARNING,
        "no GPU was found on this machine{site}, so nothing is known of GPUs, their library and "
        "their ranks",
        "run it in a job (srun -N 1 -n 1 {options} xccl-doctor), or have it read the log of one (--log, --run)",
    ),
    "memlock": Row(
        WARNING,
        "locked memory is limited to {limit} KiB: InfiniBand cannot register buffers",
        "ulimit -l unlimited; ask the site to set it for Slurm "
        "(PropagateResourceLimitsExcept=MEMLOCK)",
    ),
    "shm-small": Row(
        WARNING,
        "/dev/shm holds {size} MiB, which is little for {ranks} ranks",
        "in a container: --shm-size=1g or --ipc=host",
    ),
    "shm-full": Row(
        ERROR,
        "{ccl} found no room in /dev/shm: {line}",
        "in a container: --shm-size=1g or --ipc=host; else remove what jobs that died left there "
        "(/dev/shm/nccl-*)",
        meaning="NCCL or RCCL found no room in /dev/shm",
    ),
    "shm-unusable": Row(
        ERROR,
        "/dev/shm {why}: MPI and the vendor's library share memory between the ranks of a node there, "
        "so that jobs fail or are slower",
        "remove what jobs that died left there (ls -l /dev/shm); in a container: --ipc=host or --shm-size=1g",
    ),
    "tmp-unusable": Row(
        ERROR,
        "{folder} {why}: Open MPI makes the folder of a job there, and does not start without",
        "make room there, or export TMPDIR=FOLDER with one that is writable on every node of the job",
        meaning="Open MPI cannot make the folder of a job in the folder for temporary files, and does not "
        "start without",
    ),
    "ranks-apart": Row(
        WARNING,
        "ranks of one machine do not reach each other's memory, so collectives and messages take "
        "slower paths: {why}",
        "start all ranks of a machine as one user in one container (apptainer exec --sharens), or "
        "give its containers the host's PID namespace (hostPID: true, docker run --pid=host)",
    ),
    "ran-by-mpi": Row(
        WARNING,
        "no rank used the vendor's library for collectives on GPU memory: {why}",
        "look at the job's log: with XCCL_LOG=info and NCCL_DEBUG=INFO it says more",
    ),
    "memory-mixed": Row(
        ERROR,
        "{host} passes host memory to {collective}, and {device} device memory in the same call",
        "pass the same kind of memory on every rank: a null pointer, and device memory that was freed, count as host "
        "memory; or set XCCL_MEMORY=mixed on all of them, which is slower",
        meaning="ranks pass different kinds of memory to a collective, and the job's log says so",
    ),
    "crash-at-end": Row(
        ERROR,
        "a communicator was destroyed after the driver had gone",
        "free communicators before MPI_Finalize, never in a static destructor",
    ),
    "job-failed": Row(
        ERROR,
        "the log is of a job that failed: {line}",
        {
            "any": "look at the log around that line; NCCL_DEBUG=INFO and XCCL_LOG=info make it say more",
            "xccl": "do what the line says; the page on troubleshooting "
            "(share/doc/xccl/docs/use/troubleshooting.md) explains it",
        },
    ),
    "log-silent": Row(
        WARNING,
        "the log ({lines}) has no line of NCCL, RCCL, UCC, libfabric or xccl: nothing can be "
        "said of that job",
        "run it again with NCCL_DEBUG=INFO XCCL_LOG=info UCC_LOG_LEVEL=INFO, or let xccl-doctor do "
        "so: --run",
    ),
    "ccl-said": Row(
        WARNING,
        "{ccl} says that something failed: {line}",
        "look at the log around that line; NCCL_DEBUG=INFO makes it say more",
        meaning="NCCL or RCCL says that something failed, and no other finding explains it",
    ),
    "xccl-said": Row(
        WARNING,
        "xccl warned: {line}",
        "do what the line says; the page on troubleshooting (share/doc/xccl/docs/use/troubleshooting.md) explains it",
    ),
    "run-hung": Row(
        ERROR,
        "the job did not end within {seconds} s",
        "try NCCL_SOCKET_IFNAME={interface} alone, then without the plugin (NCCL_NET=Socket); "
        "XCCL_LOG=info says "
        "where it stands",
    ),
    "run-failed": Row(
        ERROR,
        "the job ended with status {status}: {line}",
        "see the log: {log}",
    ),
}
