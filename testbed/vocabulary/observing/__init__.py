"""How the verbs wait for objects, and how they explain a failed wait."""
