"""Models, tokenisers, prompts and log-probabilities; the only room that imports transformers."""
