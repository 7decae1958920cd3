#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The first process of a test host, and the client that runs commands there, in place of ssh.

    host.py serve SOCKET USER   runs what it is asked to, under this user's number
    host.py run HOST COMMAND ...

The client passes its standard files and a line for the shell to the host's socket, and ends with the
command's status. As with ssh, nothing of the client's environment reaches the command, and the
command is ended when the client goes.
"""

import array
import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

GRACE_SECONDS = 2


def end_session(process):
    """What is left in the session of a command: first asked to end, then made to."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=GRACE_SECONDS)
            return


def end_with_client(connection, process):
    """The client sends nothing more: its end is all that can be read."""
    with contextlib.suppress(OSError):
        connection.recv(1)
    if process.poll() is None:
        end_session(process)


def receive(connection):
    """The command, and the client's three standard files."""
    size = array.array("i").itemsize
    text, ancillary, _, _ = connection.recvmsg(1 << 17, socket.CMSG_LEN(3 * size))
    files = array.array("i")
    for _, _, data in ancillary:
        files.frombytes(data[: len(data) - len(data) % size])
    return text.decode(), list(files)


def answer(connection):
    command, files = receive(connection)
    process = subprocess.Popen(
        ["sh", "-c", command],
        stdin=files[0],
        stdout=files[1],
        stderr=files[2],
        start_new_session=True,
    )
    for file in files:
        os.close(file)
    threading.Thread(target=end_with_client, args=(connection, process), daemon=True).start()
    status = process.wait()
    with contextlib.suppress(OSError):
        connection.sendall(str(128 - status if status < 0 else status).encode())
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()


def serve(path, user):
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(path + ".new")
    os.chmod(path + ".new", 0o666)
    listener.listen()
    os.rename(path + ".new", path)  # who sees it can connect
    os.setgroups([])
    os.setgid(user)
    os.setuid(user)
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=answer, args=(connection,), daemon=True).start()


def run(host, words):
    """Words are joined as ssh does: the shell of the host takes them apart."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.connect(str(Path(__file__).resolve().parent / f"{host}.socket"))
    files = array.array("i", [0, 1, 2])
    connection.sendmsg([" ".join(words).encode()], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, files)])
    status = connection.recv(16)
    return int(status) if status else 255


def main(verb, name, *words):
    if verb == "serve":
        serve(name, int(words[0]))
    return run(name, words)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
