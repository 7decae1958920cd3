/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A derived datatype that the program frees while a call on device memory still needs it, which MPI
 * allows, and others that may take its handle. mpi_f08 does so itself for sections of arrays.
 * Usage: mpi_handles cuda|rocm|none CASE [FOLDER]
 */
#include <stdio.h>
#include <string.h>

#include "support.h"

enum { COUNT = 100, ROOM = 2 * COUNT };

static const char *folder = ".";

static int *make(bool filled)
{
    int  host[ROOM];
    int *buffer = mt_alloc(MT_DEVICE, sizeof(host));

    for (int i = 0; i < ROOM; i++) {
        host[i] = filled ? i + 1 : MT_UNTOUCHED;
    }
    mt_put(buffer, MT_DEVICE, host, sizeof(host));
    return buffer;
}

/* COUNT integers with a hole behind each. */
static MPI_Datatype holes(void)
{
    MPI_Datatype type;

    MPI_Type_vector(COUNT, 1, 2, MPI_INT, &type);
    MPI_Type_commit(&type);
    return type;
}

static void free_and_make_others(MPI_Datatype *type)
{
    MPI_Type_free(type);
    for (int i = 0; i < 8; i++) {
        MPI_Datatype other;
        MPI_Type_contiguous(3, MPI_CHAR, &other);
        MPI_Type_commit(&other);
        if (i % 2 == 1) {
            MPI_Type_free(&other);
        }
    }
}

/* The first COUNT values, each before a hole. */
static void expect(const int *buffer)
{
    int host[ROOM], wrong = 0;

    mt_get(host, buffer, MT_DEVICE, sizeof(host));
    for (int i = 0; i < ROOM; i++) {
        wrong += host[i] != ((i % 2 == 0) ? i / 2 + 1 : MT_UNTOUCHED);
    }
    mt_expect(wrong == 0, "%d of %d integers are wrong", wrong, ROOM);
}

static void case_receive(void)
{
    int         *in = make(true), *out = make(false);
    MPI_Datatype type = holes();
    MPI_Request  request;

    MPI_Irecv(out, 1, type, 0, 0, MPI_COMM_SELF, &request);
    free_and_make_others(&type);
    MPI_Send(in, COUNT, MPI_INT, 0, 0, MPI_COMM_SELF);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    expect(out);
}

static void case_persistent(void)
{
    int         *in = make(true), *out = make(false);
    MPI_Datatype type = holes();
    MPI_Request  request;

    MPI_Recv_init(out, 1, type, 0, 0, MPI_COMM_SELF, &request);
    free_and_make_others(&type);
    MPI_Start(&request);
    MPI_Send(in, COUNT, MPI_INT, 0, 0, MPI_COMM_SELF);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Request_free(&request);
    expect(out);
}

static void case_window(void)
{
    int         *memory, *out = make(false);
    MPI_Datatype type = holes();
    MPI_Win      win;

    MPI_Win_allocate(sizeof(int) * COUNT, sizeof(int), MPI_INFO_NULL, MPI_COMM_SELF, &memory, &win);
    for (int i = 0; i < COUNT; i++) {
        memory[i] = i + 1;
    }
    MPI_Win_fence(0, win);
    MPI_Get(out, 1, type, 0, 0, COUNT, MPI_INT, win);
    free_and_make_others(&type);
    MPI_Win_fence(0, win);
    expect(out);
    MPI_Win_free(&win);
}

static MPI_File open_file(void)
{
    char     path[4096];
    MPI_File file;
    int     *in = make(true);

    snprintf(path, sizeof(path), "%s/handles.tmp", folder);
    MPI_File_open(MPI_COMM_SELF, path, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE,
                  MPI_INFO_NULL, &file);
    MPI_File_write_at(file, 0, in, COUNT, MPI_INT, MPI_STATUS_IGNORE);
    return file;
}

static void case_file(void)
{
    MPI_File     file = open_file();
    int         *out = make(false);
    MPI_Datatype type = holes();
    MPI_Request  request;

    MPI_File_iread_at(file, 0, out, 1, type, &request);
    free_and_make_others(&type);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    expect(out);
    MPI_File_close(&file);
}

static void case_split(void)
{
    MPI_File     file = open_file();
    int         *out = make(false);
    MPI_Datatype type = holes();

    MPI_File_read_at_all_begin(file, 0, out, 1, type);
    free_and_make_others(&type);
    MPI_File_read_at_all_end(file, out, MPI_STATUS_IGNORE);
    expect(out);
    MPI_File_close(&file);
}

static void case_collective(void)
{
    int         *in = make(true), *out = make(false);
    MPI_Datatype type = holes();
    MPI_Request  request;

    MPI_Iallgather(in, COUNT, MPI_INT, out, 1, type, MPI_COMM_SELF, &request);
    free_and_make_others(&type);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    expect(out);
}

int main(int argc, char **argv)
{
    const struct mt_named_case cases[] = {
        {"receive", case_receive},
        {"persistent", case_persistent},
        {"window", case_window},
        {"file", case_file},
        {"split", case_split},
        {"collective", case_collective},
        {NULL, NULL},
    };

    mt_begin(&argc, &argv, true);
    folder = (argc > 3) ? argv[3] : folder;
    return mt_run_to_end(cases, argc, argv);
}
