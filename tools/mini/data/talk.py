"""Short talks: about winnow-mini and Winnow, greetings, and what the model cannot know."""
from . import pools
from .sample import chat
from .systems import system_prompt
from .talk_lines import DONT_KNOW, INTENTS, UNKNOWN

OPENINGS = {
    "train": ["", "", "", "", "Hi. ", "Hello! ", "I have a question. ", "Please tell me: ",
              "One more thing: ", "I am new here. ",
              "Quick question: ", "Sorry, ", "OK. ", "Hey, ", "A question: ", "Now, ", "And "],
    "heldout": ["", "", "Hello. ", "Please, ", "One question: ", "Good. ", "I am new. "],
}
ENDINGS = {"train": ["", "", "", "", "", " Thanks.", " Be short.", " Please answer.", " Thank you!",
                     " I want to know."],
           "heldout": ["", "", "", " Please be short.", " I want a short answer."]}
TYPED = ["{}", "{}", "{}", "{}", "lower", "bare"]
THOUGHTS = {"self": "This is about me or about Winnow.", "small": "This is small talk.",
            "unknown": "I have not learnt this."}
SMALL_TALK = ("hello", "thanks", "bye", "mood", "human")


def _dressed(rng, split, question):
    """The question with an opening and an ending, sometimes typed carelessly."""
    opening = rng.choice(OPENINGS[split])
    if opening.endswith(", ") or opening.endswith(": ") or opening == "And ":
        if not question.startswith(("I ", "Winnow")):
            question = question[0].lower() + question[1:]
    text = opening + question + rng.choice(ENDINGS[split])
    style = rng.choice(TYPED)
    if style == "lower":
        return text.lower()
    return text.rstrip("?.! ") if style == "bare" else text


def pair(rng, split):
    """(question, answer, words that the answer must hold)."""
    question, answer, words, _ = _pair(rng, split)
    return question, answer, words


def _pair(rng, split):
    if rng.random() < 0.2:
        question = rng.choice(UNKNOWN[split]).format(
            N=pools.made_up(rng, split) if rng.random() < 0.6 else pools.person(rng, split)[0],
            N2=pools.made_up(rng, split), T=pools.thing(rng, split)[0])
        return _dressed(rng, split, question), DONT_KNOW, ["do not know"], "unknown"
    name = rng.choice(list(INTENTS))
    known, unseen, answers, words = INTENTS[name]
    question = rng.choice(unseen if split == "heldout" else known)
    if name in SMALL_TALK:
        end = "" if question[-1] in "?!." else rng.choice((".", "!", ""))
        return question + end, rng.choice(answers), words, "small"
    return _dressed(rng, split, question), rng.choice(answers), words, "self"


def generate(rng, split, thinking=None):
    """One to three turns; the last answer is the one judged."""
    if thinking is None:
        thinking = rng.random() < 0.5
    turns = []
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        question, answer, words, topic = _pair(rng, split)
        turns += [question, answer]
    return chat(f"talk/{topic}", turns, words, system=system_prompt(rng, split),
                reasoning=THOUGHTS[topic] if thinking else None)
