"""Worker that speaks: Piper voices. Licensed GPL-3.0-or-later, because piper-tts is."""
