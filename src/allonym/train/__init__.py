"""Training of taggers from annotated text. Needs the extra ``train``; nothing here is imported by the product."""
