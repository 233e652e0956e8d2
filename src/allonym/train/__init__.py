"""Training of taggers from annotated text. Requires the extra ``train``; detection does not import it."""
