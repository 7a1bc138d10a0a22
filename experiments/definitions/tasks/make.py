"""Makes `few_shot.jsonl`: two tasks of the paper, with three examples before each question.

    python experiments/definitions/tasks/make.py ../shared/data > experiments/definitions/tasks/few_shot.jsonl

and `five_shot.jsonl`, the same with five examples, and with questions of their own for texts that drafts learn from
(`gsm8k_learnt`, `ner_learnt`). There answers stand on a line of their own: behind a blank many tokenizers would not
begin one, so that a prompt which ends with a blank leads a model astray.

    python experiments/definitions/tasks/make.py ../shared/data --five > experiments/definitions/tasks/five_shot.jsonl

GSM8K in the paper's JSON: examples from the training set, questions from the test set. Named entities (PER,
LOC, ORG, MISC as in CoNLL-2003, whose licence keeps it out of here) in sentences of WikiGold: examples are
its first sentences of the kind, questions the next ones.
"""

import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "train"))

from docs_json import gsm_convert  # noqa: E402

EXAMPLES = 3
QUESTIONS = 50
# Of `five_shot.jsonl`: examples, questions to learn from, and the number of sentences that are asked about.
FIVE = 5
LEARNT = 6
SENTENCES = 30


def rows(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def problem(row):
    solution = gsm_convert(row["answer"])
    short = len(row["question"]) < 200 and solution is not None and len(solution["thoughts"]) < 4
    return ("Q: " + " ".join(row["question"].split()), solution) if short else None


def sentence(row):
    entities = [{"type": entity["type"], "text": entity["text"]} for entity in row["entities"]]
    short = len(row["tokens"]) <= 22 and 1 <= len(entities) <= 4
    return ("Sentence: " + " ".join(row["tokens"]), {"entities": entities}) if short else None


def write(task, shown, asked, answer, mark="A: "):
    told = [(question, json.dumps(said, ensure_ascii=False)) for question, said in shown]
    before = "".join(f"{question}\n{mark}{said}\n\n" for question, said in told)
    for question, said in asked:
        line = {"task": task, "prompt": f"{before}{question}\n{mark}", "answer": said[answer]}
        print(json.dumps(line, ensure_ascii=False))


def main(data):
    train = filter(None, map(problem, rows(f"{data}/gsm8k/train.jsonl")))
    test = filter(None, map(problem, rows(f"{data}/gsm8k/test_first400.jsonl")))
    write("gsm8k", list(train)[:EXAMPLES], list(test)[:QUESTIONS], "answer")
    sentences = list(filter(None, map(sentence, rows(f"{data}/ner/wikigold.jsonl"))))
    write("ner", sentences[:EXAMPLES], sentences[EXAMPLES:EXAMPLES + QUESTIONS], "entities")


def five(data):
    train = list(filter(None, map(problem, rows(f"{data}/gsm8k/train.jsonl"))))[:FIVE]
    test = list(filter(None, map(problem, rows(f"{data}/gsm8k/test_first400.jsonl"))))
    write("gsm8k", train, test[:QUESTIONS], "answer", "A:\n")
    write("gsm8k_learnt", train, test[QUESTIONS:QUESTIONS + LEARNT], "answer", "A:\n")
    sentences = list(filter(None, map(sentence, rows(f"{data}/ner/wikigold.jsonl"))))
    asked = sentences[FIVE:]
    write("ner", sentences[:FIVE], asked[:SENTENCES], "entities", "A:\n")
    write("ner_learnt", sentences[:FIVE], asked[SENTENCES:SENTENCES + LEARNT], "entities", "A:\n")


(five if "--five" in sys.argv[2:] else main)(sys.argv[1])
