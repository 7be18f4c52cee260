"""System prompts: often none."""

TEXTS = {
    "train": ["You are a helpful assistant.", "You are winnow-mini, a small model.",
              "Answer briefly.", "You are helpful and honest.", "Be short and exact.",
              "You are an assistant. Answer the question of the user.",
              "You answer in plain English.", "Help the user."],
    "heldout": ["You are a helpful and honest assistant.", "Answer the user in plain English.",
                "You are a small model. Be exact."],
}


def system_prompt(rng, split, share=0.25):
    return rng.choice(TEXTS[split]) if rng.random() < share else None
