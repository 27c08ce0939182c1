"""Worker processes that leave Ctrl-C to their parent, stop when it does, and do not outlive it."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager


@contextmanager
def worker_pool(count: int) -> Iterator[ProcessPoolExecutor]:
    """Processes for work of any length; Ctrl-C in this one ends them at once.

    Submit work inside `hold_ctrl_c`: that is when processes are started.
    """
    # Spawned, not forked: compiled code and threads do not survive a fork.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(count, mp_context=context, initializer=prepare_worker) as pool:
        try:
            yield pool
        except KeyboardInterrupt:
            with hold_ctrl_c():
                for process in list(pool._processes.values()):
                    process.terminate()
                pool.shutdown(cancel_futures=True)
            raise


@contextmanager
def hold_ctrl_c() -> Iterator[None]:
    """Let Ctrl-C wait until the end of the block; processes that are started in it never hear of it.

    A process needs a second or more to set up its own handler, and interrupted before it would print a traceback.
    """
    signals: list[int] = []
    main = threading.current_thread() is threading.main_thread()
    ours = main and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if ours:
        signal.signal(signal.SIGINT, lambda number, _: signals.append(number))
    # The handler is for this process, whose other threads may receive the signal; the mask is what children inherit.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        if ours:
            signal.signal(signal.SIGINT, signal.default_int_handler)
    if signals:
        raise KeyboardInterrupt


def prepare_worker() -> None:
    """Leave Ctrl-C to the parent, and do not outlive it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()

    def follow() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=follow, daemon=True).start()
