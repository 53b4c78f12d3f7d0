"""NodePrepareResources and NodeUnprepareResources: the verbs, what they read from claims, and what they write."""
