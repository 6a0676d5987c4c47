"""A pinned SGLang commit and an ordered patch series become a wheel.

Run as `python -m scripts VERB`. The modules are stacked in floors (see RATIONALE.md):
each imports only from the floors below it.
"""
