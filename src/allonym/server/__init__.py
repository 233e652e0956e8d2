"""The service: an HTTP API, the workbench, and a gateway to language models.

    allonym serve

It is off the network unless told otherwise, and keeps texts only where a vault, a job or a review needs them.
"""
