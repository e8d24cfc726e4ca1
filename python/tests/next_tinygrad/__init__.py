"""Stand-ins for what tinygrad's next release has in place of classes of 0.14: storage for buffers, one allocator that keeps what is freed,
devices whose interface is chosen from a list, and queues that are compiled. They were written from a description of the release, and have
its shapes and calling rules. Everything else is the installed tinygrad's.
"""
