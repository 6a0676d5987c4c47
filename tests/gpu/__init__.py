"""What the series does on a real GPU: several ranks on one card, over gloo, without multicast.

Each module runs by itself (`python -m tests.gpu.symm --tree build/sglang/python`) wherever there
is a GPU and torch; SGLang need not be installed, since only the patched modules are loaded.
"""
