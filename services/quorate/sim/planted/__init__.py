from contextlib import contextmanager
@contextmanager
def plant(name):
    yield
