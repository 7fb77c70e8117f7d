"""Entry of the worker, started as `python -I -m worker_speech`."""

from stagewire.worker.host import main
from worker_speech.executors import every_executor

if __name__ == "__main__":
    main(every_executor())
