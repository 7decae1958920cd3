# SPDX-License-Identifier: BSD-3-Clause
"""Solve a Poisson-like equation by several Krylov methods and preconditioners of PETSc.

Prints iterations and norms, which must be the same wherever the memory is. Needs petsc4py.
"""

import sys

import numpy as np
import petsc4py

petsc4py.init(sys.argv)
from petsc4py import PETSc  # noqa: E402  (after init)

N = 20
NEIGHBOURS = ((1, 0, 0), (-1, 0, 0), (0, 1, 0), (0, -1, 0), (0, 0, 1), (0, 0, -1))


def seven_point_matrix(grid):
    matrix = grid.createMatrix()
    row, column = PETSc.Mat.Stencil(), PETSc.Mat.Stencil()
    ranges = [range(*bounds) for bounds in grid.getRanges()]
    for index in ((i, j, k) for k in ranges[2] for j in ranges[1] for i in ranges[0]):
        row.index = column.index = index
        matrix.setValueStencil(row, column, 6.1)
        for step in NEIGHBOURS:
            other = tuple(a + b for a, b in zip(index, step))
            if all(0 <= a < N for a in other):
                column.index = other
                matrix.setValueStencil(row, column, -1.0)
    matrix.assemble()
    return matrix


def solve(matrix, right, exact, method, preconditioner):
    solver = PETSc.KSP().create()
    solver.setOperators(matrix)
    solver.setType(method)
    solver.getPC().setType(preconditioner)
    solver.setTolerances(rtol=1e-8)
    found = exact.duplicate()
    solver.solve(right, found)
    found.axpy(-1.0, exact)
    wrong = found.norm() / exact.norm()
    close = "close" if wrong < 1e-5 else f"wrong by {wrong}"
    PETSc.Sys.Print(method, preconditioner, solver.getIterationNumber(), close)


def main():
    grid = PETSc.DMDA().create([N, N, N], stencil_width=1, dof=1, comm=PETSc.COMM_WORLD)
    matrix = seven_point_matrix(grid)
    exact, right = grid.createGlobalVec(), grid.createGlobalVec()
    exact.setArray(np.sin(np.arange(exact.getLocalSize()) * 0.01 + PETSc.COMM_WORLD.rank))
    matrix.mult(exact, right)
    for preconditioner in ("jacobi", "gamg", "asm"):
        for method in ("cg", "gmres", "pipecg"):
            solve(matrix, right, exact, method, preconditioner)
    scatter, everything = PETSc.Scatter.toZero(exact)
    scatter.scatter(exact, everything)
    natural = grid.createNaturalVec()
    grid.globalToNatural(exact, natural)
    square = matrix.matMult(matrix)
    transposed = matrix.copy()
    transposed.transpose()
    norms = [vector.norm() for vector in (right, natural, square, transposed)]
    PETSc.Sys.Print("norms", *(f"{norm:.10e}" for norm in norms))
    if PETSc.COMM_WORLD.rank == 0:
        print(f"on rank 0 {everything.norm():.10e}", flush=True)


if __name__ == "__main__":
    main()
