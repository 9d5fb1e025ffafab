"""Something that is looked at all the time while the body of a `with` statement runs."""

import threading


class Looking:
    """A subclass has look_on(), which runs in a thread of its own until self.over is set."""

    def __init__(self):
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.look_on, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()
