"""Pictures in the style of other pictures."""
