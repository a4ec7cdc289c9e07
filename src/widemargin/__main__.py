"""The command line as a program; Ctrl-C ends it with a sentence at any moment."""

import sys

_INTERRUPTED = 130  # 128 + SIGINT, as shells say it
# What a command did not do; the others write nothing, or say it themselves.
_NOT_DONE = {
    "train": "; no model was written",
    "generate": "; nothing was written",
}


def run() -> int:
    """Run the command of ``sys.argv``; the exit status."""
    try:
        from widemargin.cli import main  # here, as Ctrl-C may come while it is imported

        status = main()
        import signal  # slow, but for what a command has imported before

        # What is done is done: a Ctrl-C while Python ends would say that it is not.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        return status
    except KeyboardInterrupt:
        import signal  # not before: its import takes longer than all above

        signal.signal(signal.SIGINT, signal.SIG_DFL)  # another one ends all at once
        words = "".join(_NOT_DONE.get(word, "") for word in sys.argv[1:2])
        if sys.stderr is not None:
            sys.stderr.write(f"widemargin: interrupted{words}\n")
        return _INTERRUPTED


if __name__ == "__main__":
    sys.exit(run())
