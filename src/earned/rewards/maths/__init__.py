"""Mathematical answers: from text to a tree, and when two trees mean the same."""
