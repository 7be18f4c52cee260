"""Grade-school word problems: stories composed of clauses, with answers worked step by step."""
from .compose import make_problem

__all__ = ["make_problem"]
