"""Conclusions from the facts about a driver: its classes, pods, identities and probe. Pure; `draft` and `initialize` use them."""
