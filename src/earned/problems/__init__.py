"""Problems: where they come from, which split each belongs to, and the order they are trained in."""
