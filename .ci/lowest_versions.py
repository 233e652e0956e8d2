"""Print the lowest versions that pyproject.toml allows, as pip takes them ("numpy==2.0"), of the core and of extras.

python .ci/lowest_versions.py [EXTRA...]
"""

import sys
import tomllib
from pathlib import Path

project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
extras = project["optional-dependencies"]
requirements = {*project["dependencies"], *(r for extra in sys.argv[1:] for r in extras[extra])}
print(*(r.replace(">=", "==") for r in sorted(requirements) if not r.startswith("allonym[")), sep="\n")
