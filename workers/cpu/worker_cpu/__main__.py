"""Entry of the worker, started as `python -I -m worker_cpu`."""

from stagewire.worker.lifeline import bind_to_parent

if __name__ == "__main__":
    # First of all: the imports below take longer than a coordinator may live.
    bind_to_parent()

    from stagewire.worker.host import main
    from worker_cpu.executors import every_executor

    main(every_executor())
