"""Entry of the worker, started as `python -I -m worker_cpu`."""

from stagewire.worker.host import main
from worker_cpu.executors import every_executor

if __name__ == "__main__":
    main(every_executor())
