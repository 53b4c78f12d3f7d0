"""`tox -e vm`: run `dra-testbed run` on an ordinary Debian in a virtual machine without a network.

guest.py builds the root file system of the machine, job.py the disk with the job, and machine.py runs the machine. The guest executes
`job.sh` and the files in `root`.
"""
