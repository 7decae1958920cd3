/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI_Pack and MPI_Unpack between buffers of one device write what they write on the host, and no
 * other byte.
 * Usage: mpi_packing cuda|rocm|none [PATH [apart]]
 * PATH: what xccl_mpi_last_message_path() is to say. apart: what is packed is on another device.
 */
#include <stdlib.h>
#include <string.h>

#include "support.h"

enum { ROOM = 1 << 17, AHEAD = 7 /* bytes that are packed before: nothing is aligned */ };

static const char *path;
static bool        apart;

static struct mt_twin twin_make(int salt)
{
    char *host = malloc(ROOM);

    for (int i = 0; i < ROOM; i++) {
        host[i] = (char)(i * 31 + i / 251 + salt);
    }
    return mt_twin_of(host, ROOM);
}

static void compare(const char *name, MPI_Datatype type, int count)
{
    struct mt_twin from = twin_make(1), to = twin_make(3), packed;
    int            host = AHEAD, device = AHEAD;

    if (apart) {
        mt_memory_open(mt_runtime(), mt_rank() + 1);
    }
    packed = twin_make(2);
    if (apart) {
        mt_memory_open(mt_runtime(), mt_rank());
    }
    MPI_Pack(from.host, count, type, packed.host, ROOM, &host, MPI_COMM_WORLD);
    MPI_Pack(from.device, count, type, packed.device, ROOM, &device, MPI_COMM_WORLD);
    mt_expect_message_path(path, name);
    mt_expect(device == host, "%s: MPI_Pack ends at %d, not %d", name, device, host);
    mt_twin_expect(&packed, name);
    host = device = AHEAD;
    MPI_Unpack(packed.host, ROOM, &host, to.host, count, type, MPI_COMM_WORLD);
    MPI_Unpack(packed.device, ROOM, &device, to.device, count, type, MPI_COMM_WORLD);
    mt_expect_message_path(path, name);
    mt_expect(device == host, "%s: MPI_Unpack ends at %d, not %d", name, device, host);
    mt_twin_expect(&to, name);
    mt_twin_expect(&from, name);
    mt_twin_free(&from);
    mt_twin_free(&packed);
    mt_twin_free(&to);
}

static void compare_types(void)
{
    const int    lengths[] = {3, 1, 5, 2}, at[] = {0, 5, 9, 30};
    MPI_Datatype vector, rows, indexed, wide, real, reals;

    MPI_Type_vector(500, 1, 3, MPI_INT, &vector);
    MPI_Type_vector(20, 1000, 1500, MPI_CHAR, &rows);
    MPI_Type_indexed(4, lengths, at, MPI_SHORT, &indexed);
    MPI_Type_create_resized(indexed, 0, 80, &wide);
    MPI_Type_create_f90_real(6, 30, &real); /* predefined, and not to be freed */
    MPI_Type_vector(50, 1, 2, real, &reals);
    MPI_Type_commit(&reals);
    MPI_Type_commit(&vector);
    MPI_Type_commit(&rows);
    MPI_Type_commit(&wide);
    compare("bytes", MPI_BYTE, 100000);
    compare("an int", MPI_INT, 1);
    compare("every third int", vector, 4);
    compare("rows", rows, 1);
    compare("several rows", rows, 3);
    compare("irregular", wide, 100);
    compare("reals of Fortran", reals, 2);
    MPI_Type_free(&reals);
    MPI_Type_free(&vector);
    MPI_Type_free(&rows);
    MPI_Type_free(&indexed);
    MPI_Type_free(&wide);
}

#ifndef MPICH_VERSION /* which writes behind the buffer */
static void expect_no_room(void)
{
    struct mt_twin from = twin_make(1), packed = twin_make(2);
    int            host = ROOM - 10, device = host, wanted, code;

    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    wanted = MPI_Pack(from.host, 11, MPI_BYTE, packed.host, ROOM, &host, MPI_COMM_WORLD);
    code = MPI_Pack(from.device, 11, MPI_BYTE, packed.device, ROOM, &device, MPI_COMM_WORLD);
    mt_expect((code == MPI_SUCCESS) == (wanted == MPI_SUCCESS), "11 bytes into 10: code %d", code);
    mt_expect(device == host, "11 bytes into 10: position %d, not %d", device, host);
    mt_twin_expect(&packed, "11 bytes into 10");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    mt_twin_free(&from);
    mt_twin_free(&packed);
}
#endif

int main(int argc, char **argv)
{
    mt_begin(&argc, &argv, true);
    path = (argc > 2) ? argv[2] : NULL;
    apart = (argc > 3);
    compare_types();
    compare_types(); /* in memory seen before, by a kernel that is ready */
#ifndef MPICH_VERSION
    expect_no_room();
#endif
    mt_summary();
    MPI_Finalize();
    return mt_status();
}
