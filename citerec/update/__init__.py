"""Changes an index: adds, replaces and removes papers; keeps earlier versions and goes back to them."""
