"""`citerec train`: all models of one index in order, within a budget of time."""
