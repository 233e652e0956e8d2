"""Make docs/images from the screenshots that the browser tests take of the workbench. Needs Pillow.

ALLONYM_SCREENSHOTS=FOLDER pytest tests/browser
python docs/build_images.py FOLDER
"""

import sys
from pathlib import Path

from PIL import Image

IMAGES = Path(__file__).resolve().parent / "images"
TAKEN = {
    "workbench-protect": "protect-card-1440-light",
    "workbench-restored": "protect-restored-1440-light",
    "workbench-settle": "settle-1440-light",
    "workbench-study": "study-390-dark",
}
WIDEST, COLOURS = 1152, 96

for name, taken in TAKEN.items():
    picture = Image.open(Path(sys.argv[1], f"{taken}.png")).convert("RGB")
    if picture.width > WIDEST:
        picture = picture.resize((WIDEST, picture.height * WIDEST // picture.width), Image.Resampling.LANCZOS)
    picture.quantize(COLOURS, dither=Image.Dither.NONE).save(IMAGES / f"{name}.png", optimize=True)
