from tests.llm.fixtures import asking, server

__all__ = ["asking", "server"]
