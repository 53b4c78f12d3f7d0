"""The command line: each module parses, calls one function and prints; nothing else happens here."""
