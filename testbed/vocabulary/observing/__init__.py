"""How words wait, and how they explain that what they waited for did not happen."""
