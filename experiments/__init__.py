"""Small models trained on the CPU, one for each encoding of the book: ``make experiments``."""
