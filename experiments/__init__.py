"""Which runs each figure needs, how to rerun them, how to redraw from what is in results/."""
