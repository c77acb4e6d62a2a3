"""The plugin interface, the plugins, and what is built once on top of it. Imports nothing else of Magazin."""
