"""What users write (config, driver_file) and what we publish (status, report), as strict models.

Nothing in here knows a cluster, and the only files that it reads are the ones that it is given.
"""
