"""Back ends for servers that have grammar engines of their own: `sglang` and `vllm`.

Each of the two needs its server. The other modules are what they share, and need nothing but this package:
`options` (settings), `notations` (what requests ask for), `library` (compiled grammars of a tokenizer),
`text` (the text of a request) and `rows` (rows of masks).
"""
