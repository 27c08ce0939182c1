"""Compile everything once, into the cache that the tests use: `python -m tests.warm`."""

import importlib
import pkgutil

from tests import conftest  # noqa: F401  (sets the cache directory)


def main() -> None:
    import gait

    for module in pkgutil.walk_packages(gait.__path__, "gait."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    from gait.sim.compiled import warm_up

    warm_up()


if __name__ == "__main__":
    main()
