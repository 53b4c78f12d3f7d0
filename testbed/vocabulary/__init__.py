"""The words that suites use: scenario, pods, claims, driver. Each word waits with a budget and fails with what was seen last.

Suites get them as fixtures from the plugin and import nothing from here.
"""
