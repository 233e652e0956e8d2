"""Doors to other people's tools: Presidio, spaCy, Hugging Face Datasets, LangChain.

Each is a module of its own, and each tool an extra of its own; nothing is imported before it is asked for::

    from allonym.integrations import presidio, spacy, datasets, langchain
"""
