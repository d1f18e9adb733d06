"""The sandbox's own tools: play money, and a clock that a company moves ahead."""
