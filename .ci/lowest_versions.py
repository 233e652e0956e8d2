"""Print the lowest versions that pyproject.toml allows, as pip takes them: "numpy==2.0".

python .ci/lowest_versions.py [EXTRA...]
"""

import re
import sys
import tomllib
from pathlib import Path

project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
extras = [requirement for extra in sys.argv[1:] for requirement in project["optional-dependencies"][extra]]
requirements = [*project["dependencies"], *extras]
print(*(re.sub(r"\s*>=\s*", "==", requirement) for requirement in requirements), sep="\n")
