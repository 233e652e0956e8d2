"""Workers of another kind: they get copies, begin with the last item, and give what they made in its order."""

import pickle


class Elsewhere:
    def map_items(self, work, common, items):
        packed = [pickle.dumps((work, common, item)) for item in items]
        found = []
        for one in reversed(packed):
            doing, *given = pickle.loads(one)
            found.append(doing(*given))
        return iter(found[::-1])
