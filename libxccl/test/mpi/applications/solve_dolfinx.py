# SPDX-License-Identifier: BSD-3-Clause
"""Solve Poisson's equation on a cube by finite elements of DOLFINx.

Meshing and the numbering of unknowns go over neighbourhood collectives, and MPI_Issend with
MPI_Ibarrier. Needs dolfinx 0.5 or later.
"""

import dolfinx.fem.petsc
import numpy as np
import ufl
from dolfinx import fem, mesh
from mpi4py import MPI

SETTINGS = {"ksp_type": "cg", "pc_type": "gamg", "ksp_rtol": 1e-10}


def main():
    comm = MPI.COMM_WORLD
    cube = mesh.create_unit_cube(comm, 8, 8, 8)
    space_of = getattr(fem, "functionspace", fem.FunctionSpace)
    space = space_of(cube, ("CG", 2))
    sides = mesh.locate_entities_boundary(
        cube, 2, lambda x: np.isclose(x[0], 0) | np.isclose(x[0], 1)
    )
    fixed = fem.dirichletbc(0.0, fem.locate_dofs_topological(space, 2, sides), space)
    trial, test, x = ufl.TrialFunction(space), ufl.TestFunction(space), ufl.SpatialCoordinate(cube)
    source = 10 * ufl.exp(-((x[0] - 0.5) ** 2 + (x[1] - 0.5) ** 2) / 0.02)
    problem = dolfinx.fem.petsc.LinearProblem(
        ufl.inner(ufl.grad(trial), ufl.grad(test)) * ufl.dx,
        ufl.inner(source, test) * ufl.dx,
        bcs=[fixed],
        petsc_options=SETTINGS,
    )
    solution = problem.solve()
    integral = comm.allreduce(fem.assemble_scalar(fem.form(solution * ufl.dx)))
    norm = solution.vector.norm()
    if comm.rank == 0:
        print(f"norm {norm:.8e} integral {integral:.8e}")


if __name__ == "__main__":
    main()
