"""The command line as a program; Ctrl-C ends it with a sentence at any moment."""

import signal
import sys

_INTERRUPTED = 130  # 128 + SIGINT, as shells say it


def run() -> int:
    """Run the command of ``sys.argv``; the exit status."""
    try:
        from widemargin.cli import main  # here, as Ctrl-C may come while it is imported

        return main()
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # another one ends all at once
        training = sys.argv[1:2] == ["train"]
        words = "interrupted; no model was written" if training else "interrupted"
        if sys.stderr is not None:
            sys.stderr.write(f"widemargin: {words}\n")
        return _INTERRUPTED


if __name__ == "__main__":
    sys.exit(run())
