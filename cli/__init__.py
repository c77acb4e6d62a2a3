"""The command ``magazin``, its settings, and the one place that wires settings to implementations."""
