"""Where the command line begins: while its modules are imported, Ctrl-C ends the process without a traceback."""

import signal


def main() -> None:
    """Run the command of this process's arguments, and exit with its exit code."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from citerec.cli import main as run

    run()


if __name__ == "__main__":
    main()
