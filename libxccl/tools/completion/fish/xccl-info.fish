# SPDX-License-Identifier: BSD-3-Clause
# Rendered by render.py from options.yaml; do not edit.
complete -c xccl-info -f
complete -c xccl-info -l long -d 'everything on many lines'
complete -c xccl-info -l config -d 'the variables only'
complete -c xccl-info -l devices -d 'list the devices'
complete -c xccl-info -l link -d 'flags that link the interposer'
complete -c xccl-info -l why -x -d 'explain the path of a call: coll:bytes:mem:ranks'
complete -c xccl-info -l gpu -x -d 'with --why: on devices of this model'
complete -c xccl-info -l json -d 'everything as JSON'
complete -c xccl-info -l help -d 'show the help'
complete -c xccl-info -l version -d 'show the version'
