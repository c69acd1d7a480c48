"""`make bench`: our update and step beside Stable-Baselines3's, SBX's, and bare products."""
