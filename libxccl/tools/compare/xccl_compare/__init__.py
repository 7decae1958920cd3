# SPDX-License-Identifier: BSD-3-Clause
"""xccl-compare: measure the routes of a site in turns, and say how they compare.

words      sizes, times and names as text
stats      medians and their intervals; the test of two samples
command    options
ucc        which of UCC's transports served its routes
site       the site's routes and variables; which routes there are, and why not
peaks      the hardware's peaks, from the site's file or by the model of the GPUs
suites     what is measured: cases, variants and sizes
launch     the command of one launch; a batch script
perf, osu  the two measuring programs: their options and what they write
store      the folder of a comparison: what was asked for, and what has been measured
measure    the launches, in turns
result     what was measured, as one JSON file
table      as a table
as_csv     as comma-separated values
plot       as pictures
against    two results against each other
published  figures of others
main       from options to an exit status
"""
