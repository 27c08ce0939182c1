"""Compile everything once, into the cache that the tests use: `python -m tests.warm`."""

import importlib
import pkgutil
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import conftest  # noqa: F401  (sets the cache directory)


def main() -> None:
    import gait

    for module in pkgutil.walk_packages(gait.__path__, "gait."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)


if __name__ == "__main__":
    main()
