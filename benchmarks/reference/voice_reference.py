"""The work of plans/voice.yaml in one process, by plain calls of the libraries one after another.

Licensed GPL-3.0-or-later, because it imports piper-tts. It shares no code with the product.

Run as `python -I voice_reference.py SETTINGS`, where SETTINGS is a JSON object: folders of models
and options. It loads everything once and prints one JSON line; then every line `run PATH` on
standard input is answered with one JSON line, and `say PATH TEXT` writes a wav file.

Its libraries have no types, hence `Any`.
"""

import json
import re
import secrets
import shutil
import sys
import tempfile
import time
import wave
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeAlias

started = time.perf_counter()

import ctranslate2  # noqa: E402 - the imports are part of the start that is measured
import numpy as np  # noqa: E402
import onnxruntime  # noqa: E402
import xllamacpp  # noqa: E402
from faster_whisper import WhisperModel  # noqa: E402
from piper.config import PiperConfig, SynthesisConfig  # noqa: E402
from piper.voice import PiperVoice  # noqa: E402

Samples: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"

RATE = 16_000
WINDOW, CONTEXT = 512, 64
THRESHOLD, RELEASE = 0.5, 0.35
MIN_SPEECH, MIN_SILENCE, PADDING = 7, 18, 6
LIBRARIES = (
    "ctranslate2",
    "faster-whisper",
    "numpy",
    "onnxruntime",
    "piper-tts",
    "xllamacpp",
)


def open_graph(path: Path) -> Any:
    """Opens an ONNX graph with one thread."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    options.enable_cpu_mem_arena = options.enable_mem_pattern = SETTINGS["keep_memory"]
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def load_vad() -> Any:
    """Opens the Silero model."""
    return open_graph(FOLDERS["silero-vad"] / "silero_vad.onnx")


def load_whisper() -> Any:
    """Reads Whisper base as int8."""
    return WhisperModel(
        str(FOLDERS["whisper-base"]),
        device="cpu",
        compute_type="int8",
        cpu_threads=1,
        num_workers=1,
        local_files_only=True,
    )


def load_llama() -> Any:
    """Maps the language model."""
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(next(FOLDERS["smollm2"].glob("*.gguf")))
    parameters.n_parallel = 1
    parameters.n_ctx = ANSWER["context_tokens"]
    parameters.n_batch = parameters.n_ubatch = 128
    for threads in (parameters.cpuparams, parameters.cpuparams_batch):
        threads.n_threads = 1
        threads.poll = 0
    parameters.n_threads_http = 1
    parameters.n_gpu_layers = 0
    parameters.fit_params = False
    parameters.cache_ram_mib = 0
    parameters.cache_idle_slots = False
    parameters.n_ctx_checkpoints = 0
    parameters.warmup = False
    parameters.offline = True
    parameters.endpoint_slots = False
    parameters.ui = False
    parameters.verbosity = 0
    folder = tempfile.mkdtemp()
    parameters.hostnames = [str(Path(folder) / "s.sock")]
    parameters.api_keys = [secrets.token_hex(32)]
    try:
        return xllamacpp.Server(parameters)
    finally:
        shutil.rmtree(folder)


def load_piper() -> Any:
    """Opens the voice."""
    folder = FOLDERS["joe-voice"]
    model = next(folder.glob("*.onnx"))
    config = PiperConfig.from_dict(json.loads(Path(f"{model}.json").read_text(encoding="utf-8")))
    return PiperVoice(session=open_graph(model), config=config, download_dir=folder)


def read_wav(path: str) -> tuple[Samples, int]:
    """Returns mono float32 samples and their rate."""
    with wave.open(path) as file:
        raw = np.frombuffer(file.readframes(file.getnframes()), np.int16)
        channels, rate = file.getnchannels(), file.getframerate()
    return (raw.reshape(-1, channels).mean(axis=1) / 32768).astype(np.float32), rate


def resample(samples: Samples, rate: int) -> Samples:
    """Resamples by cutting or extending the spectrum."""
    if rate == RATE:
        return samples
    count = len(samples) * RATE // rate
    spectrum = np.fft.rfft(samples)
    kept = np.zeros(count // 2 + 1, spectrum.dtype)
    shared = min(len(kept), len(spectrum))
    kept[:shared] = spectrum[:shared]
    return (np.fft.irfft(kept, count) * (count / len(samples))).astype(np.float32)


def find_speech(samples: Samples) -> list[Samples]:
    """Returns the segments of speech."""
    samples = np.pad(samples, (0, -len(samples) % WINDOW))
    state, before = np.zeros((2, 1, 128), np.float32), np.zeros(CONTEXT, np.float32)
    chances: list[float] = []
    for start in range(0, len(samples), WINDOW):
        window = samples[start : start + WINDOW]
        heard = np.concatenate([before, window])[None]
        chance, state = VAD.run(
            ["output", "stateN"], {"input": heard, "state": state, "sr": np.array(RATE, np.int64)}
        )
        before = window[-CONTEXT:]
        chances.append(float(chance.item()))
    segments: list[Samples] = []
    first: int | None = None
    silence = 0
    for place, chance in enumerate([*chances, *[0.0] * MIN_SILENCE]):
        if chance >= THRESHOLD:
            first, silence = place if first is None else first, 0
        elif first is not None and (chance < RELEASE or silence):
            silence += 1
            if silence >= MIN_SILENCE:
                end = place + 1 - silence
                if end - first >= MIN_SPEECH:
                    segments.append(
                        samples[max(first - PADDING, 0) * WINDOW : (end + PADDING) * WINDOW]
                    )
                first, silence = None, 0
    return segments


def recognise(segment: Samples) -> str:
    """Returns the text of one segment."""
    parts, _ = WHISPER.transcribe(
        segment,
        language="en",
        beam_size=1,
        temperature=0.0,
        without_timestamps=True,
        condition_on_previous_text=False,
        vad_filter=False,
    )
    return " ".join(part.text.strip() for part in parts)


def answer(question: str) -> tuple[str, int]:
    """Returns the answer and its number of tokens."""
    pieces: list[str] = []
    tokens = 0

    def take(event: dict[str, Any]) -> bool:
        nonlocal tokens
        if "error" in event:
            raise SystemExit(f"llama.cpp failed: {event['error']}")
        tokens = event.get("timings", {}).get("predicted_n", tokens)
        for choice in event.get("choices", ()):
            pieces.append(choice.get("delta", {}).get("content") or "")
        return False

    LLAMA.handle_chat_completions(
        {
            "messages": [{"role": "user", "content": question}],
            "stream": True,
            "max_tokens": ANSWER["max_tokens"],
            "temperature": ANSWER["temperature"],
            "top_p": 0.95,
            "repeat_penalty": ANSWER["repeat_penalty"],
            "seed": ANSWER["seed"],
            "cache_prompt": False,
        },
        take,
    )
    return "".join(pieces), tokens


def speak(text: str) -> list[Samples]:
    """Returns the samples of one sentence."""
    style = SynthesisConfig(noise_scale=SPEAK["noise_scale"], noise_w_scale=SPEAK["noise_w_scale"])
    return [chunk.audio_int16_array for chunk in PIPER.synthesize(text, style)]


def run(path: str) -> dict[str, Any]:
    """Answers the question in a file; returns what the benchmark compares."""
    begin = time.perf_counter()
    marks: dict[str, float] = {}

    def mark(name: str) -> None:
        marks[name] = time.perf_counter() - begin

    samples, rate = read_wav(path)
    samples = resample(samples, rate)
    mark("resample")
    segments = find_speech(samples)
    mark("listen")
    heard = [recognise(segment) for segment in segments]
    mark("hear")
    text, tokens = answer(" ".join(heard))
    mark("answer")
    sentences = [part for part in re.split(r"(?<=[.!?])\s+|\n+", text.strip()) if part]
    audio: list[Samples] = []
    first: float | None = None
    for sentence in sentences:
        audio += speak(sentence)
        first = first or time.perf_counter() - begin
    mark("speak")
    return {
        "seconds": time.perf_counter() - begin,
        "first_seconds": first,
        "heard": " ".join(heard),
        "answer": text,
        "sentences": len(audio),
        "samples": sum(map(len, audio)),
        "tokens": tokens,
        "marks": marks,
    }


def say(path: str, text: str) -> dict[str, Any]:
    """Writes a text as a wav file."""
    with wave.open(path, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(PIPER.config.sample_rate)
        file.writeframes(np.concatenate(speak(text)).tobytes())
    return {"path": path}


def tell(message: dict[str, Any]) -> None:
    """Answers one line."""
    print(json.dumps(message), flush=True)


SETTINGS = json.loads(sys.argv[1])
FOLDERS = {name: Path(folder) for name, folder in SETTINGS["folders"].items()}
ANSWER, SPEAK = SETTINGS["answer"], SETTINGS["speak"]
load_seconds = {"import": time.perf_counter() - started}
loaded: dict[str, Any] = {}
for name, load in {
    "listen": load_vad,
    "hear": load_whisper,
    "answer": load_llama,
    "speak": load_piper,
}.items():
    begun = time.perf_counter()
    loaded[name] = load()
    load_seconds[name] = time.perf_counter() - begun
VAD, WHISPER, LLAMA, PIPER = loaded.values()

if __name__ == "__main__":
    tell(
        {
            "load_seconds": load_seconds,
            "versions": {name: version(name) for name in LIBRARIES},
            "threads": {
                "ctranslate2": WHISPER.model.num_workers,
                "library": ctranslate2.__version__,
            },
        }
    )
    for line in sys.stdin:
        order, _, rest = line.rstrip("\n").partition(" ")
        tell(say(*rest.split(" ", 1)) if order == "say" else run(rest))
