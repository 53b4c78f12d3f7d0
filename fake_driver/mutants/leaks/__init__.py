"""Drivers that give devices to containers without a claim. CDI cannot do that, so they do it through NRI, as some real drivers work."""
