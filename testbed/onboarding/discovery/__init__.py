"""Writes driver files: `facts` observed in a cluster, conclusions from them (pure), and a commented file. For `driver init`."""
