"""Pictures: one run, or several compared. Good enough for a paper without editing."""
