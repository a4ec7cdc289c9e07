"""Validates the docstrings of all public names with numpydoc; run by ``make check``."""

import importlib
import inspect
import pkgutil
import sys

from numpydoc.validate import validate

import widemargin

# Left out: extended summaries, examples and "See Also" are not for every name; the type
# comes with shape and unit instead of numpydoc's own forms.
IGNORED = {
    "ES01", "EX01", "SA01", "SA04", "GL01", "GL02", "GL03", "GL08", "PR01", "PR02", "PR03",
    "PR06", "PR07", "PR08", "PR09", "RT01", "RT02", "RT03", "RT04", "RT05", "SS03", "SS05",
    "SS06", "YD01",
}  # fmt: skip


def public_names():
    """Dotted names of the public functions, classes and methods."""
    modules = [widemargin] + [
        importlib.import_module(info.name)
        for info in pkgutil.walk_packages(widemargin.__path__, "widemargin.")
        if not info.name.rsplit(".", 1)[1].startswith("_")
    ]
    for module in modules:
        for name, value in vars(module).items():
            if (
                name.startswith("_")
                or getattr(value, "__module__", "") != module.__name__
            ):
                continue
            if inspect.isfunction(value) or inspect.isclass(value):
                yield f"{module.__name__}.{name}", value
            if inspect.isclass(value):
                for method, member in vars(value).items():
                    if inspect.isfunction(member) and not method.startswith("_"):
                        yield f"{module.__name__}.{name}.{method}", member


def main():
    """Print what is wrong; exit status 1 if anything is."""
    wrong = 0
    for name, value in sorted(public_names()):
        if not value.__doc__ and not _inherited(value):
            print(f"{name}: no docstring")
            wrong += 1
            continue
        if not value.__doc__:
            continue
        for code, message in validate(name)["errors"]:
            if code not in IGNORED:
                print(f"{name}: {code} {message}")
                wrong += 1
    return int(wrong > 0)


def _inherited(value):
    """Whether a method takes its docstring from the contract that it implements."""
    return inspect.getdoc(value) is not None or "." in value.__qualname__


if __name__ == "__main__":
    sys.exit(main())
