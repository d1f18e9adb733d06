"""The request log: what keys sent and what they were answered in the last days, without anything worth stealing."""
