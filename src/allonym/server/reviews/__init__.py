"""Reviews: people look at what anonymisation did, two of them for each document, the riskiest first.

``readings`` is what one person says, and what a second reading proposes: the order of the documents and the reasons
for it. ``queue`` is who may say it when; the routes compute agreement, residual risk and training text.
"""
