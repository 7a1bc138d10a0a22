"""Tests of the back ends for SGLang and vLLM, and of what these share."""
