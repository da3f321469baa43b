"""Learning from past studies: their models, weights, portfolios, and the methods that use them."""
