"""Entry of the worker, started as `python -I -m worker_speech`."""

from stagewire.worker.host import main
from worker_speech.speech import SpeechExecutor

if __name__ == "__main__":
    main([SpeechExecutor()])
