/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A tool in front of xccl, preloaded by the tests: it takes over the functions by which MPI begins,
 * and goes on to their PMPI names, as tools do. Of any MPI: the arguments are addresses and
 * numbers.
 */
int MPI_Init(int *argc, char ***argv);
int MPI_Init_thread(int *argc, char ***argv, int required, int *provided);
int PMPI_Init(int *argc, char ***argv);
int PMPI_Init_thread(int *argc, char ***argv, int required, int *provided);

int MPI_Init(int *argc, char ***argv)
{
    return PMPI_Init(argc, argv);
}

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    return PMPI_Init_thread(argc, argv, required, provided);
}
