"""`tox -e vm`: an ordinary Debian in a virtual machine without a network, and `dra-testbed run` in it.

guest.py makes the machine's root file system, job.py the disk with what is to be done there, machine.py runs it. `job.sh` and what lies
in `root` is executed in the guest.
"""
